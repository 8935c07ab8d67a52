"""Requests to reverse endpoints: the key is added, nothing else changes, and only the API's own paths are asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.frozen import replace
from podbot.gateway.heads import Direct
from podbot.gateway.hosts import BadHost
from podbot.gateway.routes import CREDENTIALS, NotPassed, Redactor, Route, answered, passed, route_of, routes_from

KEY, PLACEHOLDER = "sk-c4n4ry", "podbot-x-0123"
ROUTE = Route("x", "https://api.example", ("/v1/",), "x-api-key", key=KEY, placeholder=PLACEHOLDER)


def ask(path: str = "/x/v1/messages", *headers: tuple[str, str], method: str = "POST") -> Direct:
    return Direct(method, path, headers or (("x-api-key", PLACEHOLDER),))


def test_the_key_replaces_the_placeholder() -> None:
    asked = ask(
        "/x/v1/messages?beta=true",
        ("host", "127.0.0.1:28282"),
        ("x-api-key", PLACEHOLDER),
        ("anthropic-beta", "a,b"),
        ("accept-encoding", "gzip"),
        ("content-length", "3"),
        ("connection", "close"),
    )
    found = passed(asked, ROUTE)
    assert (found.method, found.path, found.upgrade) == ("POST", "/v1/messages?beta=true", False)
    assert found.headers == (
        ("host", "api.example"),
        ("anthropic-beta", "a,b"),
        ("accept-encoding", "identity"),
        ("x-api-key", KEY),
    )
    assert KEY not in repr(found)
    assert KEY not in repr(ROUTE)


@pytest.mark.parametrize(
    "header",
    [
        ("x-api-key", f"sk-ant-api03-{PLACEHOLDER}"),
        ("authorization", f"Bearer {PLACEHOLDER}"),
        ("authorization", f"bearer {PLACEHOLDER}"),
        ("x-goog-api-key", PLACEHOLDER),
    ],
)
def test_the_placeholder_is_accepted_where_clients_send_keys(header: tuple[str, str]) -> None:
    found = passed(ask("/x/v1/messages", header), ROUTE)
    assert [value for name, value in found.headers if name in CREDENTIALS] == [KEY]


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("x-api-key", "sk-other"),),
        (("x-api-key", PLACEHOLDER[:-1]),),
        (("x-api-key", f"{PLACEHOLDER}x"),),
        (("x-api-key", ""),),
        (("authorization", f"Basic {PLACEHOLDER}x"),),
        (("x-other", PLACEHOLDER),),
        (("cookie", "a=b"),),
        (("x-api-key", "podbot-x-4567"),),  # another session's
    ],
    ids=str,
)
def test_without_this_sandboxs_placeholder_nothing_is_asked(headers: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(NotPassed) as caught:
        passed(Direct("POST", "/x/v1/messages", headers), ROUTE)
    assert caught.value.status == 401
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("name", sorted(CREDENTIALS - {"x-api-key"}))
def test_other_credentials_are_not_passed_on(name: str) -> None:
    found = passed(ask("/x/v1/messages", ("x-api-key", PLACEHOLDER), (name, "theirs")), ROUTE)
    assert "theirs" not in str(found.headers)


PATHS = {
    "another one": "/x/v2/messages",
    "nothing": "/x",
    "the root": "/x/",
    "the API's directory upwards": "/x/v1/../admin",
    "a part of one dot": "/x/v1/./messages",
    "encoded dots": "/x/v1/%2e%2e/admin",
    "encoded dots in upper case": "/x/v1/%2E%2E/admin",
    "a dot and an encoded one": "/x/v1/.%2e/admin",
    "an encoded slash": "/x/v1/..%2fadmin",
    "an encoded slash in upper case": "/x/v1%2Fadmin",
    "encoded twice": "/x/v1/%252e%252e/admin",
    "a backslash": "/x/v1/..\\admin",
    "an encoded backslash": "/x/v1/..%5cadmin",
    "an empty part": "/x/v1//messages",
    "two slashes in front": "/x//v1/messages",
    "an encoded NUL": "/x/v1/%00",
    "an encoded line": "/x/v1/%0d%0aHost:%20evil",
    "another server": "/x/@evil.example/v1/",
    "a bad escape": "/x/v1/%zz",
    "a truncated escape": "/x/v1/%2",
    "a letter beyond ASCII": "/x/v1/\u0430",
    "a semicolon before the dots": "/x/v1/..;/admin/..",
    "the placeholder in the address": f"/x/v1/models?key={PLACEHOLDER}",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_paths_outside_the_api_are_refused(path: str) -> None:
    with pytest.raises(NotPassed) as caught:
        passed(ask(path), ROUTE)
    assert caught.value.status == 403


@pytest.mark.parametrize("path", ["/x/v1/a?key=theirs", "/x/v1/a?b=1&access_token=x", "/x/v1/a?%24httpHeaders=x",
                                  "/x/v1/a?%6bey=x", "/x/v1/a?API_KEY=x"])  # fmt: skip
def test_another_key_in_the_address_is_refused(path: str) -> None:
    with pytest.raises(NotPassed):
        passed(ask(path), ROUTE)


def test_a_path_ends_at_a_slash() -> None:
    route = replace(ROUTE, paths=("/key", "/models"))
    assert passed(ask("/x/key"), route).path == "/key"
    assert passed(ask("/x/models/a"), route).path == "/models/a"
    for path in ("/x/keys", "/x/keys/abc", "/x/modelsx"):
        with pytest.raises(NotPassed):
            passed(ask(path), route)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/x/v1/messages/count_tokens", "/v1/messages/count_tokens"),
        ("/x/v1/models/a:generate?alt=sse", "/v1/models/a:generate?alt=sse"),
        ("/x/v1/files/a%20b", "/v1/files/a%20b"),
        ("/x/v1/", "/v1/"),
    ],
)
def test_paths_of_the_api_are_not_changed(path: str, wanted: str) -> None:
    assert passed(ask(path), ROUTE).path == wanted


def test_an_upstream_with_a_path_and_a_port() -> None:
    route = replace(ROUTE, upstream="http://127.0.0.1:8080/base/", scheme="Bearer ", header="authorization")
    found = passed(ask(), route)
    assert found.path == "/base/v1/messages"
    assert found.headers[0] == ("host", "127.0.0.1:8080")
    assert found.headers[-1] == ("authorization", f"Bearer {KEY}")
    with pytest.raises(BadHost):
        _ = replace(ROUTE, upstream="https://127.1/").target


def test_a_websocket_is_asked_for_again() -> None:
    asked = ask("/x/v1/live", ("x-api-key", PLACEHOLDER), ("connection", "Upgrade"), ("upgrade", "websocket"),
                ("sec-websocket-key", "k"))  # fmt: skip
    found = passed(asked, ROUTE)
    assert found.upgrade
    assert {("connection", "Upgrade"), ("upgrade", "websocket"), ("sec-websocket-key", "k")} <= set(found.headers)
    assert not passed(ask("/x/v1/a", ("x-api-key", PLACEHOLDER), ("upgrade", "h2c")), ROUTE).upgrade


def test_the_route_is_the_first_part_of_the_path() -> None:
    routes = routes_from([{"name": "x", "upstream": "https://a", "paths": ["/"], "header": "h"}])
    assert route_of(ask("/x/v1"), routes) == route_of(ask("/x"), routes) == routes[0]
    for path in ("/", "/y/v1", "/xx/v1", "//x/v1", "/?x"):
        assert route_of(ask(path), routes) is None


def test_headers_that_could_carry_the_key_are_not_answered() -> None:
    headers = (("content-type", "a"), ("set-cookie", "session=1"), ("x-echo", f"Bearer {KEY}"), (f"x-{KEY}", "1"),
               ("www-authenticate", "x"), ("connection", "close"))  # fmt: skip
    assert answered(headers, ROUTE) == (("content-type", "a"),)


def test_the_key_is_replaced_in_a_body_of_the_same_length() -> None:
    redactor = Redactor(KEY)
    assert redactor.feed(b'{"error": "bad key sk-c4n4ry"}\n') == b'{"error": "bad key *********"}\n'
    assert redactor.end() == b""


@given(st.lists(st.sampled_from(["s", "k-c4", "n4ry", KEY, "\n", "sk-c4n4", "data"])), st.integers(1, 7))
def test_the_key_is_found_however_the_body_is_cut(parts: list[str], size: int) -> None:
    body, redactor = "".join(parts).encode(), Redactor(KEY)
    pieces = [redactor.feed(body[at : at + size]) for at in range(0, len(body), size)]
    assert b"".join([*pieces, redactor.end()]) == body.replace(KEY.encode(), b"*" * len(KEY))


def test_a_whole_event_is_not_held_back() -> None:
    assert Redactor(KEY).feed(b"data: x\n\n") == b"data: x\n\n"

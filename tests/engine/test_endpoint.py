from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podbot.engine.endpoint import Endpoint, named_endpoint, parse_endpoint
from podbot.errors import UnsupportedEndpoint

VARIABLES = ("FIRST_HOST", "SECOND_HOST")

FORMS = {
    "unix:///run/podman/podman.sock": Endpoint("unix", "t", path="/run/podman/podman.sock"),
    "UNIX:///run/x": Endpoint("unix", "t", path="/run/x"),
    "/run/podman/podman.sock": Endpoint("unix", "t", path="/run/podman/podman.sock"),
    " /run/x \n": Endpoint("unix", "t", path="/run/x"),
    "relative.sock": Endpoint("unix", "t", path="relative.sock"),
    "/with a space/s.sock": Endpoint("unix", "t", path="/with a space/s.sock"),
    "npipe:////./pipe/podman": Endpoint("npipe", "t", path="//./pipe/podman"),
    r"\\.\pipe\docker_engine": Endpoint("npipe", "t", path=r"\\.\pipe\docker_engine"),
    "//./pipe/docker_engine": Endpoint("npipe", "t", path="//./pipe/docker_engine"),
    "//some/path": Endpoint("npipe", "t", path="//some/path"),
    "tcp://engine.example:2375": Endpoint("http", "t", host="engine.example", port=2375),
    "tcp://engine.example": Endpoint("http", "t", host="engine.example", port=80),
    "http://127.0.0.1:8080/": Endpoint("http", "t", host="127.0.0.1", port=8080),
    "https://engine.example": Endpoint("https", "t", host="engine.example", port=443),
    "https://[::1]:2376": Endpoint("https", "t", host="::1", port=2376),
    "ssh://ann@engine.example/run/user/1000/podman/podman.sock": Endpoint(
        "ssh", "t", host="engine.example", port=22, user="ann", path="/run/user/1000/podman/podman.sock"
    ),
    "ssh://engine.example:2222": Endpoint("ssh", "t", host="engine.example", port=2222),
    "ssh://ann@[fe80::1]:2222/": Endpoint("ssh", "t", host="fe80::1", port=2222, user="ann"),
}

BAD = [
    "",
    "   ",
    "unix://",
    "npipe://",
    "ftp://host",
    "fd://",
    "unix:///run/\x00x",
    "/run/a\nb",
    "http://",
    "http://:80",
    "http://host:port",
    "http://host:0",
    "http://host:65536",
    "http://host:-1",
    "http://host:٣",
    f"http://host:{'9' * 5000}",
    "http://host/path",
    "http://host?query",
    "http://ho st",
    "http://[::1",
    "http://[::1]x",
    "http://user@host",
    "tcp://-oProxyCommand=x",
    "ssh://-oProxyCommand=x/",
    "ssh://-l@host",
    "ssh://user:word@host",
    "ssh://user name@host",
    "ssh://",
]


@pytest.mark.parametrize("text", FORMS)
def test_every_form(text: str) -> None:
    assert parse_endpoint(text, "t") == FORMS[text]


@pytest.mark.parametrize("text", BAD)
def test_an_invalid_endpoint_is_named_with_its_origin(text: str) -> None:
    with pytest.raises(UnsupportedEndpoint) as caught:
        parse_endpoint(text, "variable DOCKER_HOST")
    assert caught.value.origin == "variable DOCKER_HOST"
    assert caught.value.reason
    assert "unix:///path" in caught.value.remedy


@pytest.mark.parametrize("text", ["http://ann:hunter2@host:80", "https://ann:hunter2@host", "ssh://ann:hunter2@host"])
def test_a_password_in_an_address_is_never_repeated(text: str) -> None:
    with pytest.raises(UnsupportedEndpoint) as caught:
        parse_endpoint(text, "t")
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in str(caught.value.fields)


def test_only_a_unix_socket_is_local() -> None:
    assert [text for text, endpoint in FORMS.items() if endpoint.local] == [
        text for text, endpoint in FORMS.items() if endpoint.scheme == "unix"
    ]


SCHEMES = ("", "unix://", "npipe://", "tcp://", "http://", "https://", "ssh://", "SSH://", "x://", "://")
TEXTS = st.one_of(
    st.text(),
    st.builds(str.__add__, st.sampled_from(SCHEMES), st.text(alphabet="ab0:/@[]?#-. \\%\n\x80é", max_size=20)),
)


@given(TEXTS)
@example("http://[[a]")
@example("ssh://a@b@host")
@example("http://[a]:80")
@example("unix:// a ")
def test_an_endpoint_parses_to_itself_or_is_refused(text: str) -> None:
    try:
        endpoint = parse_endpoint(text, "t")
    except UnsupportedEndpoint:
        return
    assert parse_endpoint(endpoint.uri, "t") == endpoint
    assert not endpoint.host.startswith("-")
    assert not endpoint.user.startswith("-")


def test_the_configured_endpoint_overrides_every_variable() -> None:
    environ = {name: f"unix:///{name}" for name in VARIABLES}
    named = named_endpoint("/configured", "config file x", environ, VARIABLES)
    assert named == Endpoint("unix", "config file x", path="/configured")


def test_variables_in_their_order_and_blank_ones_skipped() -> None:
    environ = {name: f"unix:///{name}" for name in VARIABLES}
    for name in VARIABLES:
        assert named_endpoint(None, "default", environ, VARIABLES) == Endpoint(
            "unix", f"variable {name}", path=f"/{name}"
        )
        environ[name] = "  "
    assert named_endpoint(None, "default", environ, VARIABLES) is None


@pytest.mark.parametrize(
    ("text", "shown"), [("tcp://h:1", "tcp://h:1"), ("TCP://h", "tcp://h:80"), ("http://h:1", "http://h:1")]
)
def test_an_address_is_shown_in_the_scheme_that_was_written(text: str, shown: str) -> None:
    found = parse_endpoint(text, "t")
    assert (found.shown, found.scheme) == (shown, "http")

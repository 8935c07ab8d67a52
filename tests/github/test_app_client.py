"""The App as a client, against a server on loopback with GitHub's shapes and all its troubles."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
import time
import traceback
from types import SimpleNamespace
from typing import Any

import jwt as pyjwt
import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from podbot.errors import (
    GitHubAnswerInvalid,
    GitHubBusy,
    GitHubError,
    GitHubRefused,
    InstallationUnsuitable,
    InvalidValue,
)
from podbot.github import api_answers, installation
from podbot.github.api_answers import Answer, Ask
from podbot.github.api_url import api_url_for, checked_api_url
from podbot.github.app_client import AppClient, app_jwt
from podbot.github.requester import requester_options
from podbot.testing import FakeGitHub
from tests.examples import examples
from tests.github.still import PERMISSIONS, REPO, StillGitHub, client, failure, mint, private_key
from tests.waiting import HANG

# --- what goes well --------------------------------------------------------------------------


def test_the_app_and_its_installation(github: StillGitHub) -> None:
    app = client(github).check_app()
    assert (app.id, app.slug, app.owner) == (github.app_id, "podbot-test", "octo")
    info = client(github).check_installation(github.installation_id)
    assert (info.account, info.suspended, info.permissions) == ("octo", False, PERMISSIONS)


def test_a_token_for_the_one_repository(github: StillGitHub) -> None:
    token = mint(github)
    assert github.accepts(token.token, REPO, "contents", "write")
    assert not github.accepts(token.token, "octo/other")
    assert (token.repositories, token.permissions, token.renamed) == ((REPO,), PERMISSIONS, "")
    assert token.lifetime == 3600
    assert token.expires_at == github.started + 3600
    assert github.requests[-1].body == {"repositories": ["shop"], "permissions": PERMISSIONS}
    assert token.token not in repr(token)


def test_no_permissions_are_not_all_permissions(github: StillGitHub) -> None:
    token = client(github).mint(github.installation_id, REPO, {})
    assert token.permissions == {"metadata": "read"}


def test_letter_case_makes_no_other_repository(github: StillGitHub) -> None:
    token = client(github).mint(github.installation_id, "OCTO/Shop", PERMISSIONS)
    assert (token.repositories, token.renamed) == ((REPO,), "")


def test_the_jwt_allows_for_a_clock_a_minute_ahead_and_lives_ten_minutes() -> None:
    claims = pyjwt.decode(app_jwt(private_key(), 7, 1_000_000.9), options={"verify_signature": False})
    assert claims == {"iat": 999_940, "exp": 1_000_540, "iss": "7"}
    assert pyjwt.get_unverified_header(app_jwt(private_key(), 7, 0.0))["alg"] == "RS256"


def test_calls_do_not_wait_for_each_other(github: StillGitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyGithub's own pause between two writes is a second."""
    mint(github)  # PyGithub is imported by now
    from github import Requester

    waited: list[float] = []
    # PyGithub takes no other `sleep`. Only its module gets this one, not the whole process.
    monkeypatch.setattr(Requester, "time", SimpleNamespace(**{**vars(time), "sleep": waited.append}))
    for _ in range(5):
        mint(github)
    assert waited == []
    assert github.mints == 6
    requester = Requester.Requester(**requester_options(github.url, "jwt", HANG))
    for _ in range(2):
        requester.requestJson("POST", "/app")
    assert waited == [], "nor do two writes of one requester"


# --- the clock -------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [-3600.0, -90.0, 700.0, 3600.0])
def test_a_wrong_clock_is_allowed_for(github: StillGitHub, offset: float) -> None:
    github.clock_offset = offset
    token = mint(github)
    assert [request.status for request in github.requests] == [401, 201]
    assert token.clock_skew == offset
    assert token.expires_at == github.started + 3600, "by this machine's clock"
    assert token.lifetime == 3600


@pytest.mark.parametrize("offset", [-55.0, 0.0, 3.0, 500.0])
def test_a_clock_within_the_allowance_costs_no_second_request(github: StillGitHub, offset: float) -> None:
    github.clock_offset = offset
    token = mint(github)
    assert len(github.requests) == 1
    assert abs(token.expires_at - github.started - 3600) < 5, "by this machine's clock"
    assert (token.clock_skew == 0) == (abs(offset) < 5)


def test_the_skew_is_remembered_for_the_next_call(github: StillGitHub) -> None:
    github.clock_offset = 3600
    app = client(github)
    app.check_app()
    app.mint(github.installation_id, REPO, PERMISSIONS)
    assert [request.status for request in github.requests] == [401, 200, 201]


def test_a_clock_that_is_days_off_is_named_and_not_followed(github: StillGitHub) -> None:
    github.clock_offset = 3 * 86400
    error = failure(github)
    assert isinstance(error, GitHubRefused)
    assert "clock is 259200" in error.remedy
    assert "behind GitHub's" in error.remedy
    assert len(github.requests) == 1
    github.clock_offset = -3 * 86400
    assert "ahead of GitHub's" in failure(github).remedy


def test_after_two_refusals_because_of_the_clock_there_is_no_third_request(github: StillGitHub) -> None:
    github.fail(401, times=9, message="'Issued at' claim ('iat') must be an Integer", headers={"Date": "nonsense"})
    assert "Check this machine's clock" in failure(github).remedy
    assert len(github.requests) == 1


# --- who asks, and for what ------------------------------------------------------------------


def test_a_key_of_another_app(github: StillGitHub) -> None:
    error = failure(github, key=private_key(1))
    assert isinstance(error, GitHubRefused)
    assert (error.status, error.step, error.transient) == (401, "get a token", False)
    assert f"The key is not one of App {github.app_id}'s" in error.remedy


def test_an_app_that_does_not_exist(github: StillGitHub) -> None:
    with pytest.raises(GitHubRefused) as caught:
        client(github, app_id=4).check_app()
    assert caught.value.status == 404
    assert "There is no App 4" in caught.value.remedy
    assert "github.app_id" in caught.value.remedy


def test_an_installation_that_does_not_exist(github: StillGitHub) -> None:
    with pytest.raises(GitHubRefused) as caught:
        client(github).check_installation(5)
    assert "has no installation 5" in caught.value.remedy
    with pytest.raises(GitHubRefused, match="has no installation 5"):
        client(github).mint(5, REPO, PERMISSIONS)


def test_an_address_without_the_api(github: StillGitHub) -> None:
    with pytest.raises(GitHubRefused, match=r"Check github\.api_url"):
        AppClient(github.app_id, private_key(), f"{github.url}/api").check_app()


def test_an_enterprise_servers_prefix(github: StillGitHub) -> None:
    assert AppClient(github.app_id, private_key(), f"{github.url}/api/v3/").check_app().id == github.app_id


def test_a_suspended_installation(github: StillGitHub) -> None:
    github.suspended = True
    assert "unsuspend it" in failure(github).remedy
    with pytest.raises(InstallationUnsuitable, match="it is suspended"):
        client(github).check_access(github.installation_id, REPO, PERMISSIONS)


def test_a_repository_that_the_installation_does_not_reach(github: StillGitHub) -> None:
    with pytest.raises(GitHubRefused) as caught:
        client(github).mint(github.installation_id, "octo/secret", PERMISSIONS)
    assert caught.value.status == 422
    assert f"Give installation {github.installation_id} access to octo/secret" in caught.value.remedy


def test_permissions_that_the_installation_lacks_are_named(github: StillGitHub) -> None:
    github.permissions = {"contents": "read", "metadata": "read"}
    error = failure(github)
    assert isinstance(error, InstallationUnsuitable)
    assert "it does not have contents: write, pull_requests: write" in str(error)
    with pytest.raises(InstallationUnsuitable, match="it does not have contents: write, pull_requests: write"):
        client(github).check_access(github.installation_id, REPO, PERMISSIONS)


def test_the_owner_is_checked_before_a_token_is_made(github: StillGitHub) -> None:
    app = client(github)
    with pytest.raises(InstallationUnsuitable, match="it is the installation on octo"):
        app.check_access(github.installation_id, "victim/shop", PERMISSIONS)
    app.check_access(github.installation_id, "OCTO/shop", PERMISSIONS)
    assert github.mints == 0
    with pytest.raises(InstallationUnsuitable, match="its token is for octo/shop"):
        app.mint(github.installation_id, "victim/shop", PERMISSIONS)


@pytest.mark.parametrize(
    ("status", "message", "headers", "hint"),
    [
        (403, "Resource protected by organization SAML enforcement.", {"X-GitHub-SSO": "required"}, "single sign-on"),
        (403, "the `octo` organization has an IP allow list enabled", {}, "IP allow list"),
        (403, "Resource not accessible by integration", {}, "still installed"),
        (404, "Not Found", {}, "has no installation"),
        (410, "Gone", {}, "Check github.api_url"),
        (401, "Bad credentials", {}, "The key is not one of App"),
    ],
)
def test_refusals_have_hints(
    github: StillGitHub, status: int, message: str, headers: dict[str, str], hint: str
) -> None:
    github.fail(status, message=message, headers=headers)
    error = failure(github)
    assert isinstance(error, GitHubRefused)
    assert (error.status, error.reason, error.transient) == (status, message, False)
    assert hint in error.remedy


@pytest.mark.parametrize(
    ("status", "message", "headers", "wait"),
    [
        (429, "Too many requests", {"Retry-After": "17"}, 17),
        (429, "Too many requests", {}, 60),
        (403, "You have exceeded a secondary rate limit.", {"Retry-After": "90"}, 90),
        (403, "You have exceeded a secondary rate limit.", {}, 60),
        (403, "You have exceeded a secondary rate limit.", {"Retry-After": "99999999999999"}, 3600),
        (503, "Service Unavailable", {"Retry-After": "5"}, 5),
        (500, "Server Error", {}, 0),
        (502, "Server Error", {"Retry-After": "soon"}, 0),
        (500, "Server Error", {"X-RateLimit-Remaining": "nan", "X-RateLimit-Reset": "inf"}, 0),
    ],
)
def test_temporary_failures_are_transient_and_have_a_waiting_time(
    github: StillGitHub, status: int, message: str, headers: dict[str, str], wait: int
) -> None:
    github.fail(status, message=message, headers=headers)
    error = failure(github)
    assert isinstance(error, GitHubBusy)
    assert (error.status, error.retry_after, error.transient) == (status, wait, True)
    assert (f"asks to wait {wait} s" in error.remedy) == bool(wait)
    assert len(github.requests) == 1  # no retries here


def test_a_used_up_rate_limit_waits_for_its_reset(github: StillGitHub) -> None:
    github.clock_offset = 400  # the reset is by the server's clock
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(github.now()) + 120)}
    github.fail(403, message="API rate limit exceeded for installation ID 67890.", headers=headers)
    error = failure(github)
    assert isinstance(error, GitHubBusy)
    assert error.retry_after == 121  # rounded up, so that it is over by then


# --- what is no answer of GitHub's -----------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 403, 404])
@pytest.mark.parametrize("body", ["<html>Please log in</html>", "", "[1]", '"x"', "[" * 100_000, "\xff"])
def test_a_proxys_page_is_not_accepted(github: StillGitHub, status: int, body: str) -> None:
    github.fail(status, body=body)
    error = failure(github)
    assert isinstance(error, GitHubAnswerInvalid)
    assert error.transient
    assert "not GitHub's API" in error.remedy


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(github: StillGitHub, status: int) -> None:
    with FakeGitHub() as elsewhere:
        github.fail(status, message="Moved", headers={"Location": f"{elsewhere.url}/app?token=x"})
        with pytest.raises(GitHubAnswerInvalid, match=f"it redirects to {elsewhere.url}/app. Set") as caught:
            client(github).check_app()
        assert elsewhere.requests == []
    assert "token=x" not in str(caught.value)


def test_a_redirect_to_the_same_address_does_not_loop(github: StillGitHub) -> None:
    github.fail(301, times=50, message="Moved", headers={"Location": f"{github.url}/app/"})
    with pytest.raises(GitHubAnswerInvalid):
        client(github).check_app()
    assert len(github.requests) == 1


def test_a_202_is_not_waited_for(github: StillGitHub) -> None:
    github.fail(202, times=50, message="later")
    with pytest.raises(GitHubAnswerInvalid, match="HTTP 202"):
        client(github).check_app()
    assert len(github.requests) == 1


def test_an_answer_of_any_size_is_not_read(github: StillGitHub) -> None:
    github.fail(200, body="x" * (3 << 20))
    assert "longer than 1 MiB" in str(failure(github))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"token": ""}, "it contains no token"),
        ({"token": None}, "it contains no token"),
        ({"token": "ghs_a b"}, "it contains no token"),
        ({"token": "ghs_a\nb"}, "it contains no token"),
        ({"token": "ghs_ü"}, "it contains no token"),
        ({"token": "g" * 4097}, "it contains no token"),
        ({"expires_at": None}, "when the token expires"),
        ({"expires_at": "tomorrow"}, "when the token expires"),
        ({"expires_at": "2099-01-01T00:00:00"}, "when the token expires"),
        ({"expires_at": "2099-01-01T00:00:00+02:00"}, "when the token expires"),
        ({"expires_at": "2099-01-01T00:00:00Z"}, "does not fit the clock"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "does not fit the clock"),
        ({"expires_at": "2020-99-01T00:00:00Z"}, "does not fit the clock"),
        ({"permissions": None}, "does not list the permissions"),
        ({"permissions": {"contents": 1}}, "does not list the permissions"),
        ({"permissions": {"contents": "read"}}, "lacks contents: write, metadata: read, pull_requests: write"),
        (
            {"permissions": {**PERMISSIONS, "administration": "write"}},
            "more permissions than requested: administration: write",
        ),
        ({"permissions": {**PERMISSIONS, "contents": "admin"}}, "more permissions than requested: contents: admin"),
        ({"permissions": {**PERMISSIONS, "contents": "root"}}, "lacks contents: write"),
        ({"repositories": None}, "not limited to the one repository"),
        ({"repositories": []}, "not limited to the one repository"),
        ({"repositories": [{"full_name": REPO}, {"full_name": "octo/other"}]}, "not limited to the one repository"),
        ({"repositories": [{"full_name": 5}]}, "not limited to the one repository"),
        ({"repositories": [{"full_name": "evil/shop"}]}, "its token is for evil/shop"),
        ({"repositories": [{"full_name": "evil/else"}]}, "its token is for evil/else"),
    ],
)
def test_a_token_that_differs_from_the_request(github: StillGitHub, fields: dict[str, Any], words: str) -> None:
    github.answer_fields = fields
    error = failure(github)
    assert words in str(error)
    assert isinstance(error, GitHubAnswerInvalid | InstallationUnsuitable)
    assert github.tokens[-1].token not in str(error)


def test_a_renamed_repository_is_noted(github: StillGitHub) -> None:
    github.answer_fields = {"repositories": [{"full_name": "octo/boutique"}]}
    assert mint(github).renamed == "octo/boutique"
    github.answer_fields = {"repositories": [{"full_name": "octopus/shop"}]}
    token = client(github).mint(github.installation_id, REPO, PERMISSIONS, known_owner=True)
    assert token.renamed == "octopus/shop"


def test_an_answer_about_another_app_or_installation(github: StillGitHub) -> None:
    github.fail(200, body=json.dumps({"id": 1, "permissions": {}}))
    with pytest.raises(GitHubAnswerInvalid, match="an App other than"):
        client(github).check_app()
    github.fail(200, body=json.dumps({"id": 1, "account": {"login": "octo"}, "permissions": {}}))
    with pytest.raises(GitHubAnswerInvalid, match="does not describe installation"):
        client(github).check_installation(github.installation_id)
    ours = {"id": github.installation_id, "app_id": 9, "account": {"login": "octo"}, "permissions": {}}
    github.fail(200, body=json.dumps(ours))
    with pytest.raises(GitHubAnswerInvalid, match="belongs to another App"):
        client(github).check_installation(github.installation_id)


@pytest.mark.parametrize("repo", ["", "shop", "/shop", "octo/", "a/b/c"])
def test_an_invalid_repository_name(github: StillGitHub, repo: str) -> None:
    with pytest.raises(InvalidValue):
        client(github).mint(github.installation_id, repo, PERMISSIONS)
    assert github.requests == []


# --- secrets ---------------------------------------------------------------------------------


def test_errors_contain_neither_jwt_nor_token_nor_the_librarys_exceptions(github: StillGitHub) -> None:
    github.fail(403, message="no: eyJhbGciOiJSUzI1NiJ9.eyJpYXQ.c2ln and ghs_0123456789abcdefghij, really")
    error = failure(github)
    assert "(hidden)" in str(error)
    assert "eyJ" not in str(error)
    assert "ghs_" not in str(error)
    github.drop()
    for found in (error, failure(github)):
        assert found.__cause__ is None
        assert found.__context__ is None
        assert "Bearer" not in "".join(traceback.format_exception(found))


def test_nothing_is_logged(github: StillGitHub, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("github").setLevel(logging.DEBUG)
        logging.getLogger("github.Requester").setLevel(logging.DEBUG)
        token = mint(github)
    assert token.token not in caplog.text
    assert "eyJ" not in caplog.text


def test_an_embedders_pygithub_is_left_as_it_is(
    github: StillGitHub, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It logs, and it uses the environment's proxy even for loopback."""
    mint(github)
    from github.Auth import AppAuthToken
    from github.Requester import Requester

    options = requester_options(github.url, "jwt", HANG)
    with caplog.at_level(logging.DEBUG, "github.Requester"):
        status, _, _ = Requester(**{**options, "auth": AppAuthToken("x")}).requestJson("GET", "/app")
    assert status == 401
    assert "GET http://127.0.0.1/app" in caplog.text
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(requests.exceptions.ProxyError):
        Requester(**options).requestJson("GET", "/app")


def test_the_clients_repr_has_no_key(github: StillGitHub) -> None:
    assert repr(client(github)) == f"AppClient({github.app_id}, '{github.url}')"


def test_threads_may_mint_at_once(github: StillGitHub) -> None:
    github.rotating = False
    tokens: list[str] = []
    threads = [threading.Thread(target=lambda: tokens.append(mint(github).token)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert len(set(tokens)) == 8
    assert all(github.accepts(token) for token in tokens)


# --- addresses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "api", "expected"),
    [
        ("https://github.com", None, "https://api.github.com"),
        ("https://github.com/", "", "https://api.github.com"),
        ("https://GitHub.com", None, "https://api.github.com"),
        ("https://octo.ghe.com", None, "https://api.octo.ghe.com"),
        ("https://git.example.com", None, "https://git.example.com/api/v3"),
        ("https://git.example.com:8443/", None, "https://git.example.com:8443/api/v3"),
        ("http://127.0.0.1:9", None, "http://127.0.0.1:9/api/v3"),
        ("https://github.com", "https://api.example.com/x/", "https://api.example.com/x"),
    ],
)
def test_where_the_api_is(server: str, api: str | None, expected: str) -> None:
    assert api_url_for(server, api) == expected
    assert checked_api_url(expected) == expected


# --- anything at all -------------------------------------------------------------------------

ASK = Ask("get a token", "https://x", 1, 2, REPO, PERMISSIONS)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)
NAMES = ["id", "token", "expires_at", "permissions", "repositories", "account", "message", "app_id", "owner"]
shaped = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, json_values))
headers = st.dictionaries(
    st.sampled_from(["date", "retry-after", "x-ratelimit-remaining", "x-ratelimit-reset", "location", "x-github-sso"]),
    st.text(max_size=30) | st.integers().map(str),
)


@settings(max_examples=examples(300))
@given(
    st.sampled_from([200, 201, 204, 301, 304, 401, 403, 404, 422, 429, 451, 500, 503, 999]),
    headers,
    st.text(max_size=200) | shaped.map(json.dumps) | json_values.map(json.dumps),
)
def test_any_answer_gives_a_value_or_our_error(status: int, found: dict[str, str], body: str) -> None:
    answer = Answer(status, found, body, 1_700_000_000.0)
    for read in (installation.read_app, installation.read_installation, installation.read_token):
        error = given_up(read, answer)
        if error is not None:
            assert "\n" not in str(error)
            assert len(str(error)) < 1500
            assert 0 <= error.retry_after <= api_answers.LONGEST_WAIT


def given_up(read: Any, answer: Answer) -> GitHubError | None:
    try:
        read(answer, ASK)
    except GitHubError as error:
        return error
    return None


# --- bytes that are no HTTP ------------------------------------------------------------------

GARBAGE = {
    "nothing": b"",
    "not http": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "binary": bytes(range(256)) * 10,
    "status of five digits": b"HTTP/1.1 99999 X\r\n\r\n",
    "no status": b"HTTP/1.1\r\n\r\n",
    "a line without end": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000,
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 500 + b"\r\n{}",
    "negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
    "length in words": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\n{}",
    "bad chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "chunk cut off": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}",
    "gzip that is none": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    "a hundred continues": b"HTTP/1.1 100 Continue\r\n\r\n" * 200,
    "location that is none": b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n",
    "location with escapes": b"HTTP/1.1 302 Found\r\nLocation: \x1b[2J\xff\r\nContent-Length: 0\r\n\r\n",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "date of the year 0": b"HTTP/1.1 500 X\r\nDate: Mon, 00 Jan 0000 99:99:99 GMT\r\nContent-Length: 2\r\n\r\n{}",
}


def test_only_functions_of_the_oldest_supported_pygithub_are_used(github: StillGitHub) -> None:
    known = {
        "auth", "base_url", "timeout", "user_agent", "per_page", "verify", "retry", "pool_size",
        "seconds_between_requests", "seconds_between_writes",
    }  # fmt: skip
    assert mint(github).repositories == (REPO,)
    assert requester_options(github.url, "jwt", 1.0).keys() <= known  # of PyGithub 2.5, the floor in pyproject.toml


@pytest.mark.parametrize("kind", GARBAGE)
def test_any_bytes_on_the_wire_are_our_error(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(HANG)

        def answer() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.settimeout(HANG)
                sock.recv(65536)
                with contextlib.suppress(OSError):
                    sock.sendall(GARBAGE[kind])
                    sock.shutdown(socket.SHUT_WR)
                    sock.recv(65536)

        thread = threading.Thread(target=answer)
        thread.start()
        app = AppClient(1, private_key(), f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=HANG)
        with pytest.raises(GitHubError) as caught:
            app.check_app()
        thread.join(HANG)
    assert caught.value.transient
    assert str(caught.value).isprintable()
    assert caught.value.__context__ is None

"""The fake GitHub is as strict as GitHub, and its troubles are real ones."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from podbot.testing import FakeGitHub
from podbot.testing.github_shapes import rsa_key

TOKENS = "/app/installations/67890/access_tokens"


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub(repositories=("octo/shop", "octo/other")) as server:
        yield server


def signed(github: FakeGitHub, *, iat: float = -60, exp: float = 540, key: int = 0, **claims: Any) -> str:
    now = github.now()
    payload = {"iat": int(now + iat), "exp": int(now + exp), "iss": str(github.app_id), **claims}
    return jwt.encode(payload, rsa_key(key), algorithm="RS256")


def ask(
    github: FakeGitHub, path: str = "/app", body: Any = None, token: str | None = None, method: str | None = None
) -> tuple[int, dict[str, str], Any]:
    connection = http.client.HTTPConnection(github.url.removeprefix("http://"), timeout=60)
    try:
        data = None if body is None else json.dumps(body)
        bearer = signed(github) if token is None else token
        connection.request(method or ("POST" if data else "GET"), path, data, {"Authorization": f"Bearer {bearer}"})
        answer = connection.getresponse()
        text = answer.read()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, found, json.loads(text) if "json" in found["content-type"] else text
    finally:
        connection.close()


def mint(github: FakeGitHub, *repositories: str) -> str:
    status, _, answer = ask(github, TOKENS, {"repositories": list(repositories or ("shop",))})
    assert status == 201
    return str(answer["token"])


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ({"iat": 60}, "('iat')"),
        ({"exp": -1}, "('exp') must be"),
        ({"exp": 700}, "('exp') is too far"),
        ({"key": 1}, "could not be decoded"),
    ],
)
def test_a_jwt_is_checked(github: FakeGitHub, times: dict[str, Any], words: str) -> None:
    status, _, answer = ask(github, token=signed(github, **times))
    assert status == 401
    assert words in answer["message"]
    assert answer["status"] == "401"


@pytest.mark.parametrize("token", ["", "x", "a.b.c"])
def test_no_jwt_at_all(github: FakeGitHub, token: str) -> None:
    assert ask(github, token=token)[0] == 401


def test_an_unsigned_jwt(github: FakeGitHub) -> None:
    claims = {"iat": int(time.time()) - 9, "exp": int(time.time()) + 9, "iss": str(github.app_id)}
    assert ask(github, token=jwt.encode(claims, "", algorithm="none"))[0] == 401
    assert ask(github, token=jwt.encode(claims, "x" * 32, algorithm="HS256"))[0] == 401


def test_another_app(github: FakeGitHub) -> None:
    assert ask(github, token=signed(github, iss="9"))[0] == 404


def test_the_routes(github: FakeGitHub) -> None:
    assert ask(github, "/app")[2]["id"] == github.app_id
    assert ask(github, "/api/v3/app")[0] == 200
    assert ask(github, "/app/installations/67890")[2]["account"]["login"] == "octo"
    assert ask(github, "/app/installations/1")[0] == 404
    assert ask(github, "/user")[0] == 404
    assert ask(github, TOKENS)[0] == 404
    assert ask(github, "/app", {})[0] == 404


def test_headers_and_errors_are_in_githubs_form(github: FakeGitHub) -> None:
    _, headers, answer = ask(github, "/nope")
    assert answer == {"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"}
    assert {"date", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"} <= headers.keys()


def test_a_token_answer(github: FakeGitHub) -> None:
    status, _, answer = ask(github, TOKENS, {"repositories": ["Shop"], "permissions": {"contents": "read"}})
    assert status == 201
    assert answer["permissions"] == {"metadata": "read", "contents": "read"}
    assert [r["full_name"] for r in answer["repositories"]] == ["octo/shop"]
    assert answer["expires_at"].endswith("Z")
    assert "." not in answer["expires_at"]
    assert github.accepts(answer["token"], "octo/SHOP", "contents")
    assert not github.accepts(answer["token"], "octo/shop", "contents", "write")
    assert not github.accepts(answer["token"], "octo/other")
    assert not github.accepts("")


def test_an_unlimited_token(github: FakeGitHub) -> None:
    _, _, answer = ask(github, TOKENS, {"x": 1})
    assert "repositories" not in answer
    assert github.accepts(answer["token"], "octo/other", "pull_requests", "write")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"repositories": ["secret"]}, "does not exist or is not accessible"),
        ({"repositories": ["shop"], "permissions": {"administration": "read"}}, "permissions requested"),
        ({"repositories": ["shop"], "permissions": {"contents": "admin"}}, "permissions requested"),
    ],
)
def test_permissions_that_an_installation_does_not_have(github: FakeGitHub, body: Any, words: str) -> None:
    status, _, answer = ask(github, TOKENS, body)
    assert status == 422
    assert words in answer["message"]
    assert github.mints == 0


def test_only_the_newest_token_and_for_a_moment_the_one_before(github: FakeGitHub) -> None:
    github.grace = 60.0
    first, second = mint(github), mint(github)
    assert github.accepts(first)
    assert github.accepts(second)
    third = mint(github)
    assert not github.accepts(first)  # older than the one before
    assert github.accepts(second)
    github.grace = 0.0
    assert not github.accepts(second)
    assert github.accepts(third)
    assert github.mints == 3


def test_another_repositorys_token_stays_valid(github: FakeGitHub) -> None:
    github.grace = 0.0
    shop, other = mint(github, "shop"), mint(github, "other")
    assert github.accepts(shop)
    assert github.accepts(other)


def test_as_github_does_without_rotation(github: FakeGitHub) -> None:
    github.grace = 0.0
    github.rotating = False
    tokens = [mint(github) for _ in range(3)]
    assert all(github.accepts(token) for token in tokens)


def test_an_expired_token(github: FakeGitHub) -> None:
    token = mint(github)
    github.clock_offset = 3600 - 60
    assert github.accepts(token)
    github.clock_offset = 3601
    assert not github.accepts(token)


def test_suspension(github: FakeGitHub) -> None:
    token = mint(github)
    github.suspended = True
    assert not github.accepts(token)
    assert ask(github, TOKENS, {"x": 1})[0] == 403
    assert ask(github, "/app/installations/67890")[2]["suspended_at"]


def test_a_replaced_key(github: FakeGitHub, tmp_path: Any) -> None:
    old = github.pem
    new = github.replace_key()
    assert old != new == github.pem
    assert ask(github)[0] == 401
    assert ask(github, token=signed(github, key=1))[0] == 200
    path = github.write_key(str(tmp_path / "k.pem"))
    assert (tmp_path / "k.pem").read_text() == new
    assert (tmp_path / "k.pem").stat().st_mode & 0o777 == 0o600
    assert path


def test_requests_are_recorded_without_the_jwt(github: FakeGitHub) -> None:
    token = signed(github)
    ask(github, TOKENS, {"repositories": ["shop"]}, token=token)
    (request,) = github.requests
    assert (request.method, request.path, request.status) == ("POST", TOKENS, 201)
    assert request.body == {"repositories": ["shop"]}
    assert token not in repr(github.requests)
    assert github.tokens[0].token not in repr(github.tokens)


def test_failures_are_used_up(github: FakeGitHub) -> None:
    github.fail(500, times=2, headers={"Retry-After": "3"})
    github.fail(200, body="<html>")
    first = ask(github)
    assert (first[0], first[1]["retry-after"], first[2]["message"]) == (500, "3", "Server Error")
    assert [ask(github)[0] for _ in range(3)] == [500, 200, 200]
    github.fail(500, path="access_tokens", times=9)
    assert ask(github)[0] == 200
    assert ask(github, TOKENS, {"x": 1})[0] == 500
    github.recover()
    assert ask(github, TOKENS, {"x": 1})[0] == 201


def test_slow_and_dripping_answers(github: FakeGitHub) -> None:
    github.slow(0.03)
    start = time.monotonic()
    assert ask(github)[0] == 200
    assert time.monotonic() - start >= 0.03
    github.drip(0.00001)
    assert ask(github)[2]["id"] == github.app_id


def test_dropped_connections_hand_out_no_token(github: FakeGitHub) -> None:
    token = mint(github)
    github.drop("before")
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        mint(github)
    github.drop("middle")
    with pytest.raises(http.client.IncompleteRead):
        mint(github)
    assert github.mints == 1
    assert github.accepts(token)
    with pytest.raises(ValueError, match="after"):
        github.drop("after")


def test_down_and_up_again_on_the_same_port(github: FakeGitHub) -> None:
    url = github.url
    github.down()
    github.down()
    with pytest.raises(ConnectionRefusedError):
        ask(github)
    github.up()
    assert github.url == url
    assert ask(github)[0] == 200

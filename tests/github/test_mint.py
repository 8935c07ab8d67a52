"""A session's minter: the key is read for each token, and the owner is looked up once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from podbot.errors import GitHubBusy, GitHubRefused, InstallationUnsuitable, PrivateKeyMissing
from podbot.github.mint import Granted, minter
from podbot.testing import FakeGitHub


@dataclass(frozen=True)
class Grant:
    repo: str
    server_url: str
    app_id: int
    installation_id: int
    private_key_path: str
    api_url: str
    permissions: Mapping[str, str] = field(default_factory=lambda: {"contents": "write", "metadata": "read"})
    auth: str = "app"


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as server:
        yield server


def grant(github: FakeGitHub, tmp_path: Path, repo: str = "octo/shop") -> Granted:
    path = github.write_key(str(tmp_path / "app.pem"))
    return Grant(repo, "https://github.com", github.app_id, github.installation_id, path, github.url)


def test_the_owner_is_looked_up_once(github: FakeGitHub, tmp_path: Path) -> None:
    mint = minter(grant(github, tmp_path))
    first, second = mint(), mint()
    assert [request.method for request in github.requests] == ["GET", "POST", "POST"]
    assert github.accepts(second.token, "octo/shop", "contents", "write")
    assert first.token != second.token


def test_another_owners_repository_costs_no_token(github: FakeGitHub, tmp_path: Path) -> None:
    mint = minter(grant(github, tmp_path, "victim/shop"))
    for _ in range(2):
        with pytest.raises(InstallationUnsuitable):
            mint()
    assert github.mints == 0


def test_an_owner_that_is_renamed_keeps_the_session(github: FakeGitHub, tmp_path: Path) -> None:
    mint = minter(grant(github, tmp_path))
    mint()
    github.account, github.repositories = "octopus", ("octopus/shop",)
    assert getattr(mint(), "renamed") == "octopus/shop"  # noqa: B009 - an InstallationToken has it
    with pytest.raises(InstallationUnsuitable):
        minter(grant(github, tmp_path))()


def test_the_check_is_made_again_when_the_first_token_failed(github: FakeGitHub, tmp_path: Path) -> None:
    mint = minter(grant(github, tmp_path))
    github.fail(503, path="access_tokens")
    with pytest.raises(GitHubBusy):
        mint()
    mint()
    assert [request.method for request in github.requests] == ["GET", "POST", "GET", "POST"]


def test_a_key_that_is_replaced_while_it_runs(github: FakeGitHub, tmp_path: Path) -> None:
    asked = grant(github, tmp_path)
    mint = minter(asked)
    mint()
    github.replace_key()
    with pytest.raises(GitHubRefused):
        mint()
    os.truncate(asked.private_key_path, 0)
    with pytest.raises(PrivateKeyMissing) as empty:
        mint()
    os.unlink(asked.private_key_path)
    with pytest.raises(PrivateKeyMissing) as gone:
        mint()
    assert empty.value.transient
    assert gone.value.transient
    github.write_key(asked.private_key_path)
    assert github.accepts(mint().token)


def test_nothing_is_read_or_requested_before_the_call(github: FakeGitHub, tmp_path: Path) -> None:
    asked = grant(github, tmp_path)
    os.unlink(asked.private_key_path)
    minter(asked)
    assert github.requests == []


def test_a_borrowed_token_is_read_anew_each_time() -> None:
    environ = {"MINE": "ghp_first"}
    asked = Grant("octo/shop", "https://github.com", 0, 0, "", "", {}, "env:MINE")
    mint = minter(asked, environ=environ)
    assert mint().token == "ghp_first"
    environ["MINE"] = "ghp_second"
    assert mint().token == "ghp_second"

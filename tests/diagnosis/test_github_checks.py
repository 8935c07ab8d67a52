"""doctor's steps on the GitHub App, against a server on loopback with GitHub's shapes."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from podbot.config.models import AppConfig, GitHubConfig, Origin
from podbot.diagnosis.github_checks import Client, app_client, check_github
from podbot.engine.check import Check
from podbot.github.key import PrivateKey
from podbot.testing import FakeGitHub

GITHUB_CHECKS = (
    "github-keys", "github-key", "github-key-mode", "github-api", "github-app", "github-installation",
    "github-permissions",
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[FakeGitHub]:
    with FakeGitHub() as made:
        yield made


@pytest.fixture
def github(server: FakeGitHub) -> Iterator[FakeGitHub]:
    yield server
    server.up()
    server.recover()
    server.suspended = False


def configured(**values: Any) -> AppConfig:
    origins = {f"github.{name}": Origin("file", "/c.toml") for name in values}
    return AppConfig(github=GitHubConfig(**values), origins=origins)


@pytest.fixture
def config(github: FakeGitHub, tmp_path: Path) -> AppConfig:
    return configured(
        app_id=github.app_id,
        installation_id=github.installation_id,
        private_key_path=github.write_key(str(tmp_path / "app.pem")),
        api_url=github.url,
    )


def changed(config: AppConfig, **values: Any) -> AppConfig:
    return replace(config, github=replace(config.github, **values))


def patient(app_id: int, key: PrivateKey, url: str) -> Client:
    """The real client, for which no answer is too late."""
    return app_client(app_id, key, url, timeout=60)


def last(config: AppConfig) -> Check:
    """The last check; those before it are fine."""
    *before, final = check_github(config, patient)
    assert {check.status for check in before} <= {"ok"}
    return final


def test_all_is_well(config: AppConfig) -> None:
    found = list(check_github(config, patient))
    assert [check.name for check in found] == list(GITHUB_CHECKS)
    assert {check.status for check in found} == {"ok"}


def test_nothing_is_sent_when_no_key_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> NoReturn:
        pytest.fail("a client was made")

    origins = {"github.server_url": Origin("default"), "image": Origin("file", "/c.toml")}
    assert list(check_github(AppConfig(origins=origins), asked)) == []
    assert list(check_github(AppConfig(), asked)) == []


def test_all_missing_keys_at_once() -> None:
    (only,) = check_github(configured(app_id=1))
    assert (only.name, only.status) == ("github-keys", "fail")
    assert only.found == "not set: github.installation_id, github.private_key_path"


def test_a_single_key_is_enough_for_a_report() -> None:
    (only,) = check_github(configured(app_id=5))
    assert only.found == "not set: github.installation_id, github.private_key_path"


def test_without_an_app_only_public_repositories_can_be_cloned() -> None:
    (only,) = check_github(configured(server_url="https://git.example.org"))
    assert (only.name, only.status) == ("github-token", "ok")
    assert only.found.startswith("none: only public repositories")


@pytest.mark.parametrize(("token", "status"), [("ghp_mine", "ok"), ("", "fail")], ids=["set", "unset"])
def test_a_token_in_a_variable(token: str, status: str) -> None:
    (only,) = check_github(configured(auth="env:MINE"), environ={"MINE": token})
    assert (only.name, only.status) == ("github-token", status)
    assert "ghp_mine" not in only.found


def test_no_key_file(config: AppConfig) -> None:
    found = last(changed(config, private_key_path="/nowhere/app.pem"))
    assert (found.name, found.status, "/nowhere" in found.found) == ("github-key", "fail", True)


def test_a_file_that_is_not_a_key(config: AppConfig, tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    found = last(changed(config, private_key_path=str(tmp_path / "cert.pem")))
    assert (found.name, "a certificate" in found.found) == ("github-key", True)


def test_a_key_that_others_may_read(config: AppConfig) -> None:
    os.chmod(config.github.private_key_path or "", 0o644)
    found = {check.name: check for check in check_github(config, patient)}
    assert (found["github-key-mode"].status, found["github-key-mode"].fix.startswith("chmod 600 ")) == ("warn", True)
    assert found["github-permissions"].status == "ok"  # a warning stops nothing


def test_no_api(config: AppConfig, github: FakeGitHub) -> None:
    github.down()
    found = last(config)
    assert (found.name, found.status, github.url in found.found) == ("github-api", "fail", True)


def test_an_api_that_does_not_answer(config: AppConfig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the system accepts the connection, and nobody answers
        there = changed(config, api_url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        *_, found = check_github(there, lambda app_id, key, url: app_client(app_id, key, url, timeout=0.05))
    assert (found.name, found.status) == ("github-api", "fail")


def test_another_app_s_key(config: AppConfig, github: FakeGitHub) -> None:
    found = last(changed(config, app_id=99))
    assert (found.name, found.status) == ("github-app", "fail")
    assert "github.app_id" in found.fix


def test_another_installation(config: AppConfig) -> None:
    found = last(changed(config, installation_id=4))
    assert (found.name, found.status) == ("github-installation", "fail")
    assert "github.installation_id" in found.fix


def test_a_suspended_installation(config: AppConfig, github: FakeGitHub) -> None:
    github.suspended = True
    found = last(config)
    assert (found.name, "suspended" in found.found) == ("github-installation", True)


def test_permissions_that_are_not_granted(config: AppConfig) -> None:
    wanted = {"contents": "write", "issues": "write", "metadata": "read"}
    found = last(changed(config, permissions=wanted))
    assert (found.name, found.found) == ("github-permissions", "not granted: issues: write")


def test_no_step_shows_a_secret(config: AppConfig, github: FakeGitHub) -> None:
    for trouble in (401, 403, 404, 429, 500):
        github.fail(trouble, message="ghs_0123456789abcdef0123456789abcdef0123")
        shown = "".join(repr(check) for check in check_github(config, patient))
        assert "0123456789abcdef" not in shown
        assert "PRIVATE KEY" not in shown
        github.recover()

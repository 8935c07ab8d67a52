"""``podbot login`` and ``podbot logout``, from the command line to podbot's state."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from podbot.cli.entry import main
from podbot.cli.globals import Globals
from podbot.cli.login import flow_config
from podbot.credentials.login_store import LoginStore
from tests.credentials.logins import CODEX, spec_of
from tests.session.plans import Place

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def store(place: Place, monkeypatch: pytest.MonkeyPatch) -> LoginStore:
    """Where Codex's login is kept; HOME and podbot's state are empty directories."""
    for name in ("home", "state"):
        os.mkdir(os.path.join(place.base, name), 0o700)
    os.mkdir(os.path.join(place.base, "state", "podbot"), 0o700)
    monkeypatch.setenv("HOME", os.path.join(place.base, "home"))
    monkeypatch.setenv("XDG_STATE_HOME", os.path.join(place.base, "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", place.environ["XDG_RUNTIME_DIR"])
    os.makedirs(os.path.join(place.base, "state", "podbot", "logins"), 0o700)
    return LoginStore(os.path.join(place.base, "state", "podbot", "logins", "codex"), spec_of("codex"))


def test_the_list_shows_each_agent_s_login(store: LoginStore, capfd: Capture) -> None:
    store.save(json.dumps(CODEX).encode())
    login = Path(os.environ["HOME"], ".claude", ".credentials.json")
    login.parent.mkdir()
    login.write_text("{}")
    assert main(["login", "--list"]) == 0
    lines = capfd.readouterr().out.splitlines()
    blank = f"{login}: has no login: its tokens are missing or blank"
    assert lines[1].rstrip().split(maxsplit=1) == ["claude", f"a copy of this host's  {blank}"]
    assert lines[2].strip().startswith("fix: run `podbot login claude`, or pass in an API key: `-e ANTHROPIC_API_KEY`")
    assert "podbot's own" in lines[3]
    assert lines[4].split(maxsplit=2)[:2] == ["gemini", "none"]
    assert lines[4].split(maxsplit=2)[2].startswith("fix: run `podbot login gemini`, or pass in an API key")
    assert lines[5].split() == ["opencode", "none", "podbot", "login", "opencode"]  # it needs none
    assert len(lines) == 6
    assert main(["login", "--list", "--json"]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert {row["agent"]: row["source"] for row in rows} == {
        "claude": "host", "codex": "podbot", "gemini": "none", "opencode": "none",
    }  # fmt: skip
    assert {row["agent"]: row["state"]["state"] for row in rows} == {
        "claude": "blank", "codex": "usable", "gemini": "none", "opencode": "none",
    }  # fmt: skip


def test_the_list_is_of_what_the_configuration_gives_to_sessions(
    store: LoginStore, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(json.dumps(CODEX).encode())
    monkeypatch.setenv("PODBOT_CREDS_COPY_PODBOT", "false")
    monkeypatch.setenv("PODBOT_AGENT_ENV_ALLOWLIST", "GEMINI_API_KEY")
    monkeypatch.setenv("GEMINI_API_KEY", "c4n4ry")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "relative")
    assert main(["login", "--list"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert "CLAUDE_CONFIG_DIR" in lines[1]
    assert "'relative' is not an absolute path" in lines[1]
    assert lines[2].strip().startswith("fix: ")
    assert "creds.copy_claude" in lines[2]
    assert lines[3].split(maxsplit=2)[:2] == ["codex", "none"]
    assert lines[3].split(maxsplit=2)[2].startswith("fix: set creds.copy_podbot = true for the login")
    assert lines[4].split() == ["gemini", "GEMINI_API_KEY"]


def test_the_list_says_of_a_key_that_it_is_empty_and_what_to_do(
    store: LoginStore, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only `--json` did."""
    store.save(json.dumps(CODEX).encode())
    monkeypatch.setenv("PODBOT_AGENT_ENV_ALLOWLIST", "GEMINI_API_KEY,OPENAI_API_KEY")
    monkeypatch.setenv("GEMINI_API_KEY", "")
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    assert main(["login", "--list"]) == 0
    lines = capfd.readouterr().out.splitlines()
    column = lines[2].index("renewed")
    assert (
        lines[3].strip()
        == lines[3][column:].strip()
        == "OPENAI_API_KEY: the value is empty, so it does not log codex in"
    )
    assert lines[4][:column].split() == ["gemini", "none"]
    assert lines[4][column:].strip() == "GEMINI_API_KEY: the value is empty, so it does not log gemini in"
    assert lines[5][:column].strip() == ""
    assert lines[5][column:].startswith("fix: run `podbot login gemini`, or pass in an API key")


def test_logout_removes_it_and_says_what_it_does_not(store: LoginStore, capfd: Capture) -> None:
    store.save(json.dumps(CODEX).encode())
    assert main(["logout", "codex"]) == 0
    assert "to revoke it, use its provider's settings" in capfd.readouterr().err
    assert store.saved_at() is None
    assert main(["logout", "codex"]) == 2
    assert "podbot keeps no login of codex" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["login"], "name an AGENT, or use --list"),
        (["login", "codex", "--list"], "AGENT and --list exclude each other"),
        (["login", "codex", "--json"], "--json is for --list"),
        (["login", "nosuch"], "'nosuch' is not an agent whose login podbot keeps"),
        (["logout", "custom"], "'custom' is not an agent whose login podbot keeps"),
        (["login", "codex"], "a login flow needs a terminal"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes(store: LoginStore, capfd: Capture, words: list[str], said: str) -> None:
    assert main(words) == 2
    assert said in capfd.readouterr().err
    assert not os.path.exists(store.path)


def test_a_login_s_sandbox_has_no_settings_of_a_project(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        f"""
[workspace]
source = "host_mount"
host_path = "{tmp_path}"
[sandbox]
network = "corp"
[project."{tmp_path}".sandbox]
network = "host"
"""
    )
    found = flow_config(Globals(config=str(file)), {"HOME": str(tmp_path)})
    assert (found.sandbox.network, found.project) == ("corp", None)

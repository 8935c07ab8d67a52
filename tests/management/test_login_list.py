"""Which login the sessions of each agent get."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from podbot.agents.login_state import LoginState
from podbot.config.models import AppConfig
from podbot.credentials.login_store import LoginStore
from podbot.management.login_list import AgentLogin, list_logins, remove_login
from tests.credentials.logins import CODEX, spec_of


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    tmp_path.chmod(0o700)
    for name in ("home", "state", "run"):
        (tmp_path / name).mkdir(mode=0o700)
    return {
        "HOME": str(tmp_path / "home"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
    }


def test_own_logins_copies_and_none(environ: dict[str, str]) -> None:
    (state,) = (Path(environ["XDG_STATE_HOME"], "podbot"),)
    (state / "logins").mkdir(mode=0o700, parents=True)
    state.chmod(0o700)
    LoginStore(str(state / "logins" / "codex"), spec_of("codex")).save(json.dumps(CODEX).encode())
    login = Path(environ["HOME"], ".claude", ".credentials.json")
    login.parent.mkdir()
    login.write_text("{}")
    found = {row.agent: row for row in list_logins(environ, AppConfig())}
    assert list(found) == ["claude", "codex", "gemini", "opencode"]
    assert replace(found["claude"], advice="") == AgentLogin(
        "claude", "host", path=str(login), state=LoginState("blank", ".credentials.json")
    )
    assert (found["codex"].source, found["codex"].since is not None) == ("podbot", True)
    assert {found["gemini"].source, found["opencode"].source} == {"none"}
    assert remove_login(environ, "codex")
    assert not remove_login(environ, "codex")
    assert {row.source for row in list_logins(environ, AppConfig())} == {"host", "none"}


def test_one_bad_variable_does_not_hide_the_other_logins(environ: dict[str, str]) -> None:
    environ["CLAUDE_CONFIG_DIR"] = "relative"
    found = {row.agent: row for row in list_logins(environ, AppConfig())}
    assert list(found) == ["claude", "codex", "gemini", "opencode"]
    state = found["claude"].state
    assert (state.state, state.where) == ("unreadable", "CLAUDE_CONFIG_DIR")
    assert "not an absolute path" in state.reason
    assert "creds.copy_claude" in found["claude"].advice


def test_listing_creates_nothing(environ: dict[str, str]) -> None:
    list_logins(environ, AppConfig())
    assert list(Path(environ["XDG_STATE_HOME"]).iterdir()) == []

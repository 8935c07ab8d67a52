"""What the shell completes, and that the options know it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import typer

from podbot.agents.registry import names
from podbot.cli import completion
from podbot.cli.app import root
from podbot.launch.resources.history import HistoryPlan, project_key
from podbot.launch.types import Mount
from podbot.management.history_list import history_root
from podbot.session.history import history_in_use
from podbot.session.sessions import session_directory


def test_names_of_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with session_directory(str(tmp_path / "podbot" / "podbot-a"), "e"):
        assert completion.complete_session("podbot-") == ["podbot-a"]
        assert completion.complete_session("x") == []


def test_agents_and_modes() -> None:
    assert completion.complete_agent("c") == [name for name in names() if name.startswith("c")]
    assert completion.complete_agent("cl") == ["claude"]
    assert completion.complete_run_mode("") == ["podbot"]
    assert completion.complete_host_mode("c") == ["codex_app_server"]


def test_projects_with_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert completion.complete_project("") == []
    for project in ("/home/ann/shop", "https://github.com/octo/hello"):
        key = project_key("host_mount", project)
        directory = os.path.join(history_root(os.environ), key)
        with history_in_use(HistoryPlan(key, directory, project, Mount(os.path.join(directory, "claude"), "/x"), ())):
            pass
    assert completion.complete_project("/") == ["/home/ann/shop"]
    assert completion.complete_project("octo") == ["octo/hello"]
    assert completion.complete_project("https") == ["https://github.com/octo/hello"]


@pytest.mark.parametrize(
    ("command", "parameter", "begun", "offered"),
    [
        ("run", "agent", "op", ["opencode"]),
        ("run", "agent_mode", "", ["podbot"]),
        ("host", "agent", "g", ["gemini"]),
        ("host", "agent_mode", "a", ["acp"]),
        ("history rm", "agent", "op", ["opencode"]),
    ],
)
def test_options_offer_their_values(command: str, parameter: str, begun: str, offered: list[str]) -> None:
    found = root()
    for word in command.split():
        found = found.commands[word]
    (option,) = [one for one in found.params if one.name == parameter]
    context = typer.Context(found)
    assert [item.value for item in option.shell_complete(context, begun)] == offered

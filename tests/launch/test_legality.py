from __future__ import annotations

import itertools
from typing import Any, get_args

import pytest

from podbot.config.models import AGENT_KINDS, DEFAULT_ORIGIN, AgentMode, Origin, WorkspaceSource
from podbot.errors import IllegalCombination
from podbot.launch import legality
from podbot.launch.legality import check, for_subcommand
from podbot.launch.types import Subcommand
from tests.launch.build import config

SUBCOMMANDS = get_args(Subcommand)
MODES = get_args(AgentMode)
SOURCES = get_args(WorkspaceSource)
# Spelled out on purpose, and not computed from the tables that it checks.
LEGAL = {
    (*combination, source)
    for source in ("host_mount", "github_clone")
    for combination in (
        ("run", "claude", "podbot"),
        ("run", "codex", "podbot"),
        ("run", "opencode", "podbot"),
        ("run", "gemini", "podbot"),
        ("run", "custom", "podbot"),
        ("host", "claude", "acp"),
        ("host", "codex", "acp"),
        ("host", "codex", "codex_app_server"),
        ("host", "opencode", "acp"),
        ("host", "gemini", "acp"),
        ("host", "custom", "acp"),
        ("host", "custom", "codex_app_server"),
    )
}


@pytest.mark.parametrize("combination", list(itertools.product(SUBCOMMANDS, AGENT_KINDS, MODES, SOURCES)))
def test_the_whole_product(combination: tuple[Any, str, str, str]) -> None:
    subcommand, kind, mode, source = combination
    made = config({"agent.kind": kind, "agent.mode": mode, "workspace.source": source, "workspace.host_path": None})
    if combination in LEGAL:
        check(made, subcommand)
        return
    with pytest.raises(IllegalCombination) as caught:
        check(made, subcommand)
    error = caught.value
    assert error.value in {mode, source}
    assert error.origin == "config file /home/ann/.config/podbot/config.toml"
    assert error.reason
    assert error.hint


def refused(values: dict[str, Any], subcommand: Any, origins: dict[str, Origin] | None = None) -> IllegalCombination:
    with pytest.raises(IllegalCombination) as caught:
        check(config(values, origins), subcommand)
    return caught.value


def test_run_with_a_protocol_mode_points_at_the_mode_of_run() -> None:
    error = refused({"agent.kind": "claude", "agent.mode": "acp"}, "run")
    assert error.field == "agent.mode"
    assert "`podbot run --agent-mode podbot`" in error.hint


def test_host_with_the_interactive_mode_names_the_modes_that_this_kind_has() -> None:
    origin = Origin("flag", "--agent-mode")
    error = refused({"agent.kind": "codex", "agent.mode": "podbot"}, "host", {"agent.mode": origin})
    assert error.origin == "flag --agent-mode"
    assert "--agent-mode acp or codex_app_server" in error.hint
    error = refused({"agent.kind": "gemini", "agent.mode": "podbot"}, "host")
    assert "codex_app_server" not in error.hint


def test_a_mode_that_a_kind_lacks_lists_what_it_has_and_who_has_it() -> None:
    error = refused({"agent.kind": "claude", "agent.mode": "codex_app_server"}, "host")
    assert error.reason.endswith("has only: podbot, acp")
    assert "config file" in error.reason
    assert "--agent codex or custom" in error.hint


def test_a_source_that_a_subcommand_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(legality.SUBCOMMAND_SOURCES, "run", ("host_mount",))
    error = refused({"workspace.source": "github_clone"}, "run", {"workspace.source": DEFAULT_ORIGIN})
    assert (error.field, error.reason) == ("workspace.source", "`podbot run` has only: host_mount")


def test_a_mode_that_nobody_set_is_the_subcommand_s_own() -> None:
    made = config({"agent.kind": "codex"})
    assert for_subcommand(made, "host").agent.mode == "acp"
    assert for_subcommand(made, "run").agent.mode == "podbot"
    assert for_subcommand(made, "host").origin("agent.kind") == made.origin("agent.kind")
    set_on_purpose = config({"agent.mode": "podbot"})
    assert for_subcommand(set_on_purpose, "host") is set_on_purpose
    assert "interactive" in refused({"agent.mode": "podbot"}, "host").reason

from __future__ import annotations

import itertools
from typing import Any, get_args

import pytest

from podbot.agents.registry import AgentMode, agent
from podbot.config.models import AGENT_KINDS, DEFAULT_ORIGIN, Origin, WorkspaceSource
from podbot.errors import IllegalCombination
from podbot.launch.legality import USES, check, check_effects, for_subcommand
from podbot.launch.types import Subcommand
from tests.launch.build import FILE, config

SUBCOMMANDS = get_args(Subcommand)
MODES = get_args(AgentMode)
SOURCES = get_args(WorkspaceSource)
SPELLED_OUT = {"claude", "codex", "opencode", "gemini", "custom"}
# Written out on purpose, and not computed from the tables that it checks. Other agents are defined by their commands.
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
        *(
            ("run" if mode == "podbot" else "host", kind, mode)
            for kind in AGENT_KINDS
            if kind not in SPELLED_OUT
            for mode in agent(kind).commands
        ),
        *(("sandbox", kind, mode) for kind in AGENT_KINDS for mode in MODES),  # it has no agent
    )
} | {("sandbox", kind, mode, "none") for kind in AGENT_KINDS for mode in MODES}  # and needs nothing to work on


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


def test_run_with_a_protocol_mode_names_runs_own_mode() -> None:
    error = refused({"agent.kind": "claude", "agent.mode": "acp"}, "run")
    assert error.field == "agent.mode"
    assert "Set agent.mode = podbot, or have the editor start host." in error.hint


def test_host_with_the_interactive_mode_names_the_kinds_modes() -> None:
    origin = Origin("flag", "--agent-mode")
    error = refused({"agent.kind": "codex", "agent.mode": "podbot"}, "host", {"agent.mode": origin})
    assert error.origin == "flag --agent-mode"
    assert "agent.mode = acp or codex_app_server" in error.hint
    error = refused({"agent.kind": "gemini", "agent.mode": "podbot"}, "host")
    assert "codex_app_server" not in error.hint


def test_a_mode_that_a_kind_lacks_lists_its_modes_and_the_kinds_with_that_mode() -> None:
    error = refused({"agent.kind": "claude", "agent.mode": "codex_app_server"}, "host")
    assert error.reason.endswith("has only: podbot, acp")
    assert "config file" in error.reason
    assert "agent.kind = codex or custom" in error.hint


def test_an_unset_mode_is_the_subcommands_default() -> None:
    made = config({"agent.kind": "codex"})
    assert for_subcommand(made, "host").agent.mode == "acp"
    assert for_subcommand(made, "run").agent.mode == "podbot"
    assert for_subcommand(made, "host").origin("agent.kind") == made.origin("agent.kind")
    set_on_purpose = config({"agent.mode": "podbot"})
    assert for_subcommand(set_on_purpose, "host") is set_on_purpose
    assert "interactive" in refused({"agent.mode": "podbot"}, "host").reason


# --- settings without effect ---

FLAG = Origin("flag", "--some-flag")
OVERRIDE = Origin("override")
VARIABLE = Origin("environment", "PODBOT_X")
# key: (a value that is not the default, the choice, a value with which it has an effect, one with which it has none)
IDLE: dict[str, tuple[Any, str, str, str]] = {
    "agent.command": ("mine", "agent.kind", "custom", "codex"),
    "agent.args": (("-x",), "agent.kind", "custom", "codex"),
    "agent.permissions": ("ask", "agent.kind", "codex", "custom"),
    "agent.delegation": ("fs", "agent.mode", "acp", "codex_app_server"),
    "agent.frame_limit": ("1m", "agent.mode", "acp", "podbot"),
    "agent.extra_methods": (("_x/y",), "agent.mode", "codex_app_server", "podbot"),
    "agent.mcp_servers": ("pass", "agent.mode", "acp", "podbot"),
    "session.logs": (True, "agent.mode", "podbot", "acp"),
    "workspace.base_dir": ("/src", "workspace.source", "github_clone", "host_mount"),
    "workspace.depth": (1, "workspace.source", "github_clone", "host_mount"),
    "workspace.submodules": (True, "workspace.source", "github_clone", "host_mount"),
    "workspace.host_path": ("/x", "workspace.source", "host_mount", "github_clone"),
    "workspace.container_path": ("/x", "workspace.source", "host_mount", "github_clone"),
    "workspace.guard": ("off", "workspace.source", "host_mount", "github_clone"),
    "workspace.read_only": (True, "workspace.source", "host_mount", "github_clone"),
    "sandbox.mount_dev_fuse": (True, "sandbox.profile", "minimal", "privileged"),
    "sandbox.own_user_ids": (True, "sandbox.profile", "sealed", "privileged"),
    "sandbox.selinux_label_mode": ("keep_default", "sandbox.profile", "hardened", "privileged"),
}
NOTED = {"agent.command", "agent.args", "agent.permissions", "agent.delegation", "workspace.read_only"} | {
    key for key in IDLE if key.startswith("sandbox.")
}


def with_idle(key: str, origin: Origin, chosen_by: Origin, *, used: bool) -> Any:
    value, choice, with_effect, without = IDLE[key]
    values = {"workspace.host_path": None, choice: with_effect if used else without, key: value}
    return config(values, {key: origin, choice: chosen_by})


def test_the_table_matches_the_one_in_the_tests() -> None:
    assert {key for use in USES for key in use.keys} == set(IDLE)


@pytest.mark.parametrize("key", IDLE)
@pytest.mark.parametrize("origin", [FLAG, OVERRIDE, VARIABLE, FILE])
def test_a_setting_with_an_effect_is_not_reported(key: str, origin: Origin) -> None:
    assert check_effects(with_idle(key, origin, FILE, used=True), "run") == ()


@pytest.mark.parametrize("key", IDLE)
@pytest.mark.parametrize("origin", [FLAG, OVERRIDE])
def test_a_setting_given_for_this_session_is_never_ignored(key: str, origin: Origin) -> None:
    """Issue 10.3: `--acp-delegation` with the Codex App Server was accepted and ignored."""
    with pytest.raises(IllegalCombination) as caught:
        check_effects(with_idle(key, origin, FILE, used=False), "run")
    error = caught.value
    assert (error.field, error.origin) == (key, str(origin))
    assert IDLE[key][1] in error.reason
    assert IDLE[key][3] in error.reason
    assert error.hint


@pytest.mark.parametrize("key", IDLE)
@pytest.mark.parametrize("origin", [FILE, VARIABLE])
def test_a_setting_in_the_file_for_other_sessions_is_no_error(key: str, origin: Origin) -> None:
    notes = check_effects(with_idle(key, origin, FILE, used=False), "run")
    assert len(notes) == (key in NOTED)
    assert all(note.startswith(f"{key} ({origin}) has no effect: only {IDLE[key][1]} = ") for note in notes)


@pytest.mark.parametrize("key", ["agent.command", "agent.args"])
def test_a_custom_agents_command_with_another_agent(key: str) -> None:
    """Not reported when the agent was chosen for this session; refused when no agent was chosen."""
    for by in (FLAG, OVERRIDE):
        assert check_effects(with_idle(key, FILE, by, used=False), "run") == ()
    with pytest.raises(IllegalCombination) as caught:
        check_effects(with_idle(key, FILE, DEFAULT_ORIGIN, used=False), "run")
    assert caught.value.hint.startswith("Set agent.kind = custom")


def test_a_default_is_not_an_explicit_setting() -> None:
    for key, (_, choice, _, without) in IDLE.items():
        assert check_effects(config({"workspace.host_path": None, choice: without}, {key: DEFAULT_ORIGIN}), "run") == ()
    same = config({"agent.mode": "codex_app_server", "agent.delegation": "none"}, {"agent.delegation": FLAG})
    assert check_effects(same, "run") == ()


@pytest.mark.parametrize("subcommand", ["run", "host"])
def test_an_agent_needs_a_root_that_it_can_write(subcommand: Any) -> None:
    made = for_subcommand(config({"sandbox.profile": "sealed"}), subcommand)
    with pytest.raises(IllegalCombination) as caught:
        check(made, subcommand)
    assert (caught.value.field, caught.value.value) == ("sandbox.profile", "sealed")
    check(config({"sandbox.profile": "sealed"}), "sandbox")


def test_the_other_spelling_of_the_privileged_profile() -> None:
    made = config({"sandbox.privileged": True, "sandbox.mount_dev_fuse": True})
    assert "here it is privileged" in check_effects(made, "run")[0]


def test_delegation_in_the_file_applies_to_host_and_is_not_reported_in_run() -> None:
    assert check_effects(config({"agent.delegation": "fs"}, {"agent.mode": DEFAULT_ORIGIN}), "run") == ()

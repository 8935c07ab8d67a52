from __future__ import annotations

from typing import get_args

import pytest

from podbot.config.models import AGENT_KINDS, AgentConfig, AgentKind, AgentMode
from podbot.errors import MissingRequired
from podbot.launch.agents import AGENTS, command_for

CODEX = ("codex", "-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false")
EXPECTED: dict[tuple[AgentKind, AgentMode], tuple[str, ...]] = {
    ("claude", "podbot"): ("claude", "--dangerously-skip-permissions"),
    ("claude", "acp"): ("claude-agent-acp",),
    ("codex", "podbot"): (*CODEX, "--dangerously-bypass-approvals-and-sandbox"),
    ("codex", "acp"): ("codex-acp",),
    ("codex", "codex_app_server"): (*CODEX, "app-server", "--listen", "stdio://"),
    ("opencode", "podbot"): ("opencode",),
    ("opencode", "acp"): ("opencode", "acp"),
    ("gemini", "podbot"): ("gemini", "--yolo"),
    ("gemini", "acp"): ("gemini", "--acp"),
}


def test_every_kind_has_an_entry_and_only_the_expected_modes() -> None:
    assert set(AGENTS) == set(AGENT_KINDS)
    known = {(kind, mode) for kind, agent in AGENTS.items() for mode in agent.commands if kind != "custom"}
    assert known == set(EXPECTED)
    assert set(AGENTS["custom"].commands) == set(get_args(AgentMode))


@pytest.mark.parametrize(("kind", "mode"), EXPECTED)
def test_known_kind_appends_the_words(kind: AgentKind, mode: AgentMode) -> None:
    agent = AgentConfig(kind=kind, mode=mode, command="ignored", args=("ignored",))
    assert command_for(agent) == EXPECTED[kind, mode]
    assert command_for(agent, ("--model", "x y")) == (*EXPECTED[kind, mode], "--model", "x y")


@pytest.mark.parametrize("mode", get_args(AgentMode))
def test_custom_words_are_the_whole_command(mode: AgentMode) -> None:
    agent = AgentConfig(kind="custom", mode=mode, command="goose", args=("acp",))
    assert command_for(agent, ("sh", "-c", "true")) == ("sh", "-c", "true")
    assert command_for(agent) == ("goose", "acp")


@pytest.mark.parametrize("command", [None, "", "  "])
def test_custom_without_a_command_says_how_to_name_one(command: str | None) -> None:
    with pytest.raises(MissingRequired) as caught:
        command_for(AgentConfig(kind="custom", command=command, args=("left", "over")))
    assert caught.value.field == "agent.command"
    assert "podbot run --agent custom -- CMD" in str(caught.value)


def test_claude_needs_is_sandbox_to_be_exactly_one() -> None:
    assert AGENTS["claude"].env["IS_SANDBOX"] == "1"


def test_no_agent_updates_itself_or_asks_before_it_works() -> None:
    assert AGENTS["claude"].env["DISABLE_AUTOUPDATER"] == "1"
    assert AGENTS["opencode"].env == {"OPENCODE_DISABLE_AUTOUPDATE": "1"}
    assert AGENTS["gemini"].env == {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_SANDBOX": "false"}
    assert not AGENTS["codex"].env  # it takes its settings as arguments
    assert not AGENTS["custom"].env

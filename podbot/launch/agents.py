"""The agents that podbot knows, as data: kind x mode -> command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from podbot.config.models import AgentConfig, AgentKind, AgentMode
from podbot.errors import MissingRequired

CUSTOM_HINT = "Name it after --: `podbot run --agent custom -- CMD ARGS…`, or set agent.command."


class Agent(NamedTuple):
    """A kind of agent; ``env`` is what it needs to start at all."""

    commands: Mapping[AgentMode, tuple[str, ...]]
    env: Mapping[str, str] = {}


# Measured: on a closed network codex starts in 0.46 s with analytics off, in 5.5 s without. `-c` is an
# option of the program, so it stands before the subcommand.
_CODEX = ("codex", "-c", "analytics.enabled=false")
_CUSTOM: tuple[str, ...] = ()  # the operator's own words, in any mode

AGENTS: Mapping[AgentKind, Agent] = {
    "claude": Agent(
        {"podbot": ("claude", "--dangerously-skip-permissions"), "acp": ("claude-agent-acp",)},
        # It refuses to skip permissions as root unless this is exactly "1".
        env={"IS_SANDBOX": "1"},
    ),
    "codex": Agent(
        {
            "podbot": (*_CODEX, "--dangerously-bypass-approvals-and-sandbox"),
            "acp": ("codex-acp",),
            "codex_app_server": (*_CODEX, "app-server", "--listen", "stdio://"),
        }
    ),
    "opencode": Agent({"podbot": ("opencode",), "acp": ("opencode", "acp")}),
    "gemini": Agent({"podbot": ("gemini", "--yolo"), "acp": ("gemini", "--acp")}),
    "custom": Agent({"podbot": _CUSTOM, "acp": _CUSTOM, "codex_app_server": _CUSTOM}),
}


def command_for(agent: AgentConfig, words: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The command that ``agent`` is started by; ``words`` stood after ``--``.

    They are appended to a known kind's command and are the whole of a custom one's. The kind must
    have the mode (``legality.check`` sees to it). Raises MissingRequired for custom without any.
    """
    if agent.kind != "custom":
        return AGENTS[agent.kind].commands[agent.mode] + words
    if words:
        return words
    if agent.command and agent.command.strip():
        return (agent.command, *agent.args)
    raise MissingRequired(field="agent.command", hint=CUSTOM_HINT)

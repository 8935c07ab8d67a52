"""The agents that podbot knows, as data: kind x mode -> command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from podbot.config.models import AgentConfig, AgentKind, AgentMode
from podbot.errors import MissingRequired

CUSTOM_HINT = "Name it after --: `podbot run --agent custom -- CMD ARGS…`, or set agent.command."


class Agent(NamedTuple):
    """A kind of agent; ``env`` is what it needs inside, and neither the operator nor a repository can change."""

    commands: Mapping[AgentMode, tuple[str, ...]]
    env: Mapping[str, str] = {}


# Measured without a network: `codex exec` takes 0.4 s with analytics off, 5.4 s without (it waits to send them at its
# end). An update would be thrown away with the sandbox, so it is not offered. `-c` is an option of the program, so it
# stands before the subcommand.
_CODEX = ("codex", "-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false")
_CUSTOM: tuple[str, ...] = ()  # the operator's own words, in any mode

AGENTS: Mapping[AgentKind, Agent] = {
    "claude": Agent(
        {"podbot": ("claude", "--dangerously-skip-permissions"), "acp": ("claude-agent-acp",)},
        env={
            # It refuses to skip permissions as root unless this is exactly "1".
            "IS_SANDBOX": "1",
            # An image of the operator's own may not say it: the version is the image's.
            "DISABLE_AUTOUPDATER": "1",
        },
    ),
    "codex": Agent(
        {
            "podbot": (*_CODEX, "--dangerously-bypass-approvals-and-sandbox"),
            "acp": ("codex-acp",),
            "codex_app_server": (*_CODEX, "app-server", "--listen", "stdio://"),
        }
    ),
    "opencode": Agent(
        {"podbot": ("opencode",), "acp": ("opencode", "acp")},
        env={"OPENCODE_DISABLE_AUTOUPDATE": "1"},  # as for claude
    ),
    "gemini": Agent(
        {"podbot": ("gemini", "--yolo"), "acp": ("gemini", "--acp")},
        env={
            # Without it, --yolo asks for permission nevertheless, and without a terminal gemini ends with status 55.
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            # A repository's settings could have it start a container of its own inside this one.
            "GEMINI_SANDBOX": "false",
        },
    ),
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

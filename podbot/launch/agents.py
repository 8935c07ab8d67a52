"""What starts the configured agent: command, variables and files. Pure; the data is in ``podbot.agents``."""

from __future__ import annotations

from collections.abc import Mapping

from podbot.agents.registry import CUSTOM
from podbot.agents.registry import agent as known
from podbot.agents.types import TRUSTED
from podbot.config.models import AgentConfig
from podbot.errors import MissingRequired

CUSTOM_HINT = "Name it after --: `podbot run --agent custom -- CMD ARGS…`, or set agent.command."


def agent_env(agent: AgentConfig) -> dict[str, str]:
    """The variables that podbot sets for ``agent``, whatever else sets them."""
    found = known(agent.kind)
    return {**found.env, **found.permission_env.get(agent.permissions, {})}


def agent_files(agent: AgentConfig) -> Mapping[str, str]:
    """Text of the files that podbot mounts for ``agent``, by their places inside."""
    return known(agent.kind).files.get(agent.permissions, {})


def command_for(agent: AgentConfig, words: tuple[str, ...] = (), directory: str | None = "/") -> tuple[str, ...]:
    """The command that ``agent`` is started by; ``words`` stood after ``--``. ``directory``: which one it is to trust.

    They are appended to a known kind's command and are the whole of a custom one's. The kind must
    have the mode (``legality.check`` sees to it). Raises MissingRequired for custom without any.
    """
    if agent.kind != CUSTOM:
        found = known(agent.kind)
        command = (found.asking if agent.permissions == "ask" else found.commands)[agent.mode]
        if found.trust is not None:
            trust = found.trust(directory)
            command = tuple(trust if word == TRUSTED else word for word in command)
        return (*command, *words)
    if words:
        return words
    if agent.command and agent.command.strip():
        return (agent.command, *agent.args)
    raise MissingRequired(field="agent.command", hint=CUSTOM_HINT)

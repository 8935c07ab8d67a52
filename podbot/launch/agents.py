"""The configured agent's command, variables and files. Pure; the data is in ``podbot.agents``."""

from __future__ import annotations

from collections.abc import Mapping

from podbot.agents.definition import TRUSTED
from podbot.agents.registry import CUSTOM, agents
from podbot.agents.registry import agent as known
from podbot.config.models import AgentConfig
from podbot.errors import MissingRequired

CUSTOM_HINT = "Name it after --: `podbot run --agent custom -- CMD ARGS…`, or set agent.command."


def agent_env(agent: AgentConfig) -> dict[str, str]:
    """The variables that podbot sets for ``agent``; they override all others."""
    found = known(agent.kind)
    return {**found.env, **found.permission_env.get(agent.permissions, {})}


def agent_defaults(agent: AgentConfig) -> Mapping[str, str]:
    """The variables that podbot sets for ``agent`` unless the operator does, so that a file of a repository cannot."""
    return known(agent.kind).defaults


def agent_files(agent: AgentConfig) -> dict[str, str]:
    """Text of the files that podbot mounts for ``agent``, by their path inside."""
    found = known(agent.kind)
    files = dict(found.files.get(agent.permissions, {}))
    if not agent.account_connectors:
        # A custom agent can be any of them: it gets their logins, too.
        for each in agents().values() if found.all_families else (found,):
            files |= each.no_connectors
    return files


def command_for(agent: AgentConfig, words: tuple[str, ...] = (), directory: str | None = "/") -> tuple[str, ...]:
    """The command that starts ``agent``. ``words``: the arguments after ``--``. ``directory``: the one it should trust.

    The words are appended to a known kind's command; for a custom agent they are the whole command. The kind must
    support the mode (``legality.check`` ensures it). Raises MissingRequired for a custom agent without a command.
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

"""Which of the operator's logins an agent gets, and what to say when it gets none."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from podbot.agents.registry import agent, agents
from podbot.config.models import AgentKind, AppConfig
from podbot.launch.command import ExecSpec
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import CredentialSource, HostFacts


@dataclass(frozen=True)
class FirstRunSource:
    """A first-run file of the agent ``kind``, of which a reduced one is copied from ``source`` to ``target``.

    ``source``, on the host, may be missing. ``approved_key``: an API key that the copy calls approved.
    """

    kind: AgentKind
    source: str
    target: str
    approved_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class CredentialsPlan:
    """Which of the operator's logins are copied into the sandbox. ``sources``: families that are selected and there.

    ``trusted``: the directory that the first-run files say the operator trusts.
    """

    sources: tuple[CredentialSource, ...] = ()
    first_run: tuple[FirstRunSource, ...] = ()
    trusted: str | None = None

    def described(self) -> list[dict[str, Any]]:
        """Where from and where to; what is in them is not read for a plan."""
        rows = [
            {"family": found.family, "source": found.source, "target": found.target, "reduced": False}
            for found in self.sources
        ]
        reduced = [
            {"family": found.kind, "source": found.source, "target": found.target, "reduced": True}
            for found in self.first_run
        ]
        return rows + reduced


def plan(context: Context) -> Part | None:
    """The logins that the agent gets; None without an agent."""
    if context.command is None:
        return None
    found = plan_credentials(context.config, context.facts, context.command, trusting=context.workspace.trusted)
    notes = map(_copying, found.sources)
    return Part(found, notes=(*notes, *login_notes(context.config, found.sources, context.command.secrets)))


def _copying(found: CredentialSource) -> str:
    return f"copying {found.given} to {found.target}: the agent can use that login (creds.copy_{found.family})"


def selected_family(config: AppConfig, family: str) -> bool:
    """Whether the agent can use this family, and the configuration lets it."""
    wanted: bool = getattr(config.creds, f"copy_{family}")
    return wanted and agent(config.agent.kind).can_use(family)


def plan_credentials(config: AppConfig, facts: HostFacts, command: ExecSpec, *, trusting: bool) -> CredentialsPlan:
    """What the agent that ``command`` starts gets. ``trusting``: podbot answers that its directory is trusted."""
    sources = tuple(found for found in facts.credentials if selected_family(config, found.family))
    return CredentialsPlan(
        sources,
        first_run=_first_run(config, facts, sources, command),
        trusted=command.workdir or "/" if trusting else None,
    )


def _first_run(
    config: AppConfig, facts: HostFacts, credentials: tuple[CredentialSource, ...], command: ExecSpec
) -> tuple[FirstRunSource, ...]:
    """An agent's first-run file accompanies its family, and a login that the operator passes in by a variable."""
    copied = {found.family for found in credentials}
    sources = []
    for kind, found in agents().items():
        made = found.first_run
        if made is None or not selected_family(config, kind):
            continue
        if kind in copied or (config.agent.kind == kind and not command.secrets.isdisjoint(made.variables)):
            # Asked about on the agent's own screen alone: elsewhere no part of the key is to lie in a file.
            key = command.env.get(made.key) if made.key in command.secrets and command.tty else None
            sources.append(FirstRunSource(kind, os.path.join(facts.home, made.path), made.target, key))
    return tuple(sources)


def settings_notes(config: AppConfig, facts: HostFacts) -> tuple[str, ...]:
    """What of the workspace runs commands as soon as the agent starts: whoever wrote it last, perhaps an agent."""
    if not facts.settings:
        return ()
    kind = config.agent.kind
    asked = agent(kind).settings_asked
    text = f"{kind} takes settings from the workspace that can run commands in the sandbox, beside your login"
    return (f"{text}: {', '.join(facts.settings)}{asked and f'; {asked}'}",)


def login_notes(
    config: AppConfig, credentials: tuple[CredentialSource, ...], secrets: frozenset[str]
) -> tuple[str, ...]:
    """What the operator can do, when nothing was found that logs the agent in.

    Some other variable may: those of a provider are called SOMETHING_API_KEY.
    """
    kind = config.agent.kind
    login = agent(kind).login
    if login is None or not login.needed or any(found.logged_in for found in credentials):
        return ()
    given = secrets | config.sandbox.env.keys()
    if not given.isdisjoint(login.variables) or any(name.endswith("_API_KEY") for name in given):
        return ()
    return (f"no login for {kind} was found; to give it one, {login.advice}",)

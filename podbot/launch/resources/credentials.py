"""Plans which of the operator's logins an agent gets, and the note if it gets none."""

from __future__ import annotations

import os
from typing import Any

from podbot.agents.registry import agent, agents, families
from podbot.config.models import AgentKind, AppConfig
from podbot.frozen import Frozen, field
from podbot.launch.command import ExecSpec
from podbot.launch.resources.login import uses_own_login
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import CredentialSource, HostFacts, ResourcePlan, SandboxPlan

# Each renewal replaces the token for the next one, and the server may then refuse the old one, or end the login.
_ENDS = (
    "the sandbox's copy and this host now share one {kind} login: when one of them renews it, the other may have to log"
    " in again; `podbot login {kind}` makes a separate one"
)


class FirstRunSource(Frozen):
    """A first-run file of the agent ``kind``: a reduced copy of ``source`` is written to ``target``.

    ``source``, on the host, may be missing. ``approved_key``: an API key that the copy marks as approved.
    """

    kind: AgentKind
    source: str
    target: str
    approved_key: str | None = field(default=None, repr=False)


class CredentialsPlan(ResourcePlan):
    """The operator's logins to copy into the sandbox. ``sources``: families that are selected and exist.

    ``trusted``: the directory that the first-run files declare as trusted by the operator. ``own``: the agent with a
    login of podbot's own, which replaces that of its family; empty if it has none.
    """

    sources: tuple[CredentialSource, ...] = ()
    first_run: tuple[FirstRunSource, ...] = ()
    trusted: str | None = None
    own: str = ""

    def described(self) -> list[dict[str, Any]]:
        """Sources and targets; a plan does not read the files' content."""
        rows = [
            {"family": found.family, "source": found.source, "target": found.target, "reduced": False}
            for found in self.sources
        ]
        reduced = [
            {"family": found.kind, "source": found.source, "target": found.target, "reduced": True}
            for found in self.first_run
        ]
        return rows + reduced

    def refreshed(self, facts: HostFacts) -> CredentialsPlan:
        """The families that were copied, as this host has them now. A first-run file is not copied a second time."""
        families = {source.family for source in self.sources}
        sources = tuple(source for source in facts.credentials if source.family in families)
        return CredentialsPlan(sources, own=self.own)


def plan(context: Context) -> Part | None:
    """The logins that the agent gets; None without an agent."""
    if context.command is None:
        return None
    found = plan_credentials(context.config, context.facts, context.command, trusting=context.workspace.trusted)
    notes = (note for source in found.sources for note in _copying(source, replaced=source.family == found.own))
    missing = () if found.own else login_notes(context.config, found.sources, context.command.secrets)
    return Part(found, notes=(*notes, *missing))


def copied_targets(sandbox: SandboxPlan) -> tuple[str, ...]:
    """Where the sandbox has the families that were copied into it."""
    credentials = sandbox.find(CredentialsPlan)
    return tuple(found.target for found in credentials.sources) if credentials is not None else ()


def _copying(found: CredentialSource, *, replaced: bool) -> tuple[str, ...]:
    if replaced:
        return (f"copying {found.given} without its login to {found.target} (creds.copy_{found.family})",)
    note = f"copying {found.given} to {found.target}: the agent can use that login (creds.copy_{found.family})"
    return (note, _ENDS.format(kind=found.family)) if found.renews else (note,)


def selected_family(config: AppConfig, family: str) -> bool:
    """Whether the agent can use this family, and the configuration allows it."""
    wanted: bool = getattr(config.creds, f"copy_{family}")
    return wanted and agent(config.agent.kind).can_use(family)


def plan_credentials(config: AppConfig, facts: HostFacts, command: ExecSpec, *, trusting: bool) -> CredentialsPlan:
    """The logins for the agent that ``command`` starts. ``trusting``: declare its directory as trusted."""
    sources = tuple(found for found in facts.credentials if selected_family(config, found.family))
    return CredentialsPlan(
        sources,
        first_run=_first_run(config, facts, sources, command),
        trusted=command.workdir or "/" if trusting else None,
        own=config.agent.kind if uses_own_login(config, facts) else "",
    )


def _first_run(
    config: AppConfig, facts: HostFacts, credentials: tuple[CredentialSource, ...], command: ExecSpec
) -> tuple[FirstRunSource, ...]:
    """First-run files: for each copied family, and for an agent whose login is passed in a variable."""
    copied = {found.family for found in credentials}
    sources = []
    for kind, found in agents().items():
        made = found.first_run
        own = config.agent.kind == kind and uses_own_login(config, facts)
        if made is None or not (own or selected_family(config, kind)):
            continue
        if own or kind in copied or (config.agent.kind == kind and not command.secrets.isdisjoint(made.variables)):
            # Only an interactive agent asks about the key; otherwise no part of it should be in a file.
            key = command.env.get(made.key) if made.key in command.secrets and command.tty else None
            sources.append(FirstRunSource(kind, os.path.join(facts.home, made.path), made.target, key))
    return tuple(sources)


def settings_notes(config: AppConfig, facts: HostFacts) -> tuple[str, ...]:
    """A note on settings in the workspace that run commands when the agent starts; an agent may have written them."""
    if not facts.settings:
        return ()
    kind = config.agent.kind
    asked = agent(kind).settings_asked
    text = f"{kind} reads settings from the workspace that can run commands in the sandbox, where your login is"
    return (f"{text}: {', '.join(facts.settings)}{asked and f'; {asked}'}",)


def login_notes(
    config: AppConfig, credentials: tuple[CredentialSource, ...], secrets: frozenset[str]
) -> tuple[str, ...]:
    """A note on what the operator can do if no login for the agent was found. None if a flag asked for no logins.

    Any variable named SOMETHING_API_KEY counts as a login, because that is how providers call theirs.
    """
    kind = config.agent.kind
    login = agent(kind).login
    if login is None or not login.needed or any(found.logged_in for found in credentials) or _unwanted(config):
        return ()
    given = secrets | config.sandbox.env.keys()
    if not given.isdisjoint(login.variables) or any(name.endswith("_API_KEY") for name in given):
        return ()
    return (f"no login for {kind} was found; to give it one, {login.advice}",)


def _unwanted(config: AppConfig) -> bool:
    """Whether the operator decided for this session that no family is copied."""
    return all(config.origin(f"creds.copy_{family}").kind in ("flag", "override") for family in families()) and not any(
        getattr(config.creds, f"copy_{family}") for family in families()
    )

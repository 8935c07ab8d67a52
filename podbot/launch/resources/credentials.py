"""Plans which of the operator's logins an agent gets, and the note if it gets none."""

from __future__ import annotations

import os
from typing import Any

from podbot.agents.definition import HOME
from podbot.agents.login_state import LoginState, iso
from podbot.agents.registry import agent, agents
from podbot.config.models import AgentKind, AppConfig
from podbot.exec_spec import ExecSpec
from podbot.frozen import Frozen, field
from podbot.launch.judged_logins import copied_login, inside, is_held, login_notes
from podbot.launch.resources.login import host_login, selected_family, uses_own_login
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import CredentialSource, HostFacts, ResourcePlan, SandboxPlan

# Each renewal replaces the token for the next one, and the server may then refuse the old one, or end the login.
# `--no-creds`: beside a login that works, podbot makes none of a key, and the copy would be there all the same.
_ENDS = (
    "the sandbox's copy and this host share one {kind} login: when the sandbox renews it, this host may have to log in"
    " again. Without that: `podbot login {kind}`, creds.copy_refresh_tokens = false, or `--no-creds` with {key}"
)


class FirstRunSource(Frozen):
    """A first-run file of the agent ``kind``: a reduced copy of ``source`` is written to ``target``.

    ``source``, on the host, may be missing; empty: none is read. ``approved_key``: an API key that the copy marks as
    approved.
    """

    kind: AgentKind
    source: str
    target: str
    approved_key: str | None = field(default=None, repr=False)


class CredentialsPlan(ResourcePlan):
    """The operator's logins to copy into the sandbox. ``sources``: families that are selected and exist.

    ``trusted``: the directory that the first-run files declare as trusted by the operator. ``own``: the agent with a
    login that the sandbox mounts in place of that of its family; empty if it has none. ``renewable``: logins are copied
    with the token that renews them. ``keyed``: the agent for which podbot writes a login from ``key``, instead of that
    of its family; empty if it writes none.
    """

    sources: tuple[CredentialSource, ...] = ()
    first_run: tuple[FirstRunSource, ...] = ()
    trusted: str | None = None
    own: str = ""
    renewable: bool = True
    keyed: str = ""
    key: str = field(default="", repr=False)

    @property
    def has_login(self) -> bool:
        """Whether the sandbox gets a login's files."""
        return bool(self.sources or self.own or self.keyed)

    def described(self) -> list[dict[str, Any]]:
        """Sources and targets; a plan does not read the files' content."""
        rows = [
            {"family": found.family, "source": found.source, "target": found.target, "reduced": False}
            for found in self.sources
        ]
        reduced = [
            {"family": found.kind, "source": found.source or None, "target": found.target, "reduced": True}
            for found in self.first_run
        ]
        return rows + reduced

    def refreshed(self, facts: HostFacts) -> CredentialsPlan:
        """The families that were copied, as this host has them now. What podbot itself made is not made again."""
        families = {source.family for source in self.sources}
        sources = tuple(source for source in facts.credentials if source.family in families)
        return CredentialsPlan(sources, own=self.own, renewable=self.renewable, keyed=self.keyed)


def plan(context: Context) -> Part | None:
    """The logins that the agent gets; None without an agent."""
    if context.command is None:
        return None
    found = plan_credentials(context.config, context.facts, context.command, trusting=context.workspace.trusted)
    own = context.config.agent.kind if uses_own_login(context.config, context.facts) else ""
    notes = [note for source in found.sources for note in _copying(source, context.facts, (own, found.keyed))]
    if found.keyed:
        variable = inside(context.config, context.facts, context.command)
        notes.append(f"{found.keyed} gets a login that podbot makes of {variable.where if variable else 'its key'}")
    home = {**context.config.sandbox.env, **context.command.env}.get("HOME", HOME)
    if os.path.normpath(home) != HOME and found.has_login:
        notes.append(f"HOME is {home!r} for the agent, which may then not find its login: podbot puts it below {HOME}")
    return Part(found, notes=(*notes, *login_notes(context.config, context.facts, context.command)))


def copied_targets(sandbox: SandboxPlan) -> tuple[str, ...]:
    """Where the sandbox has the families that were copied into it."""
    credentials = sandbox.find(CredentialsPlan)
    return tuple(found.target for found in credentials.sources) if credentials is not None else ()


def _copying(found: CredentialSource, facts: HostFacts, replaced: tuple[str, ...]) -> tuple[str, ...]:
    """``replaced``: the families whose login is not the host's."""
    key = f"(creds.copy_{found.family})"
    if found.family in replaced:
        return (f"copying {found.given} without its login to {found.target} {key}",)
    copying = f"copying {found.given} to {found.target}"
    if not found.logged_in:
        return (f"{copying} {key}; it has no login that works",)
    note = f"{copying}: the agent can use that login{_until(copied_login(found, facts))} {key}"
    login = agent(found.family).login
    ends = _ENDS.format(kind=found.family, key=login.instead if login is not None else "")
    return (note, ends) if found.renews else (note,)


def _until(state: LoginState) -> str:
    return f" until {iso(state.at)}" if state.at is not None else ""


def plan_credentials(config: AppConfig, facts: HostFacts, command: ExecSpec, *, trusting: bool) -> CredentialsPlan:
    """The logins for the agent that ``command`` starts. ``trusting``: declare its directory as trusted."""
    sources = tuple(found for found in facts.credentials if selected_family(config, found.family))
    keyed = _key(config, facts, command)
    return CredentialsPlan(
        sources,
        keyed=config.agent.kind if keyed else "",
        key=keyed,
        first_run=_first_run(config, facts, sources, command),
        trusted=command.workdir or "/" if trusting else None,
        own=config.agent.kind if uses_own_login(config, facts) or host_login(config, facts) else "",
        renewable=config.creds.copy_refresh_tokens,
    )


def _key(config: AppConfig, facts: HostFacts, command: ExecSpec) -> str:
    """The key of which podbot makes a login, because the agent would not look for it; empty if there is none.

    A placeholder for a key that the gateway holds is none: the agent's settings name its variable.
    """
    spec, state = agent(config.agent.kind).key_login, inside(config, facts, command)
    if spec is None or state is None or state.state != "key" or state.where not in spec.variables:
        return ""
    value = {**config.sandbox.env, **command.env}[state.where].strip()
    return "" if is_held(value, facts) else value


def _first_run(
    config: AppConfig, facts: HostFacts, credentials: tuple[CredentialSource, ...], command: ExecSpec
) -> tuple[FirstRunSource, ...]:
    """First-run files: for each copied family, and for an agent whose login is passed in a variable.

    Without the family nothing of the host's own file is read: the agent only skips its questions at a first start.
    """
    copied = {found.family for found in credentials}
    sources = []
    for kind, found in agents().items():
        made = found.first_run
        own = config.agent.kind == kind and uses_own_login(config, facts)
        if made is None:
            continue
        if own or kind in copied or (config.agent.kind == kind and not command.secrets.isdisjoint(made.variables)):
            # Only an interactive agent asks about the key; otherwise no part of it should be in a file.
            key = command.env.get(made.key) if made.key in command.secrets and command.tty else None
            # The agent keeps it beside its other files if its variable names their directory, otherwise in the home.
            place = dict(facts.login_dirs).get(kind, facts.home)
            source = os.path.join(place, made.path) if own or selected_family(config, kind) else ""
            sources.append(FirstRunSource(kind, source, made.target, key))
    return tuple(sources)


def settings_notes(config: AppConfig, facts: HostFacts) -> tuple[str, ...]:
    """A note on settings in the workspace that run commands when the agent starts; an agent may have written them."""
    if not facts.settings:
        return ()
    kind = config.agent.kind
    asked = agent(kind).settings_asked
    text = f"{kind} reads settings from the workspace that can run commands in the sandbox, where your login is"
    return (f"{text}: {', '.join(facts.settings)}{asked and f'; {asked}'}",)

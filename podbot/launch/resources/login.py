"""Plans the login that a session mounts: a private copy of podbot's own (ADR 0042), or of the host's (ADR 0048)."""

from __future__ import annotations

import os
from typing import Any

from podbot.agents.definition import OWN_LOGIN, OwnLogin
from podbot.agents.registry import agent, families
from podbot.config.models import AgentKind, AppConfig
from podbot.container_spec import Mount
from podbot.frozen import replace
from podbot.launch.names import LABEL
from podbot.launch.own_file import stamped
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import CredentialSource, HostFacts, ResourcePlan, SandboxPlan

DIRECTORY = "logins"  # in podbot's state directory


class LoginPlan(ResourcePlan):
    """The login of the agent ``kind``. ``store``: its directory on the host; ``name``: of this session's copy in it.

    ``of_host``: it is a copy of the host's own, which follows the file ``source``; otherwise it is podbot's.
    ``renewable``: that copy has the token that renews it. ``is_there``: whether the host has the agent's directory, and
    has it where it was; ``source`` is only read then.
    """

    kind: AgentKind
    store: str
    name: str
    of_host: bool = False
    source: str = ""
    renewable: bool = True
    is_there: bool = True

    @property
    def mounted(self) -> str:
        """The directory on the host with this session's copy."""
        return os.path.join(self.store, "sessions", self.name, "login")

    def described(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {"agent": self.kind, "directory": self.mounted, "of_host": self.of_host}

    def agrees_with(self, sandbox: SandboxPlan, facts: HostFacts) -> bool:
        """See ResourcePlan."""
        name = stamped(sandbox.session, sandbox.container.labels.get(f"{LABEL}.created", ""))
        state = facts.state_dir
        store = host_store(state, self.kind, name) if self.of_host else store_of(state, self.kind)
        return own_login(self.kind) is not None and (self.store, self.name) == (store, name)

    def refreshed(self, facts: HostFacts) -> LoginPlan:
        """See ResourcePlan. The record may have been changed: the file that it names is not read on its word."""
        found = next((found for found in facts.credentials if found.family == self.kind), None)
        return replace(self, is_there=found is not None and _file(found) == self.source) if self.of_host else self


def plan(context: Context) -> Part | None:
    """The copy's mount and the agent's variable for it; None if the agent has no login that podbot keeps apart."""
    config, facts, kind = context.config, context.facts, context.config.agent.kind
    spec = own_login(kind)
    if context.command is None or spec is None:
        return None
    name = stamped(os.path.basename(context.runtime_dir), facts.created)
    notes: tuple[str, ...] = ()
    if uses_own_login(config, facts):
        found = LoginPlan(kind, store_of(facts.state_dir, kind), name)
        notes = (f"the agent gets the login that `podbot login {kind}` made (creds.copy_podbot)",)
    elif (source := host_login(config, facts)) is not None:
        store, renewable = host_store(facts.state_dir, kind, name), config.creds.copy_refresh_tokens
        found = LoginPlan(kind, store, name, of_host=True, source=_file(source), renewable=renewable)
    else:
        return None
    variable = {spec.directory_variable: OWN_LOGIN} if spec.directory_variable else {}
    return Part(found, mounts=(Mount(found.mounted, OWN_LOGIN),), fixed_env=variable, notes=notes)


def selected_family(config: AppConfig, family: str) -> bool:
    """Whether the agent can use this family, and the configuration allows it."""
    wanted: bool = getattr(config.creds, f"copy_{family}")
    return wanted and agent(config.agent.kind).can_use(family)


def host_login(config: AppConfig, facts: HostFacts) -> CredentialSource | None:
    """The family of the configured agent, if the host's login in it is copied apart from its other files.

    Not for a custom agent: podbot does not know whether it finds the login elsewhere.
    """
    kind = config.agent.kind
    found = next((found for found in facts.credentials if found.family == kind and found.alone), None)
    if found is None or not selected_family(config, kind) or uses_own_login(config, facts):
        return None
    # In place of one that does not work, podbot may make a login of a key.
    return found if found.logged_in or agent(kind).key_login is None else None


def _file(found: CredentialSource) -> str:
    return os.path.join(found.source, families()[found.family].login)


def uses_own_login(config: AppConfig, facts: HostFacts) -> bool:
    """Whether the configured agent has a login of podbot's own, and the configuration allows it."""
    return config.creds.copy_podbot and config.agent.kind in facts.own_logins


def own_login(kind: AgentKind) -> OwnLogin | None:
    """How podbot keeps a login for this agent; None if it does not."""
    return agent(kind).own_login


def store_of(state_dir: str, kind: AgentKind) -> str:
    """The directory on the host with the login of this agent that podbot keeps."""
    return os.path.join(state_dir, DIRECTORY, kind)


def host_store(state_dir: str, kind: AgentKind, name: str) -> str:
    """The directory on the host with the copy of this host's login for the session ``name``."""
    return os.path.join(state_dir, DIRECTORY, f"{kind}.host", name)

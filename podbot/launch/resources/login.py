"""Plans the login of podbot's own that a session uses: the private copy that it mounts (ADR 0042). Pure."""

from __future__ import annotations

import os
from typing import Any

from podbot.agents.definition import OWN_LOGIN, OwnLogin
from podbot.agents.registry import agent
from podbot.config.models import AgentKind, AppConfig
from podbot.launch.labels import LABEL
from podbot.launch.own_file import stamped
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import HostFacts, Mount, ResourcePlan, SandboxPlan

DIRECTORY = "logins"  # in podbot's state directory


class LoginPlan(ResourcePlan):
    """The login of the agent ``kind``. ``store``: its directory on the host; ``name``: of this session's copy in it."""

    kind: AgentKind
    store: str
    name: str

    @property
    def mounted(self) -> str:
        """The directory on the host with this session's copy."""
        return os.path.join(self.store, "sessions", self.name, "login")

    def described(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {"agent": self.kind, "directory": self.mounted}

    def agrees_with(self, sandbox: SandboxPlan, facts: HostFacts) -> bool:
        """See ResourcePlan."""
        created = sandbox.container.labels.get(f"{LABEL}.created", "")
        own = own_login(self.kind) is not None and self.store == store_of(facts.state_dir, self.kind)
        return own and self.name == stamped(sandbox.session, created)


def plan(context: Context) -> Part | None:
    """The copy's mount and the agent's variable for it; None if the agent uses no login of podbot's own."""
    kind = context.config.agent.kind
    spec = own_login(kind)
    if context.command is None or spec is None or not uses_own_login(context.config, context.facts):
        return None
    session = os.path.basename(context.runtime_dir)
    found = LoginPlan(kind, store_of(context.facts.state_dir, kind), stamped(session, context.facts.created))
    variable = {spec.directory_variable: OWN_LOGIN} if spec.directory_variable else {}
    note = f"the agent gets the login that `podbot login {kind}` made (creds.copy_podbot)"
    return Part(found, mounts=(Mount(found.mounted, OWN_LOGIN),), fixed_env=variable, notes=(note,))


def uses_own_login(config: AppConfig, facts: HostFacts) -> bool:
    """Whether the configured agent has a login of podbot's own, and the configuration allows it."""
    return config.creds.copy_podbot and config.agent.kind in facts.own_logins


def own_login(kind: AgentKind) -> OwnLogin | None:
    """How podbot keeps a login for this agent; None if it does not."""
    return agent(kind).own_login


def store_of(state_dir: str, kind: AgentKind) -> str:
    """The directory on the host with the kept login of this agent."""
    return os.path.join(state_dir, DIRECTORY, kind)

"""The logins of agents: those that podbot keeps, and those on the host that sessions get a copy of."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from podbot.agents.login_state import NONE, LoginState
from podbot.agents.registry import agent, families, known
from podbot.config.models import AppConfig
from podbot.errors import InvalidValue
from podbot.exec_spec import ExecSpec
from podbot.launch.agent_plan import agent_variables
from podbot.launch.held_keys import BASE_VARIABLES, led_to_gateway
from podbot.launch.judged_logins import empty_variables, inside, login_advice
from podbot.launch.resources.login import own_login, store_of, uses_own_login
from podbot.launch.types import HostFacts, LaunchRequest
from podbot.places import private_runtime_root, state_dir
from podbot.session.facts import facts_without_session
from podbot.session.login_copies import login_store, sweep
from podbot.session.login_facts import with_logins

LoginSource = Literal["podbot", "host", "other", "none"]


@dataclass(frozen=True)
class AgentLogin:
    """The login that sessions of ``agent`` get. ``since``: when podbot's own was made or renewed last, epoch seconds.

    ``source``: ``other`` is a variable, the agent's settings or another provider. ``path``: the host's login file of
    which copies are made; empty for another source. ``state``: whether it works. ``advice``: what to do for one that
    works; empty if there is one, or none is needed. ``note``: on variables of a login that are passed in and empty.
    """

    agent: str
    source: LoginSource
    since: float | None = None
    path: str = ""
    state: LoginState = NONE
    advice: str = ""
    note: str = ""

    @property
    def origin(self) -> str:
        """Where it is from, for people."""
        return {"podbot": "podbot's own", "host": "a copy of this host's"}.get(self.source, self.state.where) or "none"


def list_logins(environ: Mapping[str, str], config: AppConfig) -> list[AgentLogin]:
    """The login that a session of each agent gets whose login podbot can keep, judged as the session's plan does.

    Raises FilesystemError subclasses. An invalid value because of which an agent does not start makes its login
    unreadable.
    """
    names = {*config.agent.env_allowlist, *BASE_VARIABLES}
    given = {name: environ[name] for name in names if name in environ}
    # No session gets this placeholder, and no variable of a host ends with it.
    facts = replace(facts_without_session(environ), env=given, placeholder="\0")
    kinds = [kind for kind in known() if own_login(kind) is not None]
    return [_login(replace(config, agent=replace(config.agent, kind=kind)), facts, environ) for kind in kinds]


def remove_login(environ: Mapping[str, str], kind: str) -> bool:
    """Remove podbot's own login of ``kind`` and its sessions' copies; False if there was none.

    Raises FilesystemError subclasses.
    """
    store = login_store(store_of(os.path.realpath(state_dir(environ)), kind), kind)
    removed = store.remove()
    sweep(store, private_runtime_root(environ))
    return removed


def _login(config: AppConfig, facts: HostFacts, environ: Mapping[str, str]) -> AgentLogin:
    kind, request = config.agent.kind, LaunchRequest()
    try:
        facts = with_logins(facts, config, environ)
        words, variables = agent(kind).commands.get(config.agent.mode, ()), agent_variables(config, request, facts)[0]
        command = led_to_gateway(config, request, facts, ExecSpec(words, env=variables))[0]
    except InvalidValue as exc:
        state = LoginState("unreadable", exc.field, reason=exc.reason)
        return AgentLogin(kind, "other", state=state, advice=exc.remedy)
    state = inside(config, facts, command) or NONE
    advice, notes = login_advice(config, facts, command), empty_variables(config, command)
    found = AgentLogin(kind, "none", state=state, advice=advice, note="".join(notes))
    spec = own_login(kind)
    if spec is None or state.where != os.path.basename(spec.path):
        return found if state.state == "none" else replace(found, source="other")
    if uses_own_login(config, facts):
        return replace(found, source="podbot", since=login_store(store_of(facts.state_dir, kind), kind).saved_at())
    copied = next(each.given for each in facts.credentials if each.family == kind)
    return replace(found, source="host", path=os.path.join(copied, families()[kind].login))

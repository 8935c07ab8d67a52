"""What the configured agent will log in with inside, and the notes about it. Pure; shows no secret."""

from __future__ import annotations

import os
from collections.abc import Mapping

from podbot.agents.definition import Command
from podbot.agents.login_state import NONE, LoginFiles, LoginState, first, iso
from podbot.agents.registry import agent, families
from podbot.config.models import AppConfig
from podbot.exec_spec import ExecSpec
from podbot.launch.resources.login import own_login, selected_family, uses_own_login
from podbot.launch.types import CredentialSource, HostFacts


def judged(
    kind: str, files: LoginFiles, env: Mapping[str, str], now: float, command: Command = ()
) -> LoginState | None:
    """The login of an agent with these files and variables; None for an agent of which podbot knows nothing."""
    login = agent(kind).login
    return None if login is None or login.judge is None else login.judge(files, env, now, command)


def inside(config: AppConfig, facts: HostFacts, command: ExecSpec) -> LoginState | None:
    """The login of the configured agent, which ``command`` starts, with what its sandbox gets."""
    given, unused = _given(config, command), _unused(config, facts, command)
    given = {name: value for name, value in given.items() if name not in unused}
    return judged(config.agent.kind, _files(config, facts), given, time_of(facts), command.command)


def copied_login(found: CredentialSource, facts: HostFacts) -> LoginState:
    """The login that a copied family has by itself."""
    return judged(found.family, found.files, {}, time_of(facts)) or NONE


def is_held(value: str, facts: HostFacts) -> bool:
    """Whether this value of a variable stands for a key that the gateway holds."""
    return bool(facts.placeholder) and value.endswith(facts.placeholder)


def time_of(facts: HostFacts) -> float:
    """When the facts were collected, in seconds since the epoch."""
    from datetime import datetime

    return datetime.fromisoformat(facts.created).timestamp()


def login_notes(config: AppConfig, facts: HostFacts, command: ExecSpec) -> tuple[str, ...]:
    """What is wrong with the agent's login, and what the operator can do. None if a flag asked for no logins."""
    kind = config.agent.kind
    login, state = agent(kind).login, inside(config, facts, command)
    if login is None or state is None:
        return ()
    notes = empty_variables(config, command)
    advice = login_advice(config, facts, command)
    if not advice:
        return notes
    # A repository can bring one of its own. It is neither copied nor used by podbot, so it is not read.
    unread = [name for name in facts.settings if name in login.workspace]
    beside = f" (podbot does not look for one in the workspace's {', '.join(unread)})" if unread else ""
    if state.state == "none":
        return (*notes, f"no login for {kind} was found on this host{beside}; to give it one, {advice}")
    place = _place(config, facts, state.where)
    return (*notes, f"{kind} gets no login that works: {place} {words(state)}{beside}; to give it one, {advice}")


def empty_variables(config: AppConfig, command: ExecSpec) -> tuple[str, ...]:
    """A note on variables of the agent's login that it gets without a value; none if there are none."""
    login, given = agent(config.agent.kind).login, _given(config, command)
    variables = login.variables if login is not None else ()
    empty = [name for name in variables if name in given and not given[name].strip()]
    return (f"{', '.join(empty)}: the value is empty, so it does not log {config.agent.kind} in",) if empty else ()


def login_advice(config: AppConfig, facts: HostFacts, command: ExecSpec) -> str:
    """What the operator can do for a login that works; empty if there is one, or it is not needed or not wanted."""
    login, state = agent(config.agent.kind).login, inside(config, facts, command)
    if login is None or state is None or state.works:
        return ""
    if state.state == "none" and (not login.needed or _unwanted(config)):
        return ""
    advice = _advised(login.advice, config, facts, command, state)
    given = {*_given(config, command), *_unused(config, facts, command)}
    here = next((name for name in facts.login_variables if name not in given), "")
    return f"{advice}; {here} is set on this host, and not passed (`-e {here}`)" if here else advice


def words(state: LoginState) -> str:
    """What is said of a login after the name of its file."""
    if state.state == "expired":
        return f"expired at {iso(state.at or 0.0)}, and has no token that renews it"
    if state.state == "unreadable":
        return f"has no login that can be read: {state.reason}"
    return f"has no login: {state.reason or 'its tokens are missing or blank'}"


def _advised(advice: str, config: AppConfig, facts: HostFacts, command: ExecSpec, state: LoginState) -> str:
    """``advice``, of the agent whose login has this ``state``, without what would have no effect."""
    kind = config.agent.kind
    run = f"run `podbot login {kind}`"
    keys = advice.removeprefix(f"{run}, or ")
    if not config.creds.copy_podbot:
        more = f"for {_made(kind)}" if kind in facts.own_logins else f"and {run}"
        return f"set creds.copy_podbot = true {more}, or {keys}"
    unused = _unused(config, facts, command)
    if not unused or not _is_own(config, facts, state.where):
        return advice
    passed = first(unused, _given(config, command))
    return f"{run} again, or `podbot logout {kind}`{f' so that it uses {passed}' if passed else f' and {keys}'}"


def _given(config: AppConfig, command: ExecSpec) -> dict[str, str]:
    return {**config.sandbox.env, **command.env}


def _unused(config: AppConfig, facts: HostFacts, command: ExecSpec) -> tuple[str, ...]:
    """The variables of a login that the agent does not use beside a login of podbot's own."""
    found = agent(config.agent.kind)
    if not uses_own_login(config, facts):
        return ()
    names: tuple[str, ...] = ()
    if found.own_login is not None and found.own_login.texts and found.login is not None:
        names = found.login.variables  # the settings that come with that login select it
    elif found.key_login is not None:
        names = found.key_login.variables  # podbot makes none of a key then
    # But it does use a key that the gateway holds: what leads it to the gateway selects that key.
    given = _given(config, command)
    return tuple(name for name in names if not is_held(given.get(name, ""), facts))


def _files(config: AppConfig, facts: HostFacts) -> LoginFiles:
    kind = config.agent.kind
    files = {
        name: content
        for found in facts.credentials
        if found.family == kind and selected_family(config, kind)
        for name, content in found.files.items()
    }
    spec = own_login(kind)
    if spec is not None and uses_own_login(config, facts) and facts.own_login is not None:
        files[os.path.basename(spec.path)] = facts.own_login
    return files


def _place(config: AppConfig, facts: HostFacts, where: str) -> str:
    kind, name = config.agent.kind, where.partition(":")[0]
    if _is_own(config, facts, where):
        return _made(kind)
    given = next((found.given for found in facts.credentials if found.family == kind and name in found.files), "")
    return os.path.join(given, where)


def _is_own(config: AppConfig, facts: HostFacts, where: str) -> bool:
    spec = own_login(config.agent.kind)
    return uses_own_login(config, facts) and spec is not None and where == os.path.basename(spec.path)


def _made(kind: str) -> str:
    return f"the login that `podbot login {kind}` made"


def _unwanted(config: AppConfig) -> bool:
    """Whether the operator decided for this session that no family is copied."""
    return all(config.origin(f"creds.copy_{family}").kind in ("flag", "override") for family in families()) and not any(
        getattr(config.creds, f"copy_{family}") for family in families()
    )

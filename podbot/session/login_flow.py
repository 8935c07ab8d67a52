"""``podbot login``: an agent's own login flow in a sandbox, and the keeping of the login that it made."""

from __future__ import annotations

import os

from podbot.atomic import file_errors
from podbot.credentials.login_access import read_login
from podbot.credentials.login_store import LoginStore
from podbot.credentials.own_login import Refused
from podbot.engine.port import Engine
from podbot.errors import IllegalCombination, LoginFailed
from podbot.events import Emit, Event
from podbot.execution.runner import ExecIO, ExecStatus, run_exec
from podbot.launch.login_flow import LoginFlowPlan, checked_own_login
from podbot.session.kill_watcher import HelperProgram
from podbot.session.login_copies import login_store, remove_left
from podbot.session.opening import opened_sandbox
from podbot.streams.wake import Wake


def run_login_flow(
    engine: Engine,
    plan: LoginFlowPlan,
    io: ExecIO,
    wake: Wake,
    emit: Emit,
    *,
    killed_helper: HelperProgram | None = None,
    uid: int | None = None,
) -> ExecStatus:
    """Run the flow on the caller's terminal, and keep its login. Returns the status of the agent's program.

    Raises LoginFailed if there is no login afterwards; an existing one then stays. Raises IllegalCombination before
    anything is created if the engine is root's and this process is not. Otherwise as ``run_session``. ``uid``: of this
    process, unless given.
    """
    if (os.getuid() if uid is None else uid) != 0 and not engine.host().rootless:
        reason = "a rootful engine's sandbox writes it as root of this host, so podbot could not read it as you"
        hint = "Use your own rootless engine, or pass in a key: agent.env_allowlist."
        raise IllegalCombination(field="engine", value="rootful", origin=engine.endpoint, reason=reason, hint=hint)
    store = login_store(plan.store, plan.kind)
    remove_left(store)
    hint = checked_own_login(plan.kind).hint
    if hint:
        emit(Event("notice", "login.hint", hint, {"agent": plan.kind}))
    try:
        with store.new_directory(plan.directory):
            _prepare(plan)
            status = _flow(engine, plan, io, wake, emit, killed_helper=killed_helper)
            _keep(store, plan, status)
    finally:
        remove_left(store)
    text = f"kept the login of {plan.kind} for its sessions; `podbot logout {plan.kind}` removes it"
    emit(Event("notice", "login.kept", text, {"agent": plan.kind}))
    return status


def _flow(
    engine: Engine, plan: LoginFlowPlan, io: ExecIO, wake: Wake, emit: Emit, *, killed_helper: HelperProgram | None
) -> ExecStatus:
    with opened_sandbox(engine, plan.sandbox, wake, emit, subcommand="sandbox", killed_helper=killed_helper) as box:
        emit(Event("info", "agent.start", f"starting the login of {plan.kind}", {"agent": plan.kind}))
        return run_exec(engine, plan.sandbox.session, plan.command, io, wake, sandbox_ends=True, guest=box.guest)


def _prepare(plan: LoginFlowPlan) -> None:
    for name, text in plan.texts.items():
        path = os.path.join(plan.directory, name)
        with file_errors(path, "prepare the login"), open(path, "x", encoding="utf-8") as file:
            file.write(text)


def _keep(store: LoginStore, plan: LoginFlowPlan, status: ExecStatus) -> None:
    found = read_login(plan.directory, plan.file)
    if found is None:
        reason = "was ended" if status.signal is not None else f"ended with status {status.code}"
        raise LoginFailed(agent=plan.kind, reason=f"it {reason} and left no login")
    try:
        store.save(found)
    except Refused as exc:
        raise LoginFailed(agent=plan.kind, reason=f"what it wrote cannot be kept: {exc.reason}") from exc

"""``run``: one interactive session from a plan to the agent's status."""

from __future__ import annotations

import time
from dataclasses import dataclass

from podbot.engine.port import Engine, Size
from podbot.errors import TerminalTooSmall
from podbot.events import Emit, Event
from podbot.execution.runner import ExecIO, ExecStatus, run_exec
from podbot.guard.marks import GuardReport
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.launch.types import LaunchPlan
from podbot.session.history import offer_to_resume
from podbot.session.session import OpenSandbox, opened_sandbox
from podbot.streams.wake import Interrupted, Wake

MINIMUM = Size(columns=20, rows=5)  # below this claude and codex draw nothing that can be read


@dataclass(frozen=True, slots=True)
class SessionResult:
    """A session that ran to its end."""

    session: str
    status: ExecStatus
    kept: bool
    credentials: tuple[str, ...] = ()  # in-container paths of the families that were copied
    guard: GuardReport | None = None  # what the session left that acts on the host; None: not looked at
    agent_ran: bool = True  # False: a signal came before


def run_session(engine: Engine, plan: LaunchPlan, io: ExecIO, wake: Wake, emit: Emit) -> SessionResult:
    """Carry out ``plan``; everything it made is unwound in reverse, whatever happens.

    Raises ContainerError, FilesystemError, GitHubError, CloneError and StreamError subclasses; the agent's own
    failure is a status.
    """
    _check_terminal(plan, io)
    try:
        status, box = _carried_out(engine, plan, io, wake, emit)
    except Interrupted as exc:  # told to end before the agent ran
        status = ExecStatus(code=128 + exc.number, signal=exc.number)
        return SessionResult(plan.sandbox.session, status, kept=False, agent_ran=False)
    credentials = plan.sandbox.find(CredentialsPlan)
    copied = tuple(found.target for found in credentials.sources) if credentials is not None else ()
    return SessionResult(
        plan.sandbox.session, status, box.directory.kept, credentials=copied, guard=box.directory.guard
    )


def _carried_out(
    engine: Engine, plan: LaunchPlan, io: ExecIO, wake: Wake, emit: Emit
) -> tuple[ExecStatus, OpenSandbox]:
    session = plan.sandbox.session
    with opened_sandbox(engine, plan.sandbox, wake, emit, secrets=plan.agent.command.secrets) as box:
        began = time.time()
        emit(Event("info", "agent.start", f"starting {plan.agent.kind} in {session}", {"session": session}))
        status = run_exec(engine, session, plan.agent.command, io, wake, sandbox_ends=True, pipes=box.pipes)
        emit(Event("debug", "agent.end", f"{plan.agent.kind} ended with status {status.code}", {"code": status.code}))
    offer_to_resume(plan.sandbox, began=began, kept=box.directory.kept, emit=emit)
    return status, box


def _check_terminal(plan: LaunchPlan, io: ExecIO) -> None:
    size = io.size() if plan.agent.command.tty else None
    if size is not None and (size.columns < MINIMUM.columns or size.rows < MINIMUM.rows):
        raise TerminalTooSmall(
            columns=size.columns, rows=size.rows, minimum_columns=MINIMUM.columns, minimum_rows=MINIMUM.rows
        )

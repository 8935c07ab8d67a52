"""``run``: one interactive session from a plan to the agent's status."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from podbot.config.models import DEFAULT_ORIGIN
from podbot.engine.port import Engine, Size
from podbot.errors import PodbotError, TerminalTooSmall
from podbot.events import Emit, Event
from podbot.execution.runner import ExecIO, ExecStatus, run_exec
from podbot.frozen import Frozen, replace
from podbot.guard.filesystem import file_clock
from podbot.guard.marks import GuardReport
from podbot.launch.resources.credentials import copied_targets
from podbot.launch.types import LaunchPlan
from podbot.session.end_cause import OwnersWitness
from podbot.session.guarding import SCANNER, Scanner
from podbot.session.kill_watcher import HelperProgram
from podbot.session.limits_reached import tell_limits_reached
from podbot.session.opening import OpenSandbox, opened_sandbox
from podbot.session.resources.history import offer_to_resume
from podbot.session.term_notice import telling
from podbot.streams.wake import Interrupted, Wake

MINIMUM = Size(columns=20, rows=5)  # below this, the output of claude and codex is unreadable


class SessionResult(Frozen):
    """A session that ran to its end."""

    session: str
    status: ExecStatus
    kept: bool
    credentials: tuple[str, ...] = ()  # in-container paths of the families that were copied
    guard: GuardReport | None = None  # findings of the guard; None if there was no comparison
    agent_ran: bool = True  # False: a signal arrived before the agent started


def run_session(
    engine: Engine,
    plan: LaunchPlan,
    io: ExecIO,
    wake: Wake,
    emit: Emit,
    *,
    scanner: Scanner = SCANNER,
    killed_helper: HelperProgram | None = None,
    origin: Callable[[str], object] = lambda _key: DEFAULT_ORIGIN,
) -> SessionResult:
    """Carry out ``plan``; everything created is undone in reverse order, whatever happens.

    ``scanner``: the guard's. ``killed_helper``: see ``kill_watcher``. ``origin``: where the value of a configuration
    key comes from. Raises ContainerError, SessionError, FilesystemError, GitHubError, CloneError and StreamError
    subclasses. A failure of the agent itself is a status.
    """
    _check_terminal(plan, io)
    try:
        opening = opened_sandbox(
            engine, plan.sandbox, wake, emit,
            secrets=plan.agent.command.secrets, scanner=scanner, killed_helper=killed_helper,
        )  # fmt: skip
        status, box = _carried_out(opening, plan, io, wake, emit, origin=origin)
    except Interrupted as exc:  # a signal arrived before the agent ran
        status = ExecStatus(code=128 + exc.number, signal=exc.number)
        return SessionResult(plan.sandbox.session, status, kept=False, agent_ran=False)
    copied = copied_targets(plan.sandbox)
    return SessionResult(
        plan.sandbox.session, status, box.directory.kept, credentials=copied, guard=box.directory.guard
    )


def _carried_out(
    opening: contextlib.AbstractContextManager[OpenSandbox],
    plan: LaunchPlan,
    io: ExecIO,
    wake: Wake,
    emit: Emit,
    *,
    origin: Callable[[str], object],
) -> tuple[ExecStatus, OpenSandbox]:
    with _status_told_on_failure(plan, emit) as statuses, opening as box:
        session = plan.sandbox.session
        began = file_clock()
        emit(Event("info", "agent.start", f"starting {plan.agent.kind} in {session}", {"session": session}))
        command = plan.agent.command
        if command.term_choices:
            io = replace(io, on_term=telling(plan.sandbox.runtime_dir, command, emit, first=True))
        with _recorded(io, plan, emit) as recorded:
            status = run_exec(
                box.engine, session, command, recorded, wake, sandbox_ends=True, guest=box.guest,
                witness=OwnersWitness(plan.sandbox.runtime_dir),
            )  # fmt: skip
        emit(Event("debug", "agent.end", f"{plan.agent.kind} ended with status {status.code}", {"code": status.code}))
        statuses.append(status.code)
        status = tell_limits_reached(box.engine, box.plan, status, origin, emit)
    offer_to_resume(plan.sandbox, began=began, kept=box.directory.kept, emit=emit)
    return status, box


@contextlib.contextmanager
def _status_told_on_failure(plan: LaunchPlan, emit: Emit) -> Iterator[list[int]]:
    """Where the session's end fails, that is podbot's error, and its exit status says nothing of the agent's.

    The block adds the agent's status to the list that it gets.
    """
    statuses: list[int] = []
    try:
        yield statuses
    except PodbotError:
        for code in statuses:
            fields = {"session": plan.sandbox.session, "code": code}
            emit(Event("warning", "agent.end", f"{plan.agent.kind} had ended with status {code}", fields))
        raise


@contextlib.contextmanager
def _recorded(io: ExecIO, plan: LaunchPlan, emit: Emit) -> Iterator[ExecIO]:
    """``io``, with the session's log if it has one. The log is closed while its directory still exists."""
    if not plan.agent.logs:
        yield io
        return
    from podbot.execution.output_log import OutputLog
    from podbot.github.token_file import SECRETS, TokenFile
    from podbot.launch.own_file import log_directory

    command = plan.agent.command
    secrets = [value for name, value in command.env.items() if name in command.secrets]
    token = TokenFile(os.path.join(plan.sandbox.runtime_dir, SECRETS)).read
    with contextlib.closing(OutputLog(log_directory(plan.sandbox.files_dir), secrets, emit, token=token)) as log:
        yield replace(io, record=log)


def _check_terminal(plan: LaunchPlan, io: ExecIO) -> None:
    size = io.size() if plan.agent.command.tty else None
    if size is not None and (size.columns < MINIMUM.columns or size.rows < MINIMUM.rows):
        raise TerminalTooSmall(
            columns=size.columns, rows=size.rows, minimum_columns=MINIMUM.columns, minimum_rows=MINIMUM.rows
        )

"""``run``: one interactive session from a plan to the agent's status."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from podbot.engine.port import Engine, Size
from podbot.errors import AgentNotInImage, MountRefused, TerminalTooSmall
from podbot.events import Emit, Event
from podbot.execution.runner import ExecIO, ExecStatus, run_exec
from podbot.flows.container import started_container
from podbot.flows.recipe import LABEL_AGENTS, agents_in
from podbot.flows.sessions import session_directory
from podbot.launch.agents import AGENTS
from podbot.launch.types import LaunchPlan
from podbot.streams.wake import Interrupted, Wake

MINIMUM = Size(columns=20, rows=5)  # below this claude and codex draw nothing that can be read


@dataclass(frozen=True, slots=True)
class SessionResult:
    """A session that ran to its end."""

    session: str
    status: ExecStatus
    kept: bool
    credentials: tuple[str, ...] = ()  # in-container paths of the families that were copied


def run_session(engine: Engine, plan: LaunchPlan, io: ExecIO, wake: Wake, emit: Emit) -> SessionResult:
    """Carry out ``plan``; everything it made is unwound in reverse, whatever happens.

    Raises ContainerError, FilesystemError and StreamError subclasses; the agent's own failure is a status.
    """
    _check_terminal(plan, io)
    _check_local(engine, plan)
    for note in plan.notes:
        emit(Event("notice", "plan.note", note))
    try:
        status = _carried_out(engine, plan, io, wake, emit)
    except Interrupted as exc:  # told to end before the agent ran
        return SessionResult(plan.session, ExecStatus(code=128 + exc.number, signal=exc.number), kept=False)
    copied = tuple(found.target for found in plan.credentials)
    return SessionResult(plan.session, status, kept=plan.keep, credentials=copied)


def _carried_out(engine: Engine, plan: LaunchPlan, io: ExecIO, wake: Wake, emit: Emit) -> ExecStatus:
    # Signals are queued from here to the end of the clean-up: one that unwound in the wrong place, between two
    # steps of an ExitStack, would skip the rest. Where it is safe to stop early, the steps say so.
    with wake.listening(), contextlib.ExitStack() as stack:
        directory = stack.enter_context(session_directory(plan.runtime_dir, engine.endpoint))
        _check_agent(engine, plan)
        stack.enter_context(started_container(engine, plan, directory, wake, emit))
        emit(Event("info", "agent.start", f"starting {plan.kind} in {plan.session}", {"session": plan.session}))
        status = run_exec(engine, plan.session, plan.agent, io, wake)
        emit(Event("debug", "agent.end", f"{plan.kind} ended with status {status.code}", {"code": status.code}))
    return status


def _check_local(engine: Engine, plan: LaunchPlan) -> None:
    """The mount policy judged this host's directories; an engine elsewhere would mount its own."""
    if plan.workspace is not None and not engine.local:
        raise MountRefused(
            path=plan.workspace.source,
            origin=f"engine {engine.endpoint}",
            reason="that engine is on another host and would mount its own directory of that name",
            hint="Run podbot on that host; `exec`, `ps` and `stop` work from here.",
        )


def _check_agent(engine: Engine, plan: LaunchPlan) -> None:
    """An image that says what is in it is believed; without this the session ends with status 127 and runc's words."""
    if plan.kind == "custom":
        return
    image = engine.image(plan.container.image)
    label = image.labels.get(LABEL_AGENTS) if image is not None else None
    if label is None or plan.kind in (there := agents_in(label)):
        return
    agents = ",".join([*(name for name in there if name in AGENTS), plan.kind])  # a label is the image's word
    raise AgentNotInImage(image=plan.container.image, agent=plan.kind, agents=agents)


def _check_terminal(plan: LaunchPlan, io: ExecIO) -> None:
    size = io.size() if plan.agent.tty else None
    if size is not None and (size.columns < MINIMUM.columns or size.rows < MINIMUM.rows):
        raise TerminalTooSmall(
            columns=size.columns, rows=size.rows, minimum_columns=MINIMUM.columns, minimum_rows=MINIMUM.rows
        )

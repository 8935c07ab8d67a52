"""What ended a command of a sandbox, for the operator: a limit (memory, processes, space on the disks) or a signal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from podbot.errors import ContainerError, PodbotError
from podbot.events import Emit, Event
from podbot.execution.causes import cause_in_words
from podbot.execution.runner import ExecStatus
from podbot.frozen import replace
from podbot.machine import disk
from podbot.session.disk_notice import Look, full_disks, written

if TYPE_CHECKING:
    from podbot.engine.port import Engine
    from podbot.launch.types import SandboxPlan
    from podbot.session.record import SessionRecord

_MANY = 1_000_000  # the counts come from inside, where an agent could claim any


def tell_limits_reached(
    engine: Engine,
    plan: SandboxPlan,
    status: ExecStatus,
    origin: Callable[[str], object],
    emit: Emit,
    *,
    look: Look = disk,
) -> ExecStatus:
    """Report the signal that ended the agent of a session, and the limits that it reached, while its container exists;
    returns the whole status.

    ``origin`` returns where a key's value comes from. The limits are those that the engine has applied, or, if it does
    not answer, the planned ones. ``look``: see ``full_disks``.
    """
    session = plan.session
    if told := cause_in_words(status.killed, status.cause):
        emit(Event("warning", "agent.killed", f"the agent was ended by {told}", _killed(session, status)))
    if status.memory_kills or status.forks_refused:
        memory, pids = _applied(engine, session) or (plan.container.limits.memory, plan.container.limits.pids)
        # Without a limit the kernel's count can be that of other processes, where the container has no control group.
        if status.out_of_memory or (status.memory_kills and memory):
            emit(_out_of_memory(session, status, memory, f"{origin('sandbox.memory')}"))
        if status.forks_refused and pids:
            text = _refused(status, pids, f"sandbox.pids, {origin('sandbox.pids')}")
            fields = {"session": session, "limit": pids, "origin": f"{origin('sandbox.pids')}"}
            emit(Event("warning", "sandbox.out_of_processes", text, {**fields, "refused": status.forks_refused}))
    if status.failed and engine.local:
        with contextlib.suppress(ContainerError):
            status = _with_disks(status, written(plan.workspace), engine.inspect(session).storage, emit, look)
    return status


def tell_command_limits(
    connect: Callable[[], Engine],
    container: str,
    status: ExecStatus,
    emit: Emit,
    *,
    record: SessionRecord | None = None,
    by_engine: bool = False,
    look: Look = disk,
) -> ExecStatus:
    """Report the signal that ended a command of ``podbot exec``, and the limits that may be why it failed; returns the
    whole status.

    ``connect`` opens the engine, which knows the limits; that one was reached is known without it, except, where the
    engine ran the command (``by_engine``), of the disk with the container's own files. ``record``: of this user's
    session; it says where the limits were set, and what the workspace is. ``look``: see ``full_disks``. The container
    may be any, and the keys of ``sandbox`` are not those of one that podbot did not create.
    """
    if told := cause_in_words(status.killed, status.cause):
        emit(Event("warning", "exec.killed", f"the command was ended by {told}", _killed(container, status)))
    if status.out_of_memory or (status.forks_refused and status.code != 0):
        _tell_counted(connect, container, status, record, emit)
    if not status.failed:
        return status
    storage = ""
    if by_engine or status.disk_full:  # a guest that sees room there saves the engine a question
        with contextlib.suppress(PodbotError):
            engine = connect()
            storage = engine.inspect(container).storage if engine.local else ""
    return _with_disks(status, record.workspace if record is not None else "", storage, emit, look)


def _killed(session: str, status: ExecStatus) -> dict[str, object]:
    return {"session": session, "signal": status.killed, "cause": status.cause}


def _tell_counted(
    connect: Callable[[], Engine], container: str, status: ExecStatus, record: SessionRecord | None, emit: Emit
) -> None:
    memory = pids = None
    is_known = ours = False
    with contextlib.suppress(PodbotError):
        from podbot.session.orphans import is_ours  # 10 ms (measured), which few commands need

        engine = connect()
        found = engine.confinement(container)
        ours = is_ours(engine.inspect(container))
        is_known, memory, pids = True, found.memory_limit, found.pids_limit

    def place(name: str, limit: int | None) -> tuple[str, str | None]:
        """The key in words, and where it was set; None if that is not known."""
        origin = record.limit_origin(name, limit) if record is not None and ours else ""
        return (f"sandbox.{name}, {origin}" if origin else f"sandbox.{name}" if ours else ""), origin or None

    if status.out_of_memory:
        key, origin = place("memory", memory)
        text = "out of memory: the kernel killed the command"
        text += f"; {_memory(memory, key)}" if is_known else ""
        fields = {"session": container, "limit": memory, "origin": origin}
        emit(Event("warning", "exec.out_of_memory", text, fields))
    if status.forks_refused and status.code != 0 and (pids or not is_known):  # see tell_limits_reached
        key, origin = place("pids", pids)
        fields = {"session": container, "limit": pids, "origin": origin, "refused": status.forks_refused}
        emit(Event("warning", "exec.out_of_processes", _refused(status, pids, key), fields))


def _with_disks(status: ExecStatus, workspace: str, storage: str, emit: Emit, look: Look) -> ExecStatus:
    """Report the file systems that are full, and return the status with that."""
    for event in full_disks(workspace, storage, look=look):
        emit(event)
        status = replace(status, disk_full=True)
    return status


def _applied(engine: Engine, session: str) -> tuple[int | None, int | None] | None:
    """The limits of memory and of processes; None if the engine does not answer."""
    try:
        found = engine.confinement(session)
    except ContainerError:
        return None
    return found.memory_limit, found.pids_limit


def _out_of_memory(session: str, status: ExecStatus, limit: int | None, origin: str) -> Event:
    fields = {"session": session, "limit": limit, "origin": origin, "kills": status.memory_kills}
    if status.out_of_memory:
        text = f"out of memory: the kernel killed the agent; {_memory(limit, f'sandbox.memory, {origin}')}"
        return Event("warning", "agent.out_of_memory", text, fields)
    text = f"out of memory: the kernel killed {_processes(status.memory_kills)} in the sandbox"
    text += f"; {_memory(limit, f'sandbox.memory, {origin}')}"
    return Event("warning", "sandbox.out_of_memory", text, fields)


def _memory(limit: int | None, key: str) -> str:
    text = f"the limit is {limit / (1 << 20):,.4g} MiB" if limit else "there is no limit"
    return f"{text} ({key})" if key else text


def _refused(status: ExecStatus, limit: int | None, key: str) -> str:
    text = f"out of processes: the kernel refused {_processes(status.forks_refused)} in the sandbox"
    text += f"; the limit is {limit:,}" if limit else ""
    return f"{text} ({key})" if limit and key else text


def _processes(number: int) -> str:
    return "1 process" if number == 1 else f"{f'{number:,}' if number <= _MANY else 'very many'} processes"

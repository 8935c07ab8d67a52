"""Which limits a sandbox reached while a command of it ran, for the operator: memory, processes, space on the disks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from podbot.engine.port import Engine
from podbot.errors import ContainerError, PodbotError
from podbot.events import Emit, Event
from podbot.execution.runner import ExecStatus
from podbot.session.disk_notice import full_disks
from podbot.session.orphans import is_ours

if TYPE_CHECKING:
    from podbot.launch.types import SandboxPlan

_NOT_A_CAUSE = (0, 126, 127)  # it ended well, or did not start
_MANY = 1_000_000  # the counts come from inside, where an agent could claim any


def tell_limits_reached(
    engine: Engine,
    plan: SandboxPlan,
    status: ExecStatus,
    origin: Callable[[str], object],
    emit: Emit,
) -> None:
    """Report the limits that the agent of a session reached, while its container exists.

    ``origin`` returns where a key's value comes from. The limits are those that the engine has applied, or, if it does
    not answer, the planned ones.
    """
    session = plan.session
    if status.memory_kills or status.forks_refused:
        memory, pids = _applied(engine, session) or (plan.container.limits.memory, plan.container.limits.pids)
        # Without a limit the kernel's count can be that of other processes, where the container has no control group.
        if status.out_of_memory or (status.memory_kills and memory):
            emit(_out_of_memory(session, status, memory, f"{origin('sandbox.memory')}"))
        if status.forks_refused and pids:
            emit(_out_of_processes(session, status, pids, f"{origin('sandbox.pids')}"))
    if status.code not in _NOT_A_CAUSE and status.signal is None and engine.local:
        with contextlib.suppress(ContainerError):
            for event in full_disks(plan.workspace, engine.inspect(session).storage):
                emit(event)


def tell_command_limits(connect: Callable[[], Engine], container: str, status: ExecStatus, emit: Emit) -> None:
    """Report that a command of ``podbot exec`` was killed because memory ran out.

    ``connect`` opens the engine, which knows the limit; that memory ran out is known without it. The container may be
    any, and sandbox.memory is not the key of one that podbot did not create.
    """
    if not status.out_of_memory:
        return
    text, limit = "out of memory: the kernel killed the command", None
    with contextlib.suppress(PodbotError):
        engine = connect()
        limit = engine.confinement(container).memory_limit
        text += f"; {_memory(limit, 'sandbox.memory' if is_ours(engine.inspect(container)) else '')}"
    emit(Event("warning", "exec.out_of_memory", text, {"session": container, "limit": limit}))


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


def _out_of_processes(session: str, status: ExecStatus, limit: int, origin: str) -> Event:
    text = f"out of processes: the kernel refused {_processes(status.forks_refused)} in the sandbox"
    text += f"; the limit is {limit:,} (sandbox.pids, {origin})"
    fields = {"session": session, "limit": limit, "origin": origin, "refused": status.forks_refused}
    return Event("warning", "sandbox.out_of_processes", text, fields)


def _processes(number: int) -> str:
    return "1 process" if number == 1 else f"{f'{number:,}' if number <= _MANY else 'very many'} processes"

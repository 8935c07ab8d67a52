"""Which limits a sandbox reached while a command of it ran, for the operator: memory, processes, space on the disks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from podbot.engine.port import Engine
from podbot.errors import ContainerError
from podbot.events import Emit, Event
from podbot.execution.runner import ExecStatus
from podbot.session.disk_notice import full_disks

if TYPE_CHECKING:
    from podbot.launch.types import Mount

_NOT_A_CAUSE = (0, 126, 127)  # it ended well, or did not start


def tell_limits_reached(
    engine: Engine,
    session: str,
    status: ExecStatus,
    origin: Callable[[str], object],
    emit: Emit,
    *,
    workspace: Mount | None = None,
) -> None:
    """Report the limits that the agent of ``session`` reached, while its container exists.

    ``origin`` returns where a key's value comes from. The limits are those that the engine has applied.
    """
    failed = status.code not in _NOT_A_CAUSE and status.signal is None
    with contextlib.suppress(ContainerError):
        if status.memory_kills or status.forks_refused:
            confinement = engine.confinement(session)
            if status.memory_kills:
                emit(_out_of_memory(session, status, confinement.memory_limit, f"{origin('sandbox.memory')}"))
            if status.forks_refused and confinement.pids_limit:
                emit(_out_of_processes(session, status, confinement.pids_limit, f"{origin('sandbox.pids')}"))
        if failed and engine.local:
            for event in full_disks(workspace, engine.inspect(session).storage):
                emit(event)


def tell_command_limits(engine: Engine, container: str, status: ExecStatus, emit: Emit) -> None:
    """Report that a command of ``podbot exec`` was killed because memory ran out."""
    if not status.out_of_memory:
        return
    limit = None
    with contextlib.suppress(ContainerError):
        limit = engine.confinement(container).memory_limit
    text = f"out of memory: the kernel killed the command; {_memory(limit, '')}"
    emit(Event("warning", "exec.out_of_memory", text, {"session": container, "limit": limit}))


def _out_of_memory(session: str, status: ExecStatus, limit: int | None, origin: str) -> Event:
    fields = {"session": session, "limit": limit, "origin": origin, "kills": status.memory_kills}
    if status.out_of_memory:
        text = f"out of memory: the kernel killed the agent; {_memory(limit, origin)}"
        return Event("warning", "agent.out_of_memory", text, fields)
    text = f"out of memory: the kernel killed {_processes(status.memory_kills)} in the sandbox"
    text += f"; {_memory(limit, origin)}"
    return Event("warning", "sandbox.out_of_memory", text, fields)


def _memory(limit: int | None, origin: str) -> str:
    key = f"sandbox.memory, {origin}" if origin else "sandbox.memory"
    return f"the limit is {limit / (1 << 20):,.4g} MiB ({key})" if limit else f"there is no limit ({key})"


def _out_of_processes(session: str, status: ExecStatus, limit: int, origin: str) -> Event:
    text = f"out of processes: the kernel refused {_processes(status.forks_refused)} in the sandbox"
    text += f"; the limit is {limit:,} (sandbox.pids, {origin})"
    fields = {"session": session, "limit": limit, "origin": origin, "refused": status.forks_refused}
    return Event("warning", "sandbox.out_of_processes", text, fields)


def _processes(number: int) -> str:
    return f"{number:,} process{'' if number == 1 else 'es'}"

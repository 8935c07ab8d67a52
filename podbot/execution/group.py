"""Signalling the process group of a command inside a container.

Closing an exec stream does not end the command (measured). Its process leads a group. On a local engine the group is
signalled from the host, which needs only answers from the engine. An ordinary user may do so too: the user namespace
that rootless Podman made belongs to that user, with all processes in it, whatever their user ids. Where that fails (a
remote engine), a shell inside the container sends the signal. That is an exec, for which the engine writes files, so
it is impossible when the engine's storage is full.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import time

from podbot.engine.port import Engine, ExecStream
from podbot.errors import ContainerError
from podbot.exec_spec import ExecSpec
from podbot.execution.time_limits import TIME_LIMITS

PROC = "/proc"  # where the engine's processes are looked for on this host
_ID = "[0-9a-f]{64}"  # a shorter id could be part of any cgroup's name
_LOOK = 0.2  # seconds between two reads of a stream that may have data which poll does not see, as over TLS


def signal_group(
    engine: Engine,
    container: str,
    exec_id: str,
    number: int,
    *,
    proc: str = PROC,
    seconds: float = TIME_LIMITS.shell,
) -> bool:
    """Send signal ``number`` to the exec session's whole group. Returns false when that was not possible.

    ``seconds``: how long a shell inside may take to send it.
    """
    try:
        pid = engine.exec_inspect(exec_id).pid
        if pid <= 1:  # kill(-1) signals every process
            return False
        if engine.local and _from_host(engine, container, pid, number, proc):
            return True
        return _from_inside(engine, container, pid, number, seconds)
    except (ContainerError, OSError):  # OSError: from the stream of the shell's exec
        return False


def is_gone(engine: Engine, container: str, pid: int, *, proc: str = PROC) -> bool:
    """Whether process ``pid`` of ``container`` no longer exists on this host; false when that is uncertain.

    An engine whose storage is full cannot record that a command ended, and reports it as running for ever (measured).
    """
    if not engine.local or pid <= 1 or os.path.exists(f"{proc}/{pid}"):
        return False
    try:
        found = engine.inspect(container)
        named = bool(re.fullmatch(_ID, found.id)) and found.id in _read(f"{proc}/{found.pid}/cgroup")
        return named or _inner_pid(proc, found.pid) == 1  # otherwise the engine's pids are of another namespace
    except (ContainerError, OSError):
        return False


def _from_host(engine: Engine, container: str, pid: int, number: int, proc: str) -> bool:
    """Signal group ``pid`` from the host, after checking that it is the container's and not a reused number."""
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not _is_the_containers(engine, container, pid, proc):
            return False
        signal.pidfd_send_signal(handle, 0)  # fails if the number was reused since
        os.killpg(pid, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _is_the_containers(engine: Engine, container: str, pid: int, proc: str) -> bool:
    """Whether process ``pid`` of this host exists and is in ``container``.

    Its cgroup shows that. Where containers have no cgroup of their own (rootless on cgroup v1), the engine and this
    host's kernel must agree on its pid inside and on that of the container's first process. An engine in another pid
    namespace (podbot in a container, with the host's socket) would report pids of unrelated processes.
    """
    found = engine.inspect(container)
    if re.fullmatch(_ID, found.id) and found.id in _read(f"{proc}/{pid}/cgroup"):
        return True
    inner = engine.processes(container).get(pid)
    if inner is None or _inner_pid(proc, pid) != inner or _inner_pid(proc, found.pid) != 1:
        return False
    return _namespace(proc, pid) == _namespace(proc, found.pid)


def _namespace(proc: str, pid: int) -> str:
    return os.readlink(f"{proc}/{pid}/ns/pid")


def _inner_pid(proc: str, pid: int) -> int | None:
    """The pid of process ``pid`` in its own namespace; None when that namespace is ours."""
    for line in _read(f"{proc}/{pid}/status").splitlines():
        name, *numbers = line.split()
        if name == "NSpid:" and len(numbers) > 1:
            return int(numbers[-1])
    return None


def _read(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()


def _from_inside(engine: Engine, container: str, pid: int, number: int, seconds: float) -> bool:
    inner = engine.processes(container).get(pid)
    if inner is None:
        return False
    name = signal.Signals(number).name.removeprefix("SIG")
    # The shell's builtin kill: slim images have no program of that name.
    spec = ExecSpec(command=("sh", "-c", f"kill -{name} -{inner}"), stdin=False, user="0")
    exec_id = engine.exec_create(container, spec)
    stream = engine.exec_start(exec_id, tty=False, size=None)
    with contextlib.closing(stream):
        stream.shut_write()
        _wait_for_end(stream, seconds)
    return engine.exec_inspect(exec_id).exit_code == 0  # 127: an image without a shell


def _wait_for_end(stream: ExecStream, seconds: float) -> None:
    """Read a short command's stream to its end, for at most ``seconds``."""
    poller = select.poll()
    poller.register(stream.fileno(), select.POLLIN)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        poller.poll(min(left, _LOOK) * 1000)
        with contextlib.suppress(BlockingIOError):
            if not stream.recv(65536):
                return

"""Processes of a container, seen from this machine: its first one, and those that a removed container has left.

The kernel reports the end of a process to any process that holds a pidfd of it. Before it reports the end of a
container's first process, it ends all others of the pid namespace and of those below it (pid_namespaces(7)). So
nothing in the container still runs then, although the engine is still removing it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

_ID = 12  # least length of a container's id; engines give 64 characters

_MONITOR = b"conmon"
_OWN = 1.0  # seconds for the monitor of a removed container to end by itself
_LOOK = 0.05


def first_process(pid: int, container: str) -> int | None:
    """A pidfd of the process that the engine says is the first of ``container`` (its id).

    None when that is uncertain: if the engine is in another pid namespace, the number may belong to another process,
    and if the container shares the host's namespace, the end of its first process does not imply that of the others.
    """
    if pid <= 0 or not container or not hasattr(os, "pidfd_open"):
        return None
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        with (
            open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status,
            open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as cgroup,
        ):
            known = is_first(status.read(), cgroup.read(), container)
        if known and lives(handle):  # still alive, so the files read were not those of a later process with this id
            return handle
    except OSError:
        pass
    os.close(handle)
    return None


def lives(handle: int) -> bool:
    """Whether the process of a pidfd has not ended."""
    return not select.select([handle], [], [], 0)[0]


def is_first(status: str, cgroup: str, container: str) -> bool:
    """Whether the ``status`` and ``cgroup`` of ``/proc/PID`` show pid 1 of a namespace below ours, in the container."""
    lines = (line.split() for line in status.splitlines())
    numbers = next((words[1:] for words in lines if words[:1] == ["NSpid:"]), [])
    return len(numbers) > 1 and numbers[-1] == "1" and is_id(container) and container in cgroup


def is_id(container: str) -> bool:
    """Whether it is long enough to be found only in the names of the container's own control groups."""
    return len(container) >= _ID


def end_left(container: str, *, seconds: float = _OWN, proc: str = "/proc") -> None:
    """Kill the monitor of ``container`` (an id) and the monitor's children. The engine has removed the container.

    Podman leaves two processes when its service is killed while it starts a container (4.3.1): the monitor, and its
    child, a process of the OCI runtime's that would become the container's first one and waits to be told so.
    """
    if not is_id(container):
        return
    until = time.monotonic() + seconds
    while pids := _left(container.encode(), proc):
        if time.monotonic() > until:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            return
        time.sleep(_LOOK)


def _left(container: bytes, proc: str) -> list[int]:
    pids = [int(name) for name in os.listdir(proc) if name.isdigit()]
    monitors = [pid for pid in pids if _is_monitor(_read(proc, pid, "cmdline"), container) and _is_own(proc, pid)]
    return monitors + ([pid for pid in pids if _parent(_read(proc, pid, "stat")) in monitors] if monitors else [])


def _is_monitor(command: bytes, container: bytes) -> bool:
    words = command.split(b"\0")
    return os.path.basename(words[0]) == _MONITOR and b"\0-c\0" + container + b"\0" in command


def _is_own(proc: str, pid: int) -> bool:
    """Whether the process runs as this user: any user may name a program so."""
    with contextlib.suppress(OSError):
        return os.stat(os.path.join(proc, str(pid))).st_uid == os.getuid()
    return False


def _parent(stat: bytes) -> int:
    """The pid after the command in brackets, which may contain any byte, and the state; 0 for a process that ended."""
    words = stat.rpartition(b")")[2].split()
    return int(words[1]) if len(words) > 1 else 0


def _read(proc: str, pid: int, name: str) -> bytes:
    with contextlib.suppress(OSError), open(os.path.join(proc, str(pid), name), "rb") as file:
        return file.read()
    return b""

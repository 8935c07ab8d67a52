"""Ends processes of a container that has been removed.

Podman leaves two when its service is killed while it starts a container (4.3.1): the container's monitor, and its
child, a process of the OCI runtime's that would become the container's first one and waits to be told so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from podbot.session.first_process import is_id

_MONITOR = b"conmon"
_OWN = 1.0  # seconds for them to end by themselves: the monitor of a container that was removed may be about to
_LOOK = 0.05


def end_left(container: str, *, seconds: float = _OWN, proc: str = "/proc") -> None:
    """Kill the monitor of ``container`` (an id) and the monitor's children. The engine has removed the container."""
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

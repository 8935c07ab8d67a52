"""Finds out whether an engine of this machine waits at a FIFO for ever, and ends podbot's own one that does.

What opens a FIFO waits inside the kernel until somebody opens its other end, and no signal that the engine handles
ends that. An agent can move the FIFO away meanwhile, so the engine is looked at and not the container.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator

from podbot.engine.podman.private.service import SOCKET, process_of

_IN_OPEN = "wait_for_partner"  # the kernel's function in which the opening of a FIFO waits
PROC = "/proc"


def freed(
    path: str,
    *,
    proc: str = PROC,
    process: Callable[[str], int] = process_of,
    send: Callable[[int, int], None] | None = None,
) -> str:
    """What holds up the engine whose socket is at ``path``, and what was done; empty if it waits at no FIFO.

    ``process``: the one that listens there. Podman opens some files in a process of its own, inside the container: that
    one is ended alone, and the engine goes on.
    """
    pid = process(path)
    helper = next((child for child in _children(pid, proc) if _waits(child, proc)), 0) if pid else 0
    if not helper and not (pid and _waits(pid, proc)):
        return ""
    what = "waits at a named pipe that a container has in place of a file"
    if not _is_podbots(pid, path, proc):
        return f"its process {pid} {what}"
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(helper or pid)
        try:
            if _waits(helper or pid, proc):  # the number may be another process's by now
                (send or signal.pidfd_send_signal)(handle, signal.SIGKILL)
        finally:
            os.close(handle)
    return (
        f"it {what}; podbot ended {'the process that waited' if helper else 'it, and the next command starts it anew'}"
    )


def _is_podbots(pid: int, path: str, proc: str) -> bool:
    """Whether it is the service that podbot starts at this path, as this user."""
    if not path.endswith(f"/.engine/{SOCKET}"):
        return False
    try:
        with open(f"{proc}/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        return f"unix://{path}".encode() in words and os.stat(f"{proc}/{pid}").st_uid == os.getuid()
    except OSError:
        return False


def _waits(pid: int, proc: str) -> bool:
    """Whether one of its threads does."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"{proc}/{pid}/task"):
            with contextlib.suppress(OSError), open(f"{proc}/{pid}/task/{thread}/wchan", encoding="ascii") as file:
                if file.read() == _IN_OPEN:
                    return True
    return False


def _children(pid: int, proc: str) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"{proc}/{pid}/task"):
            with (
                contextlib.suppress(OSError),
                open(f"{proc}/{pid}/task/{thread}/children", encoding="ascii") as file,
            ):
                yield from map(int, file.read().split())

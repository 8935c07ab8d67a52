"""Processes of a container that the engine knows no longer, found and ended on this host.

Podman forgets that a container runs when its temporary directory is lost (4.3, 5.4): it then calls the container
created, and its processes continue. Only the kernel knows: by their control group, or where a rootless engine makes
none (cgroup v1), by the files of the container's own directory that are mounted in it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Sequence

_ID = re.compile("[0-9a-f]{64}")  # a shorter id could be part of any name
_LOOK = 0.02  # seconds between two looks at what is left
_ATTENDANTS = ("conmon", "podman")
_OWN_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv")  # that Podman mounts in each
PROC = "/proc"


def left(container: str, proc: str = PROC) -> list[int]:
    """The processes of ``container`` (a whole id) that this process can see. Its monitor is not one of them.

    A process that shares podbot's pid namespace is never one: it is a program of this host.
    """
    if not _ID.fullmatch(container):
        return []
    try:
        ours = os.readlink(f"{proc}/self/ns/pid")
        pids = [int(name) for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return []
    return sorted(pid for pid in pids if _is_in(pid, container, ours, proc))


def _is_in(pid: int, container: str, ours: str, proc: str) -> bool:
    try:
        if os.readlink(f"{proc}/{pid}/ns/pid") == ours:  # fails for one that has ended, too
            return False
        if container in _read(f"{proc}/{pid}/cgroup"):
            return True
        return any(_is_own_file(line, container) for line in _read(f"{proc}/{pid}/mountinfo").splitlines())
    except OSError:
        return False


def _is_own_file(line: str, container: str) -> bool:
    """Whether a line of mountinfo is one of the container's own files at its place inside.

    Its directory as a mount point says nothing: a rootful engine mounts the container's /dev/shm on the host, where
    every program of the host sees it, such as a browser's, which has a pid namespace of its own.
    """
    fields = line.split(" ", 5)
    return len(fields) > 4 and f"/{container}/userdata/" in fields[3] and fields[4] in _OWN_FILES


def attended(container: str, proc: str = PROC) -> bool:
    """Whether Podman or the container's monitor still works on it, such as to unmount what was mounted for it."""
    try:
        pids = [name for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return False
    for pid in pids:
        with contextlib.suppress(OSError):
            words = _read(f"{proc}/{pid}/cmdline").split("\0")
            if os.path.basename(words[0]) in _ATTENDANTS and container in words and "--exec-attach" not in words:
                return True
    return False


def end(
    container: str,
    *,
    grace: float,
    kill: float,
    proc: str = PROC,
    send: Callable[[int, int], None] = signal.pidfd_send_signal,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[int]:
    """End what is left of ``container``: TERM, ``grace`` seconds, KILL, ``kill`` seconds. Returns what still runs."""
    pids = left(container, proc)
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, kill)):
        if not pids or (number == signal.SIGTERM and seconds <= 0):
            continue
        _signal(container, pids, number, proc, send)
        until = clock() + seconds
        while (pids := left(container, proc)) and clock() < until:
            sleep(_LOOK)
            if number == signal.SIGKILL:
                _signal(container, pids, number, proc, send)  # one may have been forked meanwhile
    return pids


def _signal(container: str, pids: Sequence[int], number: int, proc: str, send: Callable[[int, int], None]) -> None:
    ours = os.readlink(f"{proc}/self/ns/pid")
    for pid in pids:
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(pid)
            try:
                if _is_in(pid, container, ours, proc):  # the number may have been another process's by then
                    send(handle, number)
            finally:
                os.close(handle)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()

"""Ends processes of a removed sandbox that wait for a FUSE server of their own, which will never answer.

Such a process is in a state that no signal ends. If it shares its open files with the server's thread, the connection
outlives the server, and with it the process, its memory and its mounts, while the engine says that the container is
gone (Podman 4.3.1). Only aborting the connection at the kernel ends it (ADR 0053).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from podbot.events import Emit, Event
from podbot.session.first_process import is_id

if TYPE_CHECKING:
    from podbot.session.record import SessionRecord

CONNECTIONS = "/sys/fs/fuse/connections"
_FUSE = "/dev/fuse"
_OWN = 1.0  # seconds for processes that the engine has killed to end
_LOOK = 0.05
_MOST = 1 << 18  # bytes of a process's mounts that are read
_FSOPEN, _FSCONFIG, _FSMOUNT, _CREATE = 430, 431, 432, 6  # the same numbers on every architecture


def end_stuck(
    record: SessionRecord,
    emit: Emit,
    *,
    seconds: float = _OWN,
    proc: str = "/proc",
    connections: str = CONNECTIONS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """End what is left of the session's container, which the engine has removed or cannot end.

    Returns whether something was left and has ended now. What does not end is reported. Costs nothing for a session
    without /dev/fuse.
    """
    if not _has_fuse(record.plan) or not is_id(record.container):
        return False

    def left() -> list[str]:
        until = clock() + seconds
        while (tasks := list(_tasks(record.container, proc))) and clock() < until:
            sleep(_LOOK)
        return tasks

    tasks = left()
    if not tasks:
        return False
    found = _made_by(tasks, proc)
    with _control(connections) as directory:
        for number in found:
            _abort(directory, number)
    if not left():
        return True
    ways = ", ".join(f"{connections}/{number}/abort" for number in sorted(found)[:8])
    text = f"processes of the sandbox {record.session} do not end"
    if ways:
        text += f", because they wait for a FUSE server of their own. As root, write 1 to {ways}"
    emit(Event("warning", "session.stuck", text, {"session": record.session, "connections": sorted(found)}))
    return False


def _has_fuse(plan: Mapping[str, Any] | None) -> bool:
    """Whether the session of a record's plan has /dev/fuse. Without planning's modules."""
    try:
        security = plan["container"]["security"]  # type: ignore[index] # None is a TypeError
        return security["privileged"] is True or _FUSE in security["devices"]
    except (KeyError, TypeError):
        return False


def _tasks(container: str, proc: str) -> Iterator[str]:
    """Directories of the container's threads that have not ended; also of a process whose first thread has."""
    try:
        ours = os.readlink(f"{proc}/self/ns/pid")
        pids = [name for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return
    for pid in pids:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"{proc}/{pid}/task"):
                found = f"{proc}/{pid}/task/{task}"
                with contextlib.suppress(OSError):
                    if os.readlink(f"{found}/ns/pid") == ours:
                        break  # a program of this host, such as the container's monitor
                    if container in _read(f"{found}/cgroup") or _is_own(_read(f"{found}/mountinfo"), container):
                        yield found


def _is_own(mounts: str, container: str) -> bool:
    """As the engine knows it where containers have no control group: by a file that it mounts into this one alone."""
    fields = (line.split(" ", 5) for line in mounts.splitlines())
    return any(
        len(line) > 4 and f"/{container}/userdata/" in line[3] and line[4] == "/run/.containerenv" for line in fields
    )


def _made_by(tasks: Collection[str], proc: str) -> set[int]:
    """The FUSE connections of file systems that these threads see and this process does not.

    A file system of the host's, of which a directory is mounted into the sandbox, is seen by both.
    """
    host = _mounted(f"{proc}/self/mountinfo")
    found: set[int] = set()
    for task in tasks:
        with contextlib.suppress(OSError):
            found |= _mounted(f"{task}/mountinfo")
    return found - host


def _mounted(path: str) -> set[int]:
    """The numbers of the FUSE connections in a mountinfo: the minor numbers of their devices, which have no major."""
    found = set()
    for line in _read(path).splitlines():
        fields, _, kind = line.partition(" - ")
        if kind.split(" ", 1)[0].partition(".")[0] == "fuse":
            major, _, minor = fields.split(" ")[2].partition(":")
            if major == "0" and minor.isdigit():
                found.add(int(minor))
    return found


@contextlib.contextmanager
def _control(connections: str) -> Iterator[int]:
    """The directory of all connections, also where nobody has mounted it and this is root; -1 without one."""
    directory = -1
    with contextlib.suppress(OSError):
        directory = os.open(connections, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if connections == CONNECTIONS and not os.listdir(directory):
            os.close(directory)
            directory = -1
            directory = _unattached()
    try:
        yield directory
    finally:
        if directory >= 0:
            os.close(directory)


def _unattached() -> int:
    """The kernel's directory of connections, mounted nowhere. Raises OSError: needs root."""
    import ctypes  # few machines lack the mount

    kernel = ctypes.CDLL(None, use_errno=True)

    def called(*arguments: Any) -> int:
        result = int(kernel.syscall(*arguments))
        if result < 0:
            raise OSError(ctypes.get_errno(), "the kernel's list of FUSE connections")
        return result

    context = called(_FSOPEN, b"fusectl", 1)  # close-on-exec
    try:
        called(_FSCONFIG, context, _CREATE, None, None, 0)
        return called(_FSMOUNT, context, 1, 0)
    finally:
        os.close(context)


def _abort(directory: int, number: int) -> None:
    with contextlib.suppress(OSError):
        file = os.open(f"{number}/abort", os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            os.write(file, b"1")
        finally:
            os.close(file)


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(_MOST).decode(errors="replace")

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
from podbot.session.container_processes import is_id

if TYPE_CHECKING:
    from podbot.session.record import SessionRecord

CONNECTIONS = "/sys/fs/fuse/connections"
_FUSE = "/dev/fuse"
_OWN = 1.0  # seconds for processes that the engine has killed to end
_LOOK = 0.05
_MOST_OF_A_GROUP = 1 << 16  # bytes
_FSOPEN, _FSCONFIG, _FSMOUNT, _CREATE = 430, 431, 432, 6  # on x86, ARM, POWER, RISC-V and s390


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
    with _control(connections) as directory:
        found = _made_by(tasks, record.container, proc)
        for number in found:
            _abort(directory, number)
        if not left():
            return True
        named = found or _waiting_unseen(directory, proc)
    text = f"processes of the sandbox {record.session} do not end"
    if named:
        ways = ", ".join(f"{connections}/{number}/abort" for number in sorted(named)[:8])
        theirs = "a FUSE server of their own" if found else "a FUSE server, which may be of their own"
        text += f", because they wait for {theirs}. As root, write 1 to {ways}"
    emit(Event("warning", "session.stuck", text, {"session": record.session, "connections": sorted(named)}))
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
                    if _is_of(container, found):
                        yield found


def _is_of(container: str, task: str) -> bool:
    """Where containers have no control group, a file tells that the engine mounts into this one alone."""
    with open(f"{task}/cgroup", "rb") as file:
        if container.encode() in file.read(_MOST_OF_A_GROUP):
            return True
    own = f"/{container}/userdata/".encode()
    return any(own in root and target == b"/run/.containerenv" for _, root, target, _ in _mounts(f"{task}/mountinfo"))


def _made_by(tasks: Collection[str], container: str, proc: str) -> set[int]:
    """The FUSE connections that these threads serve or see, and no program of this host sees.

    A file system of the host's, of which a directory is mounted into the sandbox, is seen by both; a rootless engine's
    own file system of the container is seen by its monitor. Nothing if this process's mounts cannot be read.
    """
    found: set[int] = set()
    spaces: set[str] = set()
    for task in tasks:
        seen: set[int] = set()
        with contextlib.suppress(OSError):
            seen |= _served(task)
            if (space := os.readlink(f"{task}/ns/mnt")) not in spaces:
                seen |= _connections(f"{task}/mountinfo")
            if _is_of(container, task):  # still: the number of one that has ended may be another's by now
                found |= seen
                spaces.add(space)
    try:
        host = _connections(f"{proc}/self/mountinfo") | _seen(proc, of_the_host=True)
    except OSError:
        return set()
    return found - host


def _served(task: str) -> set[int]:
    """The connections whose /dev/fuse this thread has open, where the kernel says it (6.18 does)."""
    found = set()
    for name in os.listdir(f"{task}/fdinfo"):
        with contextlib.suppress(OSError, ValueError), open(f"{task}/fdinfo/{name}", "rb") as file:
            for line in file:
                if line.startswith(b"fuse_connection:"):
                    found.add(int(line.partition(b":")[2]))
    return found


def _seen(proc: str, *, of_the_host: bool) -> set[int]:
    """The connections of all mount namespaces that can be read; ``of_the_host``: only of its own programs."""
    ours = os.readlink(f"{proc}/self/ns/pid")
    spaces: set[str] = set()
    found: set[int] = set()
    for pid in os.listdir(proc):
        if not pid.isdigit():
            continue
        with contextlib.suppress(OSError):
            if of_the_host and os.readlink(f"{proc}/{pid}/ns/pid") != ours:
                continue
            if (space := os.readlink(f"{proc}/{pid}/ns/mnt")) not in spaces:
                found |= _connections(f"{proc}/{pid}/mountinfo")
                spaces.add(space)
    return found


def _connections(path: str) -> set[int]:
    """The numbers of the FUSE connections in a mountinfo: the minor numbers of their devices, which have no major."""
    found = set()
    for device, _, _, kind in _mounts(path):
        major, _, minor = device.partition(b":")
        if kind.partition(b".")[0] == b"fuse" and major == b"0" and minor.isdigit():
            found.add(int(minor))
    return found


def _mounts(path: str) -> Iterator[tuple[bytes, bytes, bytes, bytes]]:
    """The device, root, target and type of each mount. Raises OSError.

    Only a newline ends a line, and only a space a field: the kernel writes those in names as numbers, and no other
    character, such as a carriage return. A mount namespace has at most 100,000 mounts (fs.mount-max).
    """
    with open(path, "rb") as file:
        for line in file:
            fields, _, rest = line.partition(b" - ")
            words = fields.split(b" ")
            if len(words) > 4:
                yield words[2], words[3], words[4], rest.split(b" ", 1)[0]


def _waiting_unseen(directory: int, proc: str) -> set[int]:
    """The connections that something waits for and of which no mount can be seen, as after a lazy unmount."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        seen = _seen(proc, of_the_host=False)
        for name in os.listdir(directory):
            if name.isdigit() and int(name) not in seen:
                with (
                    contextlib.suppress(OSError, ValueError),
                    _opened(directory, f"{name}/waiting", os.O_RDONLY) as file,
                ):
                    if int(os.read(file, 64)) > 0:
                        found.add(int(name))
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
    with contextlib.suppress(OSError), _opened(directory, f"{number}/abort", os.O_WRONLY) as file:
        os.write(file, b"1")


@contextlib.contextmanager
def _opened(directory: int, path: str, flags: int) -> Iterator[int]:
    file = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        yield file
    finally:
        os.close(file)

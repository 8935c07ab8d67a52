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
from collections.abc import Callable, Mapping, Sequence

# Texts, which are compiled when they are first used: `podbot exec` loads the module.
_ID = "[0-9a-f]{64}"  # a shorter id could be part of any name
_LOOK = 0.02  # seconds between two looks at what is left
_LOOK_SOON = 0.001  # the same, at what ends within a few milliseconds
_ATTENDANTS = ("conmon", "podman")
_OWN_FILE = "/run/.containerenv"
_OF_A_CONTAINER = "libpod-[0-9a-f]{64}"
_OWN_DIRECTORY = "/([0-9a-f]{64})/userdata/"
# Bytes of a file that are read: a process inside can have 100,000 mounts; its own file is among the first.
_MOST = 1 << 18
PROC = "/proc"
_RUNTIMES = ("runc", "crun")


def is_id(text: str) -> bool:
    """Whether this is the whole id of a container."""
    return re.fullmatch(_ID, text) is not None


def left(container: str, proc: str = PROC) -> list[int]:
    """The processes of ``container`` (a whole id) that this process can see. Its monitor is not one of them.

    A process that shares podbot's pid namespace is never one: it is a program of this host.
    """
    if not is_id(container):
        return []
    try:
        ours = os.readlink(f"{proc}/self/ns/pid")
        pids = [int(name) for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return []
    return sorted(pid for pid in pids if _is_in(pid, container, ours, proc))


def alive(proc: str = PROC) -> dict[str, int]:
    """The containers whose first process runs here, by their whole ids, and that process.

    No other process counts: it could have mounted files, or be in a control group, as another container's are. The
    kernel ends a container with its first process.
    """
    found: dict[str, int] = {}
    try:
        ours = os.readlink(f"{proc}/self/ns/pid")
        pids = sorted(int(name) for name in os.listdir(proc) if name.isdigit())
    except OSError:
        return found
    for pid in pids:
        with contextlib.suppress(OSError):
            if container := _begun_by(pid, ours, proc):
                found.setdefault(container, pid)
    return found


def _begun_by(pid: int, ours: str, proc: str) -> str:
    """The container of which this is the first process; empty if it is none. Raises OSError."""
    if os.readlink(f"{proc}/{pid}/ns/pid") == ours:  # most processes; this costs a tenth of reading their status
        return ""
    numbers = re.search(r"^NSpid:(.*)$", _read(f"{proc}/{pid}/status"), re.MULTILINE)
    if numbers is None or numbers[1].split()[1:] != ["1"]:
        return ""
    os.readlink(f"{proc}/{pid}/ns/mnt")  # see `_is_in`
    if named := re.search(_OF_A_CONTAINER, _read(f"{proc}/{pid}/cgroup")):
        return named[0][-64:]
    mounts = (line.split(" ", 5) for line in _read(f"{proc}/{pid}/mountinfo").splitlines())
    own = next((fields[3] for fields in mounts if len(fields) > 4 and fields[4] == _OWN_FILE), "")
    found = re.search(_OWN_DIRECTORY, own)
    return found[1] if found else ""


def _is_in(pid: int, container: str, ours: str, proc: str) -> bool:
    try:
        if os.readlink(f"{proc}/{pid}/ns/pid") == ours:
            return False
        os.readlink(f"{proc}/{pid}/ns/mnt")  # fails for one that has ended, also while nobody waits for it
        groups = _read(f"{proc}/{pid}/cgroup")
        if container in groups:
            return True
        if re.search(_OF_A_CONTAINER, groups):  # another one
            return False
        mounts = _read(f"{proc}/{pid}/mountinfo").splitlines()
    except OSError:
        return False
    return any(_is_own_file(line, container) for line in mounts)


def _is_own_file(line: str, container: str) -> bool:
    """Whether a line of mountinfo is the file that Podman mounts into this container alone.

    It mounts others of the container's directory elsewhere, too: /etc/hosts and /etc/resolv.conf into containers that
    share its network, and, where the engine is rootful, its /dev/shm on the host, where every program of the host sees
    it, such as a browser's, which has a pid namespace of its own.
    """
    fields = line.split(" ", 5)
    return len(fields) > 4 and f"/{container}/userdata/" in fields[3] and fields[4] == _OWN_FILE


def lives(pid: int, proc: str = PROC) -> bool:
    """Whether there is such a process. One that has ended and that nobody has waited for is none."""
    try:
        os.readlink(f"{proc}/{pid}/ns/mnt")
    except PermissionError:  # another user's
        return True
    except OSError:
        return False
    return True


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
    send: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[int]:
    """End what is left of ``container``: TERM, ``grace`` seconds, KILL, ``kill`` seconds. Returns what still runs."""
    send = send or signal.pidfd_send_signal  # not a default: other systems, where remote engines are used, have none
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


def kill_first(
    container: str,
    pid: int,
    seconds: float,
    *,
    proc: str = PROC,
    send: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Kill ``pid``, the first process of ``container`` (a whole id). Never raises.

    Waits up to ``seconds`` until its monitor has noticed. The kernel ends the container's other processes before that
    one. A process of anything else is not signalled.
    """
    send = send or signal.pidfd_send_signal
    with contextlib.suppress(OSError):
        ours = os.readlink(f"{proc}/self/ns/pid")
        handle = os.pidfd_open(pid)
        try:
            if is_id(container) and _is_in(pid, container, ours, proc):
                send(handle, signal.SIGKILL)
                until = clock() + seconds
                while clock() < until:
                    send(handle, 0)  # fails once its parent, the monitor, has waited for it
                    sleep(_LOOK_SOON)
        finally:
            os.close(handle)


def delete(runtime: str, container: str, directory: str = "") -> None:
    """Delete the runtime's record of ``container`` with its control groups. Never raises.

    ``directory``: where the record is; otherwise the runtime's default, which depends on its environment.

    Podman deletes it of those that it knows to run; of another, its next start fails ("container with given ID already
    exists", Podman 4.3 with runc 1.1). Without --force the runtime refuses while a started container's process runs; of
    one that was not started it ends the process that waits for that.
    """
    import subprocess  # imported here: `podbot exec` loads the module

    if not (runtime and is_id(container)):
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            [runtime, *(("--root", directory) if directory else ()), "delete", container],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            cwd="/",
            check=False,
        )


def runtime_directories(environ: Mapping[str, str], uid: int) -> tuple[str, ...]:
    """Where the OCI runtimes keep their records, a directory for each container."""
    bases = ("/run",) if uid == 0 else tuple(dict.fromkeys((environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{uid}")))
    return tuple(os.path.join(base, name) for base in bases if os.path.isabs(base) for name in _RUNTIMES)


def delete_record(
    container: str, directories: Sequence[str], *, delete: Callable[[str, str, str], None] = delete
) -> None:
    """Delete the runtime's record of a removed container (a whole id), with its control groups, if there is one."""
    for directory in directories if is_id(container) else ():
        if os.path.lexists(os.path.join(directory, container)):
            delete(os.path.basename(directory), container, directory)


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
    with open(path, "rb") as file:
        return file.read(_MOST).decode(errors="replace")

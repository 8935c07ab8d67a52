"""Reads from this host's /proc which processes of a command's group are stopped or handle SIGCONT."""

from __future__ import annotations

import contextlib
import os
import signal

from podbot.frozen import Frozen

_CONTINUE = 1 << (signal.SIGCONT - 1)


class Group(Frozen):
    """``stopped``: whether any process of the group is stopped. ``members``: pid -> whether it handles SIGCONT."""

    stopped: bool
    members: dict[int, bool]


def group_of(leader: int, container_id: str) -> Group | None:
    """The group that process ``leader`` leads; None when it is not visible here or not in the container."""
    try:
        if container_id not in _read(leader, "cgroup") and not in_own_namespace(_read(leader, "status")):
            return None
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return None
    stopped, members = False, {}
    for pid in pids:
        with contextlib.suppress(OSError):
            found = state_and_group(_read(pid, "stat"))
            if found is not None and found[1] == leader:
                stopped = stopped or found[0] == "T"
                members[pid] = handles_continue(_read(pid, "status"))
    return Group(stopped, members) if members else None


def outer_pid(first: int, inner: int) -> int:
    """The pid on this host of process ``inner`` in the pid namespace of process ``first``; 0 when it is not visible."""
    try:
        namespace = os.readlink(f"/proc/{first}/ns/pid")
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return 0
    for pid in pids:
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/ns/pid") == namespace and _inner_pid(_read(pid, "status")) == inner:
                return pid
    return 0


def is_over(first: int, inner: int) -> bool:
    """Whether process ``inner`` of the pid namespace of process ``first`` has ended; false when that is uncertain."""
    try:
        known = in_own_namespace(_read(first, "status")) and _inner_pid(_read(first, "status")) == 1
    except OSError:
        return False
    return known and not outer_pid(first, inner)


def _inner_pid(status: str) -> int:
    """The pid in its own namespace, from /proc/PID/status."""
    for line in status.splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return 0


def state_and_group(stat: str) -> tuple[str, int] | None:
    """(state, process group) from /proc/PID/stat; the process can choose the name in it freely."""
    fields = stat.rpartition(")")[2].split()
    if len(fields) < 3 or not fields[2].lstrip("-").isdecimal():
        return None
    return fields[0], int(fields[2])


def in_own_namespace(status: str) -> bool:
    """Whether /proc/PID/status shows a second pid. Needed since a rootless container may have no cgroup of its own."""
    return any(line.startswith("NSpid:") and len(line.split()) > 2 for line in status.splitlines())


def handles_continue(status: str) -> bool:
    """Whether /proc/PID/status lists SIGCONT among the caught signals."""
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "SigCgt":
            with contextlib.suppress(ValueError):
                return bool(int(value, 16) & _CONTINUE)
    return False


def _read(pid: int, name: str) -> str:
    with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
        return file.read()

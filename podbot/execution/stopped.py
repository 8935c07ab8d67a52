"""What this host's /proc says of a command's process group: who is stopped, and who waits to be continued."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import NamedTuple

_CONTINUE = 1 << (signal.SIGCONT - 1)


class Group(NamedTuple):
    """``stopped``: a process of the group is. ``members``: pid -> whether it handles SIGCONT itself."""

    stopped: bool
    members: dict[int, bool]


def group_of(leader: int, container_id: str) -> Group | None:
    """The group that process ``leader`` leads; None when it cannot be seen from here, or is not the container's."""
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


def state_and_group(stat: str) -> tuple[str, int] | None:
    """(state, process group) out of /proc/PID/stat; the name in it is the process's own choice."""
    fields = stat.rpartition(")")[2].split()
    if len(fields) < 3 or not fields[2].lstrip("-").isdecimal():
        return None
    return fields[0], int(fields[2])


def in_own_namespace(status: str) -> bool:
    """Whether /proc/PID/status shows a second number: a rootless container need not have a cgroup of its own."""
    return any(line.startswith("NSpid:") and len(line.split()) > 2 for line in status.splitlines())


def handles_continue(status: str) -> bool:
    """Whether /proc/PID/status lists SIGCONT among the signals that are caught."""
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "SigCgt":
            with contextlib.suppress(ValueError):
                return bool(int(value, 16) & _CONTINUE)
    return False


def _read(pid: int, name: str) -> str:
    with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
        return file.read()

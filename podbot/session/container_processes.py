"""The first process of a container, seen from this machine.

The kernel reports the end of a process to any process that holds a pidfd of it. Before it reports the end of a
container's first process, it ends all others of the pid namespace and of those below it (pid_namespaces(7)). So
nothing in the container still runs then, although the engine is still removing it.
"""

from __future__ import annotations

import os
import select

_ID = 12  # least length of a container's id; engines give 64 characters


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

"""The first process of a container, whose end the kernel tells to whoever holds a descriptor of it.

The kernel ends all other processes of its pid namespace, and of those below, before the first one's end is told
(pid_namespaces(7)): nothing that ran in the container runs after that, while the engine still takes it apart.
"""

from __future__ import annotations

import os
import select

_ID = 12  # characters that are taken for a container's id; engines give 64


def first_process(pid: int, container: str) -> int | None:
    """A pidfd of the process that the engine says is the first of ``container`` (its id).

    None where that cannot be known for sure: another process may have the number where the engine is in another pid
    namespace, and in the host's namespace its end would tell nothing of the others.
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
        if known and lives(handle):  # so what was read is of no successor
            return handle
    except OSError:
        pass
    os.close(handle)
    return None


def lives(handle: int) -> bool:
    """Whether the process of a pidfd has not ended."""
    return not select.select([handle], [], [], 0)[0]


def is_first(status: str, cgroup: str, container: str) -> bool:
    """By ``/proc/PID/status`` and ``cgroup``: number 1 of a namespace below ours, in the cgroup of the container."""
    lines = (line.split() for line in status.splitlines())
    numbers = next((words[1:] for words in lines if words[:1] == ["NSpid:"]), [])
    return len(numbers) > 1 and numbers[-1] == "1" and len(container) >= _ID and container in cgroup

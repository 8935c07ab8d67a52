"""What the kernel counts of a sandbox's limits, read on this host.

The guest reads the same from inside. This is for commands that the engine runs, as in an image without python3: the
files are those of the container's control group, of which nothing inside is asked.
"""

from __future__ import annotations

import os
from typing import NamedTuple

PROC = "/proc"
# A controller, the file of cgroup v1 and that of v2, and the word before the count.
_MEMORY = ("memory", "memory.oom_control", "memory.events", "oom_kill")
_PIDS = ("pids", "pids.events", "pids.events", "max")
_MOST = 1 << 16  # bytes of a file that are read


class KernelCounts(NamedTuple):
    """The files with the counts of one container, or empty texts."""

    memory: str = ""
    pids: str = ""

    def read(self) -> tuple[int, int]:
        """How many of its processes were killed for memory, and how many were refused; 0 what is not known."""
        return _count(self.memory, _MEMORY[3]), _count(self.pids, _PIDS[3])


def counts_of(container: str, pid: int, *, proc: str = PROC) -> KernelCounts:
    """Where the counts are of ``container``, a whole id, of which ``pid`` is a process of this host.

    The control group is the one that is named after the container, whatever the sandbox has made below it. Where there
    is none, as with a rootless engine on cgroup v1, nothing is found: the counts would be those of other processes.
    """
    if pid <= 0 or len(container) != 64:
        return KernelCounts()
    try:
        groups = _read(f"{proc}/{pid}/cgroup").splitlines()
        mounts = _read(f"{proc}/self/mountinfo").splitlines()
    except OSError:
        return KernelCounts()
    return KernelCounts(*(_file(kind, container, groups, mounts) for kind in (_MEMORY, _PIDS)))


def _file(kind: tuple[str, str, str, str], container: str, groups: list[str], mounts: list[str]) -> str:
    controller, first, second, _ = kind
    for line in groups:  # "4:cpu,memory:/path" of v1; "0::/path" of v2, which is the last and has no controllers beside
        number, controllers, path = line.split(":", 2)
        unified = number == "0" and not controllers
        if unified or controller in controllers.split(","):
            own = _own(path, container)
            place = _mounted("" if unified else controller, mounts)
            if own and place:
                # crun runs the processes in a group below the scope's; Linux before 6.11 counts refused forks there.
                inner = os.path.join(place + own, "container", second)
                if unified and kind is _PIDS and os.path.exists(inner):
                    return inner
                return os.path.join(place + own, second if unified else first)
    return ""


def _own(path: str, container: str) -> str:
    """The path to the container's own group."""
    parts = path.split("/")
    found = next((number for number, part in enumerate(parts) if container in part), None)
    return "" if found is None or ".." in parts else "/".join(parts[: found + 1])


def _mounted(controller: str, mounts: list[str]) -> str:
    """Where the whole hierarchy of a controller of v1, or for "" that of v2, is mounted."""
    for line in mounts:
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(kind) < 3 or fields[3] != "/":
            continue
        if kind[0] == "cgroup2" if not controller else kind[0] == "cgroup" and controller in kind[2].split(","):
            return fields[4]
    return ""


def _count(path: str, word: str) -> int:
    try:
        words = _read(path).split() if path else []
        return max(0, int(words[words.index(word) + 1]))
    except (OSError, ValueError, IndexError):
        return 0


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(_MOST).decode(errors="replace")

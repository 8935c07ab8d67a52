"""How much memory, how many open files and processes this machine has, as far as podbot may use them."""

from __future__ import annotations

import os
import resource

UNLIMITED = 1 << 20  # what Podman sets where nothing limits it
_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_memory(root: str = "/") -> int:
    """Bytes; 0 when nothing tells. Where podbot is in a container with a limit, that is all there is."""
    found = [int(text) for name in _LIMITS if (text := _read(root, name).strip()).isdigit()]
    for line in _read(root, "proc/meminfo").splitlines():
        words = line.split()
        if words[:1] == ["MemTotal:"] and len(words) == 3 and words[1].isdigit():
            found.append(int(words[1]) << 10)
    return min((size for size in found if size > 0), default=0)


def hard_limit(kind: int) -> int:
    """The most that a process started here may set, of files or processes; Podman's own where nothing limits it."""
    hard = resource.getrlimit(kind)[1]
    return UNLIMITED if hard == resource.RLIM_INFINITY else hard


def _read(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""

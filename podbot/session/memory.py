"""How much memory, and how many open files and processes, podbot may use on this machine."""

from __future__ import annotations

import os
import resource

UNLIMITED = 1 << 20  # what Podman sets where nothing limits it
_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_memory(root: str = "/") -> int:
    """In bytes; 0 when unknown. If podbot runs in a container with a memory limit, the limit is returned."""
    found = [int(text) for name in _LIMITS if (text := _read(root, name).strip()).isdigit()]
    for line in _read(root, "proc/meminfo").splitlines():
        words = line.split()
        if words[:1] == ["MemTotal:"] and len(words) == 3 and words[1].isdigit():
            found.append(int(words[1]) << 10)
    return min((size for size in found if size > 0), default=0)


def most_files(root: str = "/") -> int:
    """How many files a process started here may have open."""
    return _ceiling(resource.RLIMIT_NOFILE, root, "proc/sys/fs/nr_open")


def most_processes(root: str = "/") -> int:
    """How many processes the user of a process started here may have."""
    return _ceiling(resource.RLIMIT_NPROC, root, "proc/sys/kernel/pid_max")


def _ceiling(kind: int, root: str, kernel: str) -> int:
    """The lower of the hard limit and the kernel's, to which Podman lowers its own; Podman's default if unlimited."""
    text = _read(root, kernel).strip()
    values = [resource.getrlimit(kind)[1], int(text) if text.isdigit() else resource.RLIM_INFINITY]
    return min((value for value in values if value != resource.RLIM_INFINITY), default=UNLIMITED)


def _read(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""

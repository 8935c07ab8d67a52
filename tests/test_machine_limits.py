"""The machine's memory, from files as the kernel writes them."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podbot.machine import UNLIMITED, machine_memory, most_files, most_processes

MEMINFO = "MemTotal:       24683724 kB\nMemFree:        20677896 kB\n"


def place(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 0),
        ({"proc/meminfo": MEMINFO}, 24683724 << 10),
        ({"proc/meminfo": "nothing\n"}, 0),
        ({"proc/meminfo": MEMINFO, "sys/fs/cgroup/memory.max": "max\n"}, 24683724 << 10),
        ({"proc/meminfo": MEMINFO, "sys/fs/cgroup/memory.max": "4294967296\n"}, 4 << 30),
        ({"proc/meminfo": MEMINFO, "sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n"}, 2 << 30),
        ({"proc/meminfo": MEMINFO, "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63 - 4096}\n"}, 24683724 << 10),
    ],
)
def test_the_smallest_of_the_reported_values(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    assert machine_memory(place(tmp_path, files)) == expected


@given(text=st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_text_is_read(tmp_path: Path, text: str) -> None:
    assert machine_memory(place(tmp_path, {"proc/meminfo": text.encode("utf-8", "replace").decode()})) >= 0


def test_this_machine_has_some() -> None:
    assert machine_memory() > 64 << 20


@pytest.mark.parametrize(
    ("most", "kind", "kernel"),
    [
        (most_files, resource.RLIMIT_NOFILE, "proc/sys/fs/nr_open"),
        (most_processes, resource.RLIMIT_NPROC, "proc/sys/kernel/pid_max"),
    ],
)
def test_no_more_than_this_process_or_the_kernel_gives(
    tmp_path: Path, most: Callable[[str], int], kind: int, kernel: str
) -> None:
    """Podman lowers its own limit to the kernel's, and can then give a container no more (measured: 96364, and
    32768).
    """
    hard = resource.getrlimit(kind)[1]
    own = UNLIMITED if hard == resource.RLIM_INFINITY else hard
    assert most(str(tmp_path)) == own
    assert most(place(tmp_path, {kernel: "7\n"})) == 7
    assert most(place(tmp_path, {kernel: f"{2**62}\n"})) == (2**62 if hard == resource.RLIM_INFINITY else hard)

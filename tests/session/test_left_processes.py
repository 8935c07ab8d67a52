"""The monitor of a container that was removed is found by its arguments, and killed with its children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.session.container_processes import end_left
from tests.waiting import HANG

ID = "83f96dce6d5a" * 5


@pytest.fixture
def pids() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes that would run on."""
    with subprocess.Popen(["sleep", "600"]) as one, subprocess.Popen(["sleep", "600"]) as other:
        yield [one, other]
        one.kill()
        other.kill()


def listed(proc: Path, child: subprocess.Popen[bytes], command: str, parent: int) -> None:
    """Describe a process as /proc does; its name has a bracket and a space."""
    (proc / str(child.pid)).mkdir(parents=True)
    (proc / str(child.pid) / "cmdline").write_text(command.replace(" ", "\0") + "\0")
    (proc / str(child.pid) / "stat").write_text(f"{child.pid} (a) S 7) S {parent} 1 1 0\n")


def proc_of(tmp_path: Path, pids: list[subprocess.Popen[bytes]], command: str) -> str:
    monitor, inner = pids
    listed(tmp_path, monitor, command, 1)
    listed(tmp_path, inner, "/usr/bin/runc init", monitor.pid)
    (tmp_path / "999999999").mkdir()  # it ended while the list was read
    (tmp_path / "meminfo").write_text(ID)
    return str(tmp_path)


def untouched(pids: list[subprocess.Popen[bytes]]) -> bool:
    """Whether the next signal is the first that they get."""
    for child in pids:
        child.terminate()
    return [child.wait(HANG) for child in pids] == [-signal.SIGTERM] * 2


def test_the_monitor_and_its_child_are_killed(tmp_path: Path, pids: list[subprocess.Popen[bytes]]) -> None:
    end_left(ID, seconds=0, proc=proc_of(tmp_path, pids, f"/usr/bin/conmon --api-version 1 -c {ID} -u {ID} -n it"))
    assert [child.wait(HANG) for child in pids] == [-signal.SIGKILL] * 2


@pytest.mark.parametrize(
    ("command", "container"),
    [
        (f"/usr/bin/conmon -c {ID}", "0" * 60),
        (f"/usr/bin/conmon -c {ID}", ID[:20]),
        (f"/usr/bin/conmon -u {ID}", ID),
        (f"podman logs -c {ID}", ID),
        ("/usr/bin/conmon -c ", ""),
        ("/usr/bin/conmon -c it", "it"),
    ],
)
def test_other_processes_are_not(
    tmp_path: Path, pids: list[subprocess.Popen[bytes]], command: str, container: str
) -> None:
    end_left(container, seconds=0, proc=proc_of(tmp_path, pids, command))
    assert untouched(pids)


def test_one_that_is_ending_by_itself_is_not_killed(tmp_path: Path, pids: list[subprocess.Popen[bytes]]) -> None:
    proc = proc_of(tmp_path, pids, f"/usr/bin/conmon -c {ID}")
    timer = threading.Timer(0.1, lambda: os.rename(tmp_path / str(pids[0].pid), tmp_path / "ended"))
    timer.start()
    end_left(ID, seconds=600, proc=proc)
    timer.join()
    assert untouched(pids)


def test_the_real_proc_is_read() -> None:
    with subprocess.Popen(
        ["/x/conmon", "-c", "import time; print(flush=True); time.sleep(600)", "-c", ID],
        executable=sys.executable,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout
        assert child.stdout.read(1) == b"\n"  # Popen returns before the kernel shows the new command line
        end_left(ID, seconds=0)
        assert child.wait(HANG) == -signal.SIGKILL

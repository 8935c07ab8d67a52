"""An engine that waits at a FIFO: found by its threads, and ended if it is podbot's own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.engine.podman.hung_service import freed

OWN, OTHERS = "/run/user/1000/podbot/.engine/podman.sock", "/run/podman/podman.sock"


@pytest.fixture
def engine() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for the engine, or for its helper."""
    child = subprocess.Popen(["sleep", "600"])
    yield child
    child.kill()
    child.wait()


def process(proc: Path, pid: int, *, path: str, waits: str = "0", children: str = "") -> None:
    for thread, where in ((pid, "ep_poll"), (pid + 1, waits)):
        task = proc / str(pid) / "task" / str(thread)
        task.mkdir(parents=True)
        (task / "wchan").write_text(where)
        (task / "children").write_text(children if thread == pid else "")
    words = ("podman", "system", "service", "--time", "300", f"unix://{path}", "")
    (proc / str(pid) / "cmdline").write_text("\0".join(words))


class Killed:
    def __init__(self) -> None:
        self.pids: list[int] = []

    def __call__(self, handle: int, number: int) -> None:
        assert number == signal.SIGKILL
        with open(f"/proc/self/fdinfo/{handle}", encoding="ascii") as file:
            self.pids.append(next(int(line.split()[1]) for line in file if line.startswith("Pid:")))


def test_podbots_own_service_that_waits_is_ended(tmp_path: Path, engine: subprocess.Popen[bytes]) -> None:
    killed = Killed()
    process(tmp_path, engine.pid, path=OWN, waits="wait_for_partner")
    said = freed(OWN, proc=str(tmp_path), process=lambda _path: engine.pid, send=killed)
    assert said.startswith("it waits at a named pipe")
    assert said.endswith("podbot ended it, and the next command starts it anew")
    assert killed.pids == [engine.pid]


def test_a_process_that_opens_files_for_it_is_ended_alone(tmp_path: Path, engine: subprocess.Popen[bytes]) -> None:
    killed, service = Killed(), os.getpid()
    process(tmp_path, service, path=OWN, children=f"{engine.pid} ")
    process(tmp_path, engine.pid, path="", waits="wait_for_partner")
    said = freed(OWN, proc=str(tmp_path), process=lambda _path: service, send=killed)
    assert said.endswith("podbot ended the process that waited")
    assert killed.pids == [engine.pid]


@pytest.mark.parametrize(("path", "serves"), [(OTHERS, OTHERS), (OWN, OTHERS)])
def test_another_engine_is_named_and_not_ended(
    tmp_path: Path, engine: subprocess.Popen[bytes], path: str, serves: str
) -> None:
    killed = Killed()
    process(tmp_path, engine.pid, path=serves, waits="wait_for_partner")
    said = freed(path, proc=str(tmp_path), process=lambda _path: engine.pid, send=killed)
    assert said == f"its process {engine.pid} waits at a named pipe that a container has in place of a file"
    assert killed.pids == []


@pytest.mark.parametrize("pid", [0, 1])
def test_an_engine_that_is_slow_or_unknown_is_left_alone(
    tmp_path: Path, engine: subprocess.Popen[bytes], pid: int
) -> None:
    killed = Killed()
    process(tmp_path, engine.pid, path=OWN)
    assert freed(OWN, proc=str(tmp_path), process=lambda _path: pid * engine.pid, send=killed) == ""
    assert killed.pids == []

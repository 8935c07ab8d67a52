"""What is reported of the sandbox's limits at a command's end, by counters of the kernel's that a test can change."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.guest.local import LocalGuest
from podbot.guest.messages import Ended, GuestCommand
from podbot.guest.running import Running
from tests.guest.test_end_with_podbot import ALONE, pytestmark
from tests.inside import PROGRAM
from tests.waiting import HANG

__all__ = ["pytestmark"]


class Kernel:
    """``guest`` runs where ``memory.events`` and ``pids.events`` are files of the test's."""

    def __init__(self, place: Path) -> None:
        self._events = place / "cgroup" / "memory.events"
        self._events.parent.mkdir()
        self.kills(0)
        self.refuses(0)
        program = place / "python3"
        mount = f'mount --bind {shlex.quote(str(self._events.parent))} /sys/fs/cgroup && exec {PROGRAM} "$@"'
        program.write_text(f'#!/bin/sh\nexec {shlex.join(ALONE)} sh -c {shlex.quote(mount)} sh "$@"\n')
        program.chmod(0o755)
        self.guest = LocalGuest.start(program=str(program))

    def kills(self, number: int) -> None:
        fd = os.open(self._events, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(fd, b"low 0\nhigh 0\nmax 7\noom 3\noom_kill %d\noom_group_kill 0\n" % number)
        os.close(fd)

    def refuses(self, number: int) -> None:
        (self._events.parent / "pids.events").write_bytes(b"max %d\n" % number)

    def begun(self) -> Running:
        return self.guest.channel.start(GuestCommand(("sleep", "600")), lambda *_: None)


def ended(running: Running, number: int) -> Ended:
    running.signal(number)
    found = running.wait(HANG)
    assert found is not None
    assert found.signal == number
    return found


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    made = Kernel(tmp_path)
    with made.guest:
        yield made


def test_a_kill_of_an_earlier_command_does_not_count(kernel: Kernel) -> None:
    earlier = kernel.begun()
    kernel.kills(1)
    assert not ended(earlier, signal.SIGTERM).out_of_memory
    assert not ended(kernel.begun(), signal.SIGKILL).out_of_memory


def test_a_kill_while_several_commands_run_counts_for_each_that_kill_ended(kernel: Kernel) -> None:
    first, second = kernel.begun(), kernel.begun()
    kernel.kills(1)
    third = kernel.begun()
    assert ended(first, signal.SIGKILL).out_of_memory
    assert ended(second, signal.SIGKILL).out_of_memory
    assert not ended(third, signal.SIGKILL).out_of_memory


def test_the_kills_and_the_refused_processes_of_its_time_are_counted(kernel: Kernel) -> None:
    kernel.kills(4)
    kernel.refuses(10)
    running = kernel.begun()
    kernel.kills(6)
    kernel.refuses(13)
    found = ended(running, signal.SIGTERM)
    assert (found.out_of_memory, found.memory_kills, found.forks_refused) == (False, 2, 3)
    quiet = ended(kernel.begun(), signal.SIGTERM)
    assert (quiet.memory_kills, quiet.forks_refused) == (0, 0)

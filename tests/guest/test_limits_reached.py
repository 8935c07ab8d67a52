"""What is reported of the sandbox's limits at a command's end, by counters of the kernel's that a test can change."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
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


ROOT = """
new=$1; shift
mkdir "$new" && mount -t tmpfs -o "$1" none "$new"
for name in /*; do
  if [ -L "$name" ]; then cp -P "$name" "$new$name"
  elif [ -d "$name" ]; then mkdir "$new$name" && mount --rbind "$name" "$new$name"; fi
done
"""


def with_root(place: Path, options: str, then: str = ":") -> LocalGuest:
    """A guest whose ``/`` is a tmpfs mounted with ``options``, with which ``then`` does something first."""
    program = place / "python3"
    new = shlex.quote(str(place / "new"))
    chroot = 'PATH="$PATH:/usr/sbin:/sbin"; exec chroot "$new"'  # an ordinary user's PATH may lack it
    script = f'set -e; set -- {new} {options} "$@"; {ROOT}shift; {then}; {chroot} {PROGRAM} "$@"'
    program.write_text(f'#!/bin/sh\nexec {shlex.join((*ALONE, "--mount"))} sh -c {shlex.quote(script)} sh "$@"\n')
    program.chmod(0o755)
    return LocalGuest.start(program=str(program))


def failed(guest: LocalGuest, code: int = 1) -> Ended:
    found = guest.channel.start(GuestCommand(("sh", "-c", f"exit {code}")), lambda *_: None).wait(HANG)
    assert found is not None
    assert found.code == code
    return found


NO_INODES = 'number=0; while (: >"$new/$number") 2>/dev/null; do number=$((number + 1)); done'


@pytest.mark.parametrize(
    ("options", "then", "full"),
    [
        ("size=64m", ":", False),
        ("size=1m", ":", True),
        ("size=64m,nr_inodes=100", NO_INODES, True),
        ("size=1m", 'mount -o remount,bind,ro "$new"', False),
    ],
    ids=["room", "no space", "no inodes", "read-only"],
)
def test_a_command_that_failed_says_whether_the_disk_is_full(
    tmp_path: Path, options: str, then: str, *, full: bool
) -> None:
    with with_root(tmp_path, options, then) as guest:
        assert failed(guest).disk_full is full
        assert not failed(guest, 0).disk_full
        assert not failed(guest, 127).disk_full, "it did not start"


# In a process of its own, of which a guest's command changes the directory and a limit.
REFUSED = """
from podbot.guest.inside import guest, guest_command, processes, spawn, standard_streams

class Refusing(processes.Counters):
    refused = 6

    def counts(self):
        self.refused += 1  # between two looks
        return 0, self.refused

spec = dict(
    argv=["no-such-program"], cwd="/", env={}, mode="extend", stdin=False, lent=False, deadline=None, grace=1,
    rlimits={}, tty=None, discard=True, user="", keep=0, window=0,
)
try:
    served = guest.Guest()
    served.counters = Refusing()
    guest_command.Command(served, spec, standard_streams.Sink())
except spawn.CannotStart as failure:
    print(failure.code, failure.counts)
"""


def test_the_process_that_a_command_would_have_been_counts() -> None:
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True, check=True)
    assert done.stdout == "127 (0, 1)\n"


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

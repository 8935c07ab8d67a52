"""A call that the caller interrupts: its command is terminated and leaves nothing behind, without waiting for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podbot.guest.local import LocalGuest
from podbot.guest.messages import GuestCommand
from podbot.shell.call import Call
from podbot.shell.command_runner import CommandRunner
from podbot.shell.conformance import eventually
from podbot.shell.engine_commands import EngineCommands
from podbot.shell.ports import Commands
from podbot.shell.reconnecting import Connection
from tests.inside import PROGRAM
from tests.shell.real import SESSION, real_engine


def interrupt(_stream: int, _data: bytes) -> None:
    raise KeyboardInterrupt


def interrupted_floods(commands: Commands, directory: Path) -> None:
    """Five commands that print without end, each interrupted at its first output; returns when all have ended."""
    runner = CommandRunner(Connection(lambda: commands), str(directory))
    for number in range(5):
        words = ("sh", "-c", f"echo $$ > {number}; exec yes")
        with pytest.raises(KeyboardInterrupt):
            runner.run(Call(words, GuestCommand(words, cwd=str(directory))), interrupt)
    for number in range(5):
        pid = int((directory / str(number)).read_text())
        eventually(lambda pid=pid: not os.path.exists(f"/proc/{pid}"), what="the end of the command")


def test_they_leave_no_descriptor_in_the_guest(tmp_path: Path) -> None:
    with LocalGuest.start(program=PROGRAM) as guest:
        before = len(os.listdir(f"/proc/{guest.pid}/fd"))
        interrupted_floods(guest.channel, tmp_path)
        eventually(lambda: len(os.listdir(f"/proc/{guest.pid}/fd")) == before, what="closed descriptors")


def test_they_leave_no_descriptor_of_podbot_on_the_engines_path(tmp_path: Path) -> None:
    engine = real_engine()
    commands = EngineCommands(lambda: engine, SESSION)
    before = pipes()
    interrupted_floods(commands, tmp_path)
    eventually(lambda: pipes() <= before, what="closed descriptors")


def test_a_flood_does_not_hold_up_the_report_that_the_command_started(tmp_path: Path) -> None:
    """The report was on stderr alone: on a busy machine a flood of stdout filled podbot's buffers before it."""
    engine = real_engine(stdout_first=16 << 20)
    interrupted_floods(EngineCommands(lambda: engine, SESSION), tmp_path)


@pytest.mark.parametrize("stdout_first", [0, 1 << 20])
def test_what_is_printed_after_the_report_is_complete_on_both_streams(stdout_first: int) -> None:
    engine = real_engine(stdout_first=stdout_first)
    said = {1: b"", 2: b""}

    def take(stream: int, data: bytes) -> None:
        said[stream] += data

    words = ("sh", "-c", "echo out; echo err >&2; head -c 2097152 /dev/zero; echo end >&2")
    running = EngineCommands(lambda: engine, SESSION).start(GuestCommand(words), take)
    ended = running.wait(60)
    assert ended is not None
    assert ended.code == 0
    assert said == {1: b"out\n" + bytes(2 << 20), 2: b"err\nend\n"}


def test_a_write_on_the_engines_path_has_a_time_limit() -> None:
    engine = real_engine()
    running = EngineCommands(lambda: engine, SESSION).start(GuestCommand(("sleep", "600"), stdin="open"))
    assert running.write(b"x" * 1024, seconds=60)
    assert not running.write(b"x" * (4 << 20), seconds=0.05)
    running.terminate()
    assert running.wait(60) is not None


def pipes() -> int:
    """How many ends of pipes this process has open."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{name}").startswith("pipe:")
        except FileNotFoundError:
            continue
    return found

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

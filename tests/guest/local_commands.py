"""Runs commands by a real guest that is a process of this host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from podbot.guest.channel import Channel
from podbot.guest.messages import Ended, GuestCommand
from tests.waiting import HANG


class Printed:
    """Collects a command's output."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, bytes]] = []

    def __call__(self, stream: int, data: bytes) -> None:
        self.parts.append((stream, data))

    def of(self, stream: int) -> bytes:
        return b"".join(data for number, data in self.parts if number == stream)


def run(channel: Channel, *argv: str, data: bytes | None = None, **options: Any) -> tuple[Ended, bytes, bytes]:
    printed = Printed()
    if data is not None:
        options["stdin"] = "open"
    running = channel.start(GuestCommand(argv, **options), printed)
    if data is not None:
        running.write(data)
        running.close_stdin()
    ended = running.wait(HANG)
    assert ended is not None
    return ended, printed.of(1), printed.of(2)


def shell(channel: Channel, line: str, **options: Any) -> tuple[Ended, bytes, bytes]:
    return run(channel, "/bin/sh", "-c", line, **options)


def before_its_deadline(
    channel: Channel, line: str, happened: Callable[[bytes], bool], *, term_grace: float = 2.0, **options: Any
) -> tuple[Ended, bytes]:
    """The end and the output of a command whose deadline passes after something that its output shows.

    A command on a slow machine may need more time for that than on another one, so it gets a later deadline, and more
    grace in the same measure, until it has happened. If it never happens, the last attempt is returned.
    """
    for factor in (1, 10, 100):
        ended, out, _ = shell(channel, line, deadline=0.3 * factor, term_grace=term_grace * factor, **options)
        if happened(out):
            break
    return ended, out


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# Command lines that start another process, as a child or out of reach of its group, and print its pid.
STRAYS = {
    "child": "sleep 600 & echo $!; wait",
    "session": "setsid sleep 600 & echo $!; wait",
    "double": "setsid sh -c 'sleep 600 & echo $!; exit' </dev/null; sleep 600",
    "twice": "(setsid sh -c '(setsid sleep 600 >/dev/null 2>&1 & echo $!)'); sleep 600",
    "quiet": "(trap '' TERM; setsid sleep 600 >/dev/null 2>&1 & echo $!); sleep 600",
}

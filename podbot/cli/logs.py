"""``podbot logs``: prints the log of a session's output, without control sequences."""

from __future__ import annotations

import os
import re
import sys

from podbot.cli.globals import Globals
from podbot.cli.report import Reporter
from podbot.visible_text import printable

_LONGEST = 1 << 20  # bytes of a line that are shown as one

# In this order: strings with their end (or to the end of the line), sequences with parameters, two-byte sequences.
_SEQUENCES = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)


def invoke(g: Globals, *, session: str, follow: bool, tail: int | None, raw: bool) -> int:
    """Print the log; returns podbot's exit code."""
    from podbot.api import sessions as api
    from podbot.api.inspecting import log

    config = api.load_config(g.load_options(os.environ, {}, {}))
    found = log(config, session, emit=Reporter(g))
    show = _Raw() if raw else _Plain()
    for data in found.follow(tail) if follow else found.lines(tail):
        show.feed(data)
        if follow:
            show.flush()
    show.close()
    return 0


class _Raw:
    """Prints the recorded bytes."""

    def feed(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)

    def flush(self) -> None:
        sys.stdout.buffer.flush()

    def close(self) -> None:
        self.flush()


class _Plain:
    """Prints whole lines as plain text."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            sys.stdout.write(plain_line(line) + "\n")

    def flush(self) -> None:
        sys.stdout.flush()

    def close(self) -> None:
        if self._rest:
            sys.stdout.write(plain_line(self._rest) + "\n")
        self.flush()


def plain_line(line: bytes) -> str:
    """A line of output as text that can be printed anywhere, without its ending.

    What a carriage return let overwrite is left out, as on the screen. Other control characters and those that change
    the direction of text are shown as escapes.
    """
    text = _SEQUENCES.sub("", line.decode("utf-8", "replace").rstrip("\r\n"))
    shown = text.rstrip("\r").rsplit("\r", 1)[-1]
    if "\b" in shown:
        shown = _without_erased(shown)
    return printable(shown.replace("\x07", "").expandtabs(8))


def _without_erased(text: str) -> str:
    kept: list[str] = []
    for char in text:
        if char != "\b":
            kept.append(char)
        elif kept:
            kept.pop()
    return "".join(kept)

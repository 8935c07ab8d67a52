"""``podbot logs``: prints the log of a session's output."""

from __future__ import annotations

import os
import sys

from podbot.cli.globals import Globals
from podbot.cli.plain_text import plain_line
from podbot.cli.report import Reporter

_LONGEST = 1 << 20  # bytes of a line that are shown as one


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

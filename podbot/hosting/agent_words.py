"""What a hosted agent says beside the protocol, on stderr and as noise on stdout: lines, in a bounded number."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

from podbot.events import Emit, Event
from podbot.streams.budget import Budget

LINE = 4096  # bytes of one diagnostic line
# Without a bound an agent wrote 1.24 GB into an editor's log in 8 s (measured).
RATE = 128 << 10  # bytes a second
BURST = 1 << 20  # bytes at once
_OVERHEAD = 64  # bytes that a line costs beside its text
_COLOURS = re.compile(rb"\x1b\[[0-9;:]{0,64}m")


class AgentWords:
    """Each line an event of its own, whose text is the agent's; what is too much is counted, and the count said."""

    def __init__(self, emit: Emit, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._budget = Budget(rate=RATE, burst=BURST, clock=clock)
        self._kept = b""
        self._begun = False  # a line that is left out, whose end has not come
        self._lines = self._bytes = 0  # left out

    def stderr(self, data: bytes) -> None:
        """A chunk, which may end in the middle of a line."""
        if not self._budget.take(0):
            # Line by line, a flood of 100 MB took 25 s, in which the protocol waited (measured).
            ends = data.count(b"\n")
            self._lines += ends
            self._bytes += len(self._kept) + len(data) - ends
            self._kept, self._begun = b"", not data.endswith(b"\n")
            return
        if self._begun:  # the beginning was left out, and so is the rest
            rest, end, data = data.partition(b"\n")
            self._lines += len(end)
            self._bytes += len(rest)
            self._begun = not end
        for line in self._split(data):
            self._line(line)

    def noise(self, line: bytes) -> None:
        """A line of stdout that is no protocol."""
        if self.fits(min(len(line), LINE)):
            self._emit(Event("notice", "agent.noise", text_of(line)))

    def fits(self, size: int) -> bool:
        """Whether ``size`` bytes may be passed on; they are counted otherwise."""
        if not self._budget.take(size + _OVERHEAD):
            self._lines += 1
            self._bytes += size
            return False
        self._summary()
        return True

    def end(self) -> None:
        """Nothing more comes."""
        kept, self._kept = self._kept, b""
        if kept:
            self._line(kept)

    def close(self) -> None:
        """The session is over: what was only counted is said."""
        self._summary()

    def _line(self, line: bytes) -> None:
        # An empty one says nothing but costs as much: a flood of them stalled the protocol (measured).
        if self.fits(len(line)) and line:
            self._emit(Event("notice", "agent.stderr", text_of(line)))

    def _summary(self) -> None:
        if self._lines:
            lines, size = self._lines, self._bytes
            self._lines = self._bytes = 0
            text = f"left out {lines} lines ({size} bytes) of what the agent says: more than {RATE >> 10} KiB a second"
            self._emit(Event("warning", "agent.left_out", text, {"lines": lines, "bytes": size}))

    def _split(self, data: bytes) -> Iterator[bytes]:
        """Lines, none longer than LINE: what is longer comes in several."""
        *whole, rest = (self._kept + data).split(b"\n")
        for line in whole:
            yield from (line[at : at + LINE] for at in range(0, len(line) or 1, LINE))
        while len(rest) >= LINE:
            yield rest[:LINE]
            rest = rest[LINE:]
        self._kept = rest


def text_of(line: bytes) -> str:
    """One line that no terminal takes for a command: control characters made visible, cut at ``LINE`` bytes.

    Colours are dropped, for most programs print them and nobody wants to read them.
    """
    cut = _COLOURS.sub(b"", line[:LINE].rstrip(b"\r\n"))
    text = cut.decode("utf-8", "backslashreplace")
    if not text.isprintable():
        text = "".join(char if char.isprintable() or char == "\t" else ascii(char)[1:-1] for char in text)
    return text + (f" ... ({len(line)} bytes)" if len(line) > LINE else "")

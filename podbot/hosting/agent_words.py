"""A hosted agent's diagnostics (stderr, and non-protocol lines on stdout) as a limited number of lines."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

from podbot.events import Emit, Event
from podbot.visible_text import printable

LINE = 4096  # bytes of one diagnostic line
# Without a bound an agent wrote 1.24 GB into an editor's log in 8 s (measured).
RATE = 128 << 10  # bytes a second
BURST = 1 << 20  # bytes at once
_OVERHEAD = 64  # bytes that a line costs beside its text
_COLOURS = re.compile(rb"\x1b\[[0-9;:]{0,64}m")


class AgentWords:
    """Emits each line as an event, whose text the agent controls. Lines over the limit are counted and reported."""

    def __init__(self, emit: Emit, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._budget = Budget(rate=RATE, burst=BURST, clock=clock)
        self._kept = b""
        self._begun = False  # whether the middle of a dropped line was reached
        self._lines = self._bytes = 0  # dropped so far

    def stderr(self, data: bytes) -> None:
        """A chunk, which may end in the middle of a line."""
        if not self._budget.take(0):
            # Processing a flood of 100 MB line by line blocked the protocol for 25 s (measured).
            ends = data.count(b"\n")
            self._lines += ends
            self._bytes += len(self._kept) + len(data) - ends
            self._kept, self._begun = b"", not data.endswith(b"\n")
            return
        if self._begun:  # the beginning was dropped, and so is the rest
            rest, end, data = data.partition(b"\n")
            self._lines += len(end)
            self._bytes += len(rest)
            self._begun = not end
        for line in self._split(data):
            self._line(line)

    def noise(self, line: bytes) -> None:
        """A line of stdout that is not protocol."""
        if self.fits(min(len(line), LINE)):
            self._emit(Event("notice", "agent.noise", text_of(line)))

    def fits(self, size: int) -> bool:
        """Whether ``size`` bytes may be passed on; if not, they are counted as dropped."""
        if not self._budget.take(size + _OVERHEAD):
            self._lines += 1
            self._bytes += size
            return False
        self._summary()
        return True

    def end(self) -> None:
        """The output has ended: emit a last line that has no line ending."""
        kept, self._kept = self._kept, b""
        if kept:
            self._line(kept)

    def close(self) -> None:
        """The session is over: report what was dropped."""
        self._summary()

    def _line(self, line: bytes) -> None:
        # An empty line is useless but costs as much: a flood of them stalled the protocol (measured).
        if self.fits(len(line)) and line:
            self._emit(Event("notice", "agent.stderr", text_of(line)))

    def _summary(self) -> None:
        if self._lines:
            lines, size = self._lines, self._bytes
            self._lines = self._bytes = 0
            text = f"dropped {lines} lines ({size} bytes) of the agent's output: more than {RATE >> 10} KiB a second"
            self._emit(Event("warning", "agent.left_out", text, {"lines": lines, "bytes": size}))

    def _split(self, data: bytes) -> Iterator[bytes]:
        """Split into lines; one longer than LINE is split into several."""
        *whole, rest = (self._kept + data).split(b"\n")
        for line in whole:
            yield from (line[at : at + LINE] for at in range(0, len(line) or 1, LINE))
        while len(rest) >= LINE:
            yield rest[:LINE]
            rest = rest[LINE:]
        self._kept = rest


def text_of(line: bytes) -> str:
    """One line that is safe to print on a terminal: control characters are escaped, and it is cut at ``LINE`` bytes.

    Colour sequences are dropped, because most programs print them and they would clutter the text.
    """
    cut = _COLOURS.sub(b"", line[:LINE].rstrip(b"\r\n"))
    text = cut.decode("utf-8", "backslashreplace")
    return printable(text, keep="\t") + (f" ... ({len(line)} bytes)" if len(line) > LINE else "")


class Budget:
    """Allows ``rate`` a second on average, and ``burst`` at once.

    After something did not fit, nothing is allowed until a second's worth has accumulated. So what is let through, and
    the reports on the rest, come in few pieces.
    """

    def __init__(self, *, rate: int, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left = float(burst)
        self._at = clock()
        self._closed = False

    def take(self, amount: int) -> bool:
        """Spend ``amount`` if it fits; returns whether it did. More than ``burst`` at once never fits."""
        now = self._clock()
        self._left = min(self._burst, self._left + max(0.0, now - self._at) * self._rate)
        self._at = max(self._at, now)
        if self._closed and self._left < min(self._rate, self._burst):
            return False
        self._closed = amount > self._left
        self._left = 0.0 if self._closed else self._left - amount
        return not self._closed

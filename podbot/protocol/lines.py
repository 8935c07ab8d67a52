"""Bytes in, lines out: the frames of a newline-delimited stream, the same ones however the input is cut."""

from __future__ import annotations

from typing import NamedTuple

SHORT = 1 << 16  # bytes of a begun line that are joined with the lines behind it; of a longer one that is memory


class Overlong(NamedTuple):
    """A line of ``size`` bytes that was over the limit and is gone."""

    size: int


class LineAssembler:
    """Lines with their newline, in order; what is not yet a line is held up to ``limit`` bytes.

    A line longer than ``limit`` (newline included) is dropped up to its newline and stands in the result
    once, as an ``Overlong``. The unfinished line is one growing buffer: a list of pieces would cost an
    object for each byte of a peer that writes them singly.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()
        self._dropped = 0

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """What ``data`` finishes: each ``bytes`` is one or more whole lines, none over the limit."""
        end = data.rfind(b"\n") + 1
        found: list[bytes | Overlong] = []
        start = 0
        if end and (self._dropped or len(self._held) > SHORT):
            start = data.find(b"\n") + 1
            found.append(self._line(data[:start]))
        if start < end:
            block = self._joined(memoryview(data)[start:end])
            found += (block,) if len(block) <= self._limit else map(self._line, whole_lines(block))
        if end < len(data):
            self._hold(data[end:])
        return found

    def _joined(self, lines: memoryview) -> bytes:
        """What is held, and ``lines``: one copy of a chunk instead of two or three (0.1 us for each 4 KiB)."""
        held = self._held
        if held:
            self._held = bytearray()
        return b"".join((held, lines))

    def finish(self) -> bytes | Overlong | None:
        """What stood behind the last newline when the stream ended; None when nothing did."""
        last = self._line(b"")
        return last or None

    def _line(self, tail: bytes) -> bytes | Overlong:
        if not self._held and not self._dropped:
            return tail if len(tail) <= self._limit else Overlong(len(tail))
        self._hold(tail)
        if self._dropped:
            size, self._dropped = self._dropped, 0
            return Overlong(size)
        line, self._held = bytes(self._held), bytearray()
        return line

    def _hold(self, data: bytes) -> None:
        if self._dropped:
            self._dropped += len(data)
        elif len(self._held) + len(data) > self._limit:
            self._dropped, self._held = len(self._held) + len(data), bytearray()
        else:
            self._held += data


def whole_lines(block: bytes) -> list[bytes]:
    """The lines of ``block``. A single one is not copied."""
    found = []
    start = 0
    while start < len(block):
        end = block.find(b"\n", start) + 1 or len(block)
        found.append(block[start:end])
        start = end
    return found

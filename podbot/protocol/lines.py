"""Bytes in, lines out: the frames of a newline-delimited stream, the same ones however the input is cut."""

from __future__ import annotations

from typing import NamedTuple


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
        found: list[bytes | Overlong] = []
        start = 0
        end = data.find(b"\n") + 1
        while end:
            found.append(self._line(data[start:end]))
            start = end
            end = data.find(b"\n", start) + 1
        if start < len(data):
            self._hold(data[start:] if start else data)
        return found

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

"""Limits how much of a command's output is kept: memory is bounded, and of too much output head and tail are kept."""

from __future__ import annotations

from typing import NamedTuple

STDOUT, STDERR = 1, 2
_LONGEST = 3  # the most continuation bytes that one character has in UTF-8


class Kept(NamedTuple):
    """The text of both streams, and whether a byte of either is missing."""

    stdout: str
    stderr: str
    truncated: bool


class OutputBudget:
    """Receives the output of both streams of a command and keeps ``limit`` bytes of both together.

    Each stream may use half of the limit, and the part of the other half that the other stream does not need. If a
    stream exceeds its share, its beginning and its end are kept, with a line between them that gives the number of
    missing bytes. That line counts towards the share.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._streams = {STDOUT: _Stream(limit), STDERR: _Stream(limit)}

    def take(self, stream: int, data: bytes | memoryview) -> None:
        """Add output of stream 1 or 2. For each stream, only one thread at a time may call this."""
        self._streams[stream].take(data)

    @property
    def held(self) -> int:
        """The number of bytes in memory: more than is kept in the end, but bounded."""
        return sum(stream.held for stream in self._streams.values())

    def kept(self) -> Kept:
        """The output that is kept, as text."""
        out, err = self._streams[STDOUT], self._streams[STDERR]
        half = self._limit // 2
        for_out = max(half, self._limit - err.total)
        for_err = max(self._limit - half, self._limit - out.total)
        return Kept(out.text(for_out), err.text(for_err), out.total > for_out or err.total > for_err)


class _Stream:
    """The first ``limit // 2`` bytes of a stream, and at least its last ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._limit = limit
        self._room = limit // 2  # left in the head
        self._head = bytearray()
        self._tail = bytearray()

    @property
    def held(self) -> int:
        return len(self._head) + len(self._tail)

    def take(self, data: bytes | memoryview) -> None:
        self.total += len(data)
        if self._room:
            first, data = data[: self._room], data[self._room :]
            self._head += first
            self._room -= len(first)
        if len(data) >= self._limit:
            self._tail[:] = data[len(data) - self._limit :]
            return
        self._tail += data
        if len(self._tail) > 2 * self._limit:
            del self._tail[: -self._limit]

    def text(self, share: int) -> str:
        if self.total <= share:
            return (self._head + self._tail).decode("utf-8", "replace")
        # Reserves the greatest length that the line can have, so that the text never exceeds its share.
        room = share - len(_marker(self.total))
        if room <= 0:
            return whole_characters(self._start(share)).decode("utf-8", "replace")
        head = whole_characters(self._start(room // 2))
        tail = from_a_character(self._end(room - room // 2))
        missing = self.total - len(head) - len(tail)
        return head.decode("utf-8", "replace") + _marker(missing) + tail.decode("utf-8", "replace")

    def _start(self, count: int) -> bytes:
        return bytes(self._head[:count])

    def _end(self, count: int) -> bytes:
        kept = self._tail if count <= len(self._tail) else self._head + self._tail
        return bytes(kept[len(kept) - count :])


def _marker(missing: int) -> str:
    return f"\n[{missing} bytes are missing here]\n"


def whole_characters(data: bytes) -> bytes:
    """``data`` without an incomplete UTF-8 character at its end."""
    for back in range(1, min(_LONGEST, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return data[:-back] if length > back else data
    return data


def from_a_character(data: bytes) -> bytes:
    """``data`` without the remaining bytes of a UTF-8 character that began before it."""
    for at in range(min(_LONGEST, len(data))):
        if data[at] & 0xC0 != 0x80:
            return data[at:]
    return data[min(_LONGEST, len(data)) :]

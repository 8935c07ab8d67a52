"""Splits a client's bytes into lines, and holds no more of a line than a message may have."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

LINE_BYTES = 4 << 20  # as of a request over HTTP
ENDS = 512  # bytes that are known of each end of a line that is too long

# Where the official SDKs write a request's id: Python's and Rust's at the beginning, TypeScript's at the end.
_ID = rb'"id"\s*:\s*(-?(?:0|[1-9]\d{0,17})|"[\w.:-]{1,128}")\s*'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*'
_METHOD = rb'"method"\s*:'
_FIRST = re.compile(rb"\s*\{\s*" + _VERSION + _ID + rb",\s*" + _METHOD)
_NOT_FIRST = re.compile(rb"\s*\{\s*" + _METHOD)
_LAST = re.compile(rb",\s*" + _VERSION + _ID + rb"\}\s*\Z")


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line that was too long to keep. ``size``: its bytes; ``begin`` and ``end``: the first and the last of them."""

    size: int
    begin: bytes
    end: bytes

    @property
    def request_id(self) -> str | int | None:
        """The id of the request, if it is where the official SDKs write it."""
        found = _FIRST.match(self.begin)
        if found is None and _NOT_FIRST.match(self.begin):
            found = _LAST.search(self.end)
        return None if found is None else json.loads(found[1])


class BoundedLines:
    """Splits bytes into lines of text. One of more than ``most`` bytes becomes a :class:`LongLine`."""

    def __init__(self, most: int = LINE_BYTES) -> None:
        self._most = most
        self._held = bytearray()  # the beginning of a line; of one that is too long only the first bytes
        self._size = 0  # bytes of this line up to now
        self._end = b""  # of a line that is too long, the last bytes up to now

    def take(self, data: bytes) -> list[str | LongLine]:
        """The lines that end in ``data``."""
        lines: list[str | LongLine] = []
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._add(part)
            lines.append(self._line())
            self._held, self._size, self._end = bytearray(), 0, b""
        self._add(rest)
        return lines

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._most:
            self._held += part
            return
        if not self._end:  # until now it was short enough
            self._end = bytes(self._held[-ENDS:])
        self._end = (self._end + part)[-ENDS:]
        self._held += part[:ENDS]
        del self._held[ENDS:]

    def _line(self) -> str | LongLine:
        if self._size > self._most:
            return LongLine(self._size, bytes(self._held), self._end)
        return self._held.decode("utf-8", "replace")

"""Decodes the engine's framing of a non-TTY exec stream, without I/O.

A frame is one byte of stream number (0 stdin, 1 stdout, 2 stderr), three zero bytes, the payload's
length as a big-endian 32-bit number, then the payload.
"""

# No `from __future__ import annotations`: see podbot.cli.options.

from collections.abc import Iterator
from typing import NamedTuple

HEADER = 8


class BadFrame(ValueError):
    """The bytes do not follow the engine's framing."""


class Piece(NamedTuple):
    """Part of a payload: ``stream`` is 1 or 2."""

    stream: int
    data: bytes | memoryview


class FrameDemux:
    """Takes chunks of any size and yields pieces of payload at once, without buffering."""

    def __init__(self) -> None:
        self._header = b""
        self._stream = 0
        self._left = 0

    @property
    def between_frames(self) -> bool:
        """Whether the stream may end here: no frame is partly read."""
        return not self._left and not self._header

    def feed(self, chunk: bytes) -> Iterator[Piece]:
        """Pieces of payload in ``chunk``. Raises BadFrame."""
        view = memoryview(chunk)
        at = 0
        while at < len(view):
            if not self._left:
                need = HEADER - len(self._header)
                self._header += view[at : at + need]
                at += need
                if len(self._header) < HEADER:
                    return
                self._begin()
                continue
            piece = view[at : at + self._left]
            at += len(piece)
            self._left -= len(piece)
            yield Piece(self._stream, piece)

    def _begin(self) -> None:
        header, self._header = self._header, b""
        if header[0] > 2 or header[1:4] != b"\0\0\0":
            raise BadFrame("the engine's stream has an invalid frame header")
        self._stream = 2 if header[0] == 2 else 1
        self._left = int.from_bytes(header[4:8], "big")

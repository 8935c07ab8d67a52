"""Frames of the channel: the payload's length, a kind, an id, the payload. Bytes in, frames out.

This module is also part of the guest's text, so it uses only the standard library of Python 3.8.
"""

from __future__ import annotations

import struct

VERSION = 2
PAYLOAD_LIMIT = 1 << 16
WINDOW = 1 << 18  # bytes of a command's stdin that the guest accepts before it has given credit
TEXT_LIMIT = 4096  # characters of a text in a message of the guest's
CHANNEL_LIMIT = 64  # that a guest serves at once
REQUEST_LIMIT = 4 << 20  # bytes of a request sent in parts; a kernel accepts 2 MiB of arguments and variables

# Frames that podbot sends.
HELLO, START_PART, START, STDIN, STDIN_END, CREDIT, SIGNAL, RESIZE, TERMINATE, JOB, PING, ABANDON = range(1, 13)
# Frames that the guest sends.
WELCOME, STARTED, REFUSED, STDOUT, STDERR, STDIN_CREDIT, ENDED, JOB_ANSWER, JOB_DATA, PONG = range(33, 43)

# Said once with the guest's socket, before any frame.
HANDED_OVER = b"L"
LEASED = b"C"  # and that the sandbox ends when this connection does
# Said before that, with a port in two bytes: listen there on the loopback interface, and answer it with that socket.
GATEWAY = b"G"

HEADER = struct.Struct("!IBI")
NUMBER = struct.Struct("!I")
SIZE = struct.Struct("!HH")
DATA = struct.Struct("!QQ")  # precedes a part of a job's output: its offset, and the total bytes printed


class FrameError(ValueError):
    """Bytes that are not a valid frame; the message gives the reason."""


def frame(kind: int, ident: int, payload: bytes = b"") -> bytes:
    """The bytes of one frame. Raises FrameError for a payload over the limit."""
    if len(payload) > PAYLOAD_LIMIT:
        raise FrameError(f"a payload of {len(payload)} bytes is over the limit of {PAYLOAD_LIMIT}")
    return HEADER.pack(len(payload), kind, ident) + payload


def number(payload: bytes) -> int:
    """The number in a payload of 32 bits. Raises FrameError."""
    if len(payload) != NUMBER.size:
        raise FrameError(f"a number of {len(payload)} bytes")
    return int(NUMBER.unpack(payload)[0])


class Decoder:
    """Assembles frames from pieces of any size. It stores at most one incomplete frame."""

    def __init__(self) -> None:
        self._held = bytearray()

    @property
    def incomplete(self) -> bytes:
        """The bytes of the frame that is not complete yet."""
        return bytes(self._held)

    def feed(self, data: bytes) -> list[tuple[int, int, bytes]]:
        """The frames that ``data`` completes. Raises FrameError; after that, this must not be called again."""
        held = self._held
        held += data
        found: list[tuple[int, int, bytes]] = []
        at, end = 0, len(held)
        while end - at >= HEADER.size:
            size, kind, ident = HEADER.unpack_from(held, at)
            if size > PAYLOAD_LIMIT:
                raise FrameError(f"a frame of {size} bytes is over the limit of {PAYLOAD_LIMIT}")
            after = at + HEADER.size + size
            if after > end:
                break
            found.append((kind, ident, bytes(held[at + HEADER.size : after])))
            at = after
        del held[:at]
        return found

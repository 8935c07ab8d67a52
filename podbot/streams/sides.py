"""The command's side of a relay: its three streams and their end."""

from __future__ import annotations

import select
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from podbot.streams.demux import FrameDemux, Piece

# Larger reads make malloc use mmap: 1.1-1.3 times as long for 100 MB (measured); 32 KiB took 1.2 times as long.
CHUNK = 1 << 16
# The socket to the engine accepts a piece of this size completely or not at all. Of 64 KiB it accepted only as much as
# it had room for, and the command read its input in such pieces: `dd bs=512` read 2,999 whole blocks and 2 partial ones
# where it reads 3,000 with `podman exec` (Podman 4.3, which reads its own input in pieces of this size).
_WHOLE = 1 << 15
_HEARD = select.POLLIN | select.POLLHUP | select.POLLERR


class Duplex(Protocol):
    """The part of an exec stream that is used here; see ``engine.port.ExecStream``."""

    leftover: bytes

    def fileno(self) -> int: ...
    def recv(self, limit: int) -> bytes: ...
    def send(self, data: bytes | memoryview) -> int: ...
    def shut_write(self) -> None: ...


class CommandSide(Protocol):
    """``ended``: the command has ended, and all its output was read.

    ``truncated``: the stream ended in the middle of one of the engine's frames. ``broken``: it was truncated or ended
    with an error, which a command that does not read its stdin can cause too.
    """

    @property
    def ended(self) -> bool: ...
    @property
    def broken(self) -> bool: ...
    @property
    def truncated(self) -> bool: ...

    @property
    def input_taken(self) -> int:
        """Bytes of input that the command has read, as far as that is known, or else that were sent."""
        ...

    @property
    def eager(self) -> bool:
        """Whether there may be more to read than poll reports."""
        ...

    def wants(self, *, room: bool, sending: bool) -> Iterator[tuple[int, int]]:
        """Descriptors and events to poll for: to read when there is ``room``, to write when ``sending``."""
        ...

    def receive(self, ready: Mapping[int, int]) -> list[Piece]:
        """Output read from the descriptors that are ready. Raises BadFrame."""
        ...

    def send(self, pieces: Iterable[memoryview]) -> int:
        """Returns the number of bytes written. Raises BlockingIOError if full, another OSError if closed."""
        ...

    def shut_write(self) -> None:
        """Signal end of file to the command."""
        ...


class StreamsLost(Exception):
    """What carries a command's streams has ended: some of the output is lost."""


class EngineSide:
    """See :class:`CommandSide`. All streams use the engine's connection; with ``tty`` unframed, and all is stdout."""

    def __init__(self, stream: Duplex, *, tty: bool) -> None:
        self.stream = stream
        self.ended = self.broken = self.truncated = False
        self.input_taken = 0
        self._demux = None if tty else FrameDemux()
        self._first = stream.leftover
        self._readable = bool(self._first)

    @property
    def eager(self) -> bool:
        # There may be more after a full read, and poll does not see data that a TLS socket has buffered.
        return self._readable and not self.ended

    def wants(self, *, room: bool, sending: bool) -> Iterator[tuple[int, int]]:
        if not self.ended and (room or sending):
            yield self.stream.fileno(), select.POLLIN * room | select.POLLOUT * sending

    def receive(self, ready: Mapping[int, int]) -> list[Piece]:
        if self.ended or not (self._readable or ready.get(self.stream.fileno(), 0) & _HEARD):
            return []
        data = self._read()
        if self._demux is None:
            return [Piece(1, data)]
        return list(self._demux.feed(data))

    def _read(self) -> bytes:
        if self._first:
            data, self._first = self._first, b""
            return data
        try:
            data = self.stream.recv(CHUNK)
        except BlockingIOError:
            self._readable = False
            return b""
        except OSError:  # a reset, or any network error: the engine will report how the command ended
            self.broken = True
            data = b""
        self._readable = bool(data)
        if not data:
            self.ended = True
            if self._demux is not None and not self._demux.between_frames:
                self.broken = self.truncated = True
        return data

    def send(self, pieces: Iterable[memoryview]) -> int:
        size = self.stream.send(next(iter(pieces))[:_WHOLE])
        self.input_taken += size
        return size

    def shut_write(self) -> None:
        self.stream.shut_write()

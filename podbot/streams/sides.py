"""The command's side of a relay: its three streams and their end, over the engine's connection or beside it."""

from __future__ import annotations

import select
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from podbot.streams.demux import FrameDemux, Piece

# Larger reads leave malloc's heap for mmap: 1.1-1.3 times as long over 100 MB (measured); 32 KiB took 1.2 x.
CHUNK = 1 << 16
_HEARD = select.POLLIN | select.POLLHUP | select.POLLERR


class Duplex(Protocol):
    """What is needed of an exec stream; see ``engine.port.ExecStream``."""

    leftover: bytes

    def fileno(self) -> int: ...
    def recv(self, limit: int) -> bytes: ...
    def send(self, data: bytes | memoryview) -> int: ...
    def shut_write(self) -> None: ...


class CommandSide(Protocol):
    """``ended``: the command has, and everything that it printed was read.

    ``truncated`` is true when that came in the middle of a frame of the engine's; ``broken`` also when it came with
    an error, which a command that leaves its stdin unread can cause as well.
    """

    @property
    def ended(self) -> bool: ...
    @property
    def broken(self) -> bool: ...
    @property
    def truncated(self) -> bool: ...

    @property
    def eager(self) -> bool:
        """There may be more to read than poll knows of."""
        ...

    def wants(self, *, room: bool, sending: bool) -> Iterator[tuple[int, int]]:
        """Descriptors and events to poll for: to read when there is ``room``, to write when ``sending``."""
        ...

    def receive(self, ready: Mapping[int, int]) -> list[Piece]:
        """What came by the descriptors that are ready. Raises BadFrame."""
        ...

    @property
    def interval(self) -> float | None:
        """Seconds after which :meth:`receive` is to be called, with whatever is ready; None: there is no such time."""
        ...

    def send(self, pieces: Iterable[memoryview]) -> int:
        """Bytes taken. Raises BlockingIOError for none now, another OSError for never."""
        ...

    def shut_write(self) -> None:
        """End of file for the command."""
        ...

    def hand_over(self) -> tuple[int, ...]:
        """Descriptors that another process must keep open, and read the first of, for a command that we leave running.

        Without that it might be ended by its next print.
        """
        ...


class StreamHelperLost(Exception):
    """The process between a command's pipes and us has ended, or says nothing: some of the output is lost."""


class EngineSide:
    """See :class:`CommandSide`. All over the engine's connection; with ``tty`` unframed, and all of it stdout."""

    def __init__(self, stream: Duplex, *, tty: bool) -> None:
        self.stream = stream
        self.ended = self.broken = self.truncated = False
        self._demux = None if tty else FrameDemux()
        self._first = stream.leftover
        self._readable = bool(self._first)

    @property
    def eager(self) -> bool:
        # A full read may have left more behind, and a TLS socket does not poll for what it holds.
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
        except OSError:  # a reset, or over a network anything: the engine will know how the command ended
            self.broken = True
            data = b""
        self._readable = bool(data)
        if not data:
            self.ended = True
            if self._demux is not None and not self._demux.between_frames:
                self.broken = self.truncated = True
        return data

    @property
    def interval(self) -> float | None:
        return None

    def send(self, pieces: Iterable[memoryview]) -> int:
        return self.stream.send(next(iter(pieces)))

    def shut_write(self) -> None:
        self.stream.shut_write()

    def hand_over(self) -> tuple[int, ...]:
        return ()  # the engine's monitor reads on without us (measured)

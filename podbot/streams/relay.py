"""The one relay between podbot's own descriptors and an exec stream.

Bounded both ways: a full buffer stops reading from the side that fills it, so a reader that sleeps
slows the command inside and costs no memory. Reads of 64 KiB: larger ones leave malloc's heap for
mmap and took 1.1-1.3 x as long over 100 MB, 32 KiB took 1.2 x.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from typing import Literal, Protocol

from podbot.streams.demux import FrameDemux
from podbot.streams.sink import Sink

LIMIT = 1 << 20  # bytes waiting in one direction before its source is left unread
CHUNK = 1 << 16

Pause = Literal["ended", "woken", "deadline"]


class Duplex(Protocol):
    """What the relay needs of an exec stream; see ``engine.port.ExecStream``."""

    leftover: bytes

    def fileno(self) -> int: ...
    def recv(self, limit: int) -> bytes: ...
    def send(self, data: bytes | memoryview) -> int: ...
    def shut_write(self) -> None: ...


class SinkClosed(Exception):
    """``stream`` (stdout or stderr) takes no more: its reader went away, or ``error`` says what else."""

    def __init__(self, stream: str, error: OSError) -> None:
        super().__init__(stream)
        self.stream = stream
        self.error = error


class Relay:
    """Moves bytes until the stream ends. ``run`` returns early when woken or at a deadline; call it again.

    ``tty``: the stream is raw and all of it is stdout. ``stdin`` None: end of file at once.
    ``truncated`` is true when the stream ended in the middle of a frame; ``broken`` also when it ended
    with an error, which a command that leaves its stdin unread can cause as well.
    """

    def __init__(
        self, stream: Duplex, *, tty: bool, stdin: int | None, stdout: int | None, stderr: int | None, wake: int
    ) -> None:
        self._stream = stream
        self._demux = None if tty else FrameDemux()
        self._stdin = stdin
        self._sinks = {1: Sink(stdout), 2: Sink(stderr)}
        self._wake = wake
        self._outgoing: deque[memoryview] = deque()
        self._outgoing_size = 0
        self._write_open = True
        self._ended = False
        self._readable = False
        self.broken = False
        self.truncated = False
        self._leftover = stream.leftover
        if stdin is None:
            self._finish_writing()

    def run(self, deadline: float | None = None) -> Pause:
        """Relay until the end ("ended"), a byte on the wake descriptor, or ``deadline`` (monotonic)."""
        leftover, self._leftover = self._leftover, b""
        self._deliver(leftover)
        while True:
            self._flush_sinks({})
            if self._ended and not any(sink.pending for sink in self._sinks.values()):
                return "ended"
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return "deadline"
            ready = self._poll(left)
            if ready.get(self._wake):
                return "woken"
            self._step(ready)

    def close(self) -> None:
        """Give back what the sinks opened; the caller's descriptors stay open."""
        for sink in self._sinks.values():
            sink.close()

    def _poll(self, left: float | None) -> dict[int, int]:
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        wanted: dict[int, int] = {}
        room = all(sink.pending < LIMIT for sink in self._sinks.values())
        hot = room and self._readable and not self._ended
        if not self._ended:
            events = (select.POLLIN if room else 0) | (select.POLLOUT if self._outgoing else 0)
            if events:
                wanted[self._stream.fileno()] = events
        if self._stdin is not None and self._outgoing_size < LIMIT and not self._ended:
            wanted[self._stdin] = wanted.get(self._stdin, 0) | select.POLLIN
        for sink in self._sinks.values():
            if sink.pending:
                wanted[sink.fileno()] = wanted.get(sink.fileno(), 0) | select.POLLOUT
        for fd, events in wanted.items():
            poller.register(fd, events)
        timeout = 0 if hot else None if left is None else max(1, int(left * 1000))
        ready = dict(poller.poll(timeout))
        if hot:
            ready[self._stream.fileno()] = ready.get(self._stream.fileno(), 0) | select.POLLIN
        return ready

    def _step(self, ready: dict[int, int]) -> None:
        on_stream = 0 if self._ended else ready.get(self._stream.fileno(), 0)
        if on_stream & (select.POLLIN | select.POLLHUP | select.POLLERR):
            self._receive()
        if on_stream & select.POLLOUT or self._outgoing:
            self._send()
        if self._stdin is not None and ready.get(self._stdin):
            self._read_stdin(self._stdin)
        self._flush_sinks(ready)

    def _receive(self) -> None:
        try:
            data = self._stream.recv(CHUNK)
        except BlockingIOError:
            self._readable = False
            return
        except OSError:  # a reset, or over a network anything: the engine will know how the command ended
            self.broken = True
            data = b""
        if data:
            # A full read may have left more behind, and a TLS socket does not poll for what it holds.
            self._readable = True
            self._deliver(data)
            return
        self._ended = True
        if self._demux is not None and not self._demux.between_frames:
            self.broken = self.truncated = True

    def _deliver(self, data: bytes) -> None:
        if self._demux is None:
            self._sinks[1].push(memoryview(data))
            return
        for stream, piece in self._demux.feed(data):
            self._sinks[stream].push(piece)

    def _flush_sinks(self, ready: dict[int, int]) -> None:
        for number, sink in self._sinks.items():
            if sink.must_poll and not ready.get(sink.fileno()):
                continue
            try:
                sink.flush()
            except OSError as exc:
                raise SinkClosed("stdout" if number == 1 else "stderr", exc) from exc

    def _read_stdin(self, fd: int) -> None:
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # EIO: the terminal is gone; EBADF: closed by the parent
        if data:
            self._outgoing.append(memoryview(data))
            self._outgoing_size += len(data)
            return
        self._stdin = None
        self._finish_writing()

    def _send(self) -> None:
        while self._outgoing:
            first = self._outgoing[0]
            try:
                done = self._stream.send(first)
            except BlockingIOError:
                return
            except OSError:
                # The command closed its stdin or ended; what it printed is still to be read.
                self._outgoing.clear()
                self._outgoing_size = 0
                self._stdin = None
                return
            self._outgoing_size -= done
            if done == len(first):
                self._outgoing.popleft()
            else:
                self._outgoing[0] = first[done:]
        self._finish_writing()

    def _finish_writing(self) -> None:
        if self._stdin is None and not self._outgoing and self._write_open:
            self._write_open = False
            self._stream.shut_write()

"""The one relay between podbot's own descriptors and a command's streams.

Bounded both ways: when a buffer is full, its source is not read. So a slow reader slows the command inside and
costs no memory.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol

from podbot.streams.demux import Piece
from podbot.streams.outbox import Outbox
from podbot.streams.own_stdin import OwnStdin
from podbot.streams.sides import CommandSide
from podbot.streams.sink import LIMIT, LOG_PATIENCE, LogSink, Sink

if TYPE_CHECKING:
    from podbot.streams.protocol_channel import Filter

__all__ = ["LIMIT", "Pause", "Relay", "SinkClosed", "Watch"]

Pause = Literal["ended", "woken", "deadline", "input_ended", "input_closed", "undelivered", "noticed"]
_IN = select.POLLIN | select.POLLHUP | select.POLLERR | select.POLLNVAL


class SinkClosed(Exception):
    """``stream`` (stdout or stderr) accepts no more, usually because its reader left; ``error`` is the cause."""

    def __init__(self, stream: str, error: OSError) -> None:
        super().__init__(stream)
        self.stream = stream
        self.error = error


class Watch(Protocol):
    """Sees the input and output of a terminal."""

    def typed(self, data: bytes) -> bool:
        """Called before input goes to the command; if it returns true, ``run`` returns "noticed"."""
        ...

    def shown(self, data: bytes | memoryview) -> None:
        """Called with the command's output."""
        ...


class Relay:
    """Moves bytes until the command has ended. ``run`` returns early when woken or at a deadline; then call it again.

    With ``stdin`` None, the command gets end of file at once. ``shared``: stdin is one that other programs may read
    afterwards, so nothing is taken from it that the command does not read.

    ``through``: a filter for all data (not for a terminal). With it, ``run`` also returns once when our stdin has
    ended ("input_ended"), when the command's stdin has been closed too ("input_closed"), and when the command has
    ended but output is still queued ("undelivered"). While one side does not read podbot's own replies, no more of
    its frames are read.

    ``watch``: sees all data when there is no filter; ``record``: the output then. ``log_patience``: see LogSink.
    ``output_ended``: called when the command's output has ended and some of it is not delivered yet. ``hung_up``:
    called when stdin ends because nobody has its other end any more.
    """

    def __init__(
        self,
        side: CommandSide,
        *,
        stdin: int | None,
        stdout: int | None,
        stderr: int | None,
        wake: int,
        shared: bool = False,
        through: Filter | None = None,
        watch: Watch | None = None,
        record: Callable[[bytes | memoryview], object] | None = None,
        log_patience: float = LOG_PATIENCE,
        output_ended: Callable[[], object] = lambda: None,
        hung_up: Callable[[], object] = lambda: None,
    ) -> None:
        self._side = side
        self._stdin = stdin
        self._own = OwnStdin(-1 if stdin is None else stdin, shared=shared)
        log = Sink(stderr) if through is None else LogSink(stderr, patience=log_patience)
        self._sinks = {1: Sink(stdout), 2: log}
        self._log_patience = log_patience
        self._wake = wake
        self._outbox = Outbox(side)
        self._through = through
        self._watch = watch
        self._record = record
        self._output_ended: Callable[[], object] | None = output_ended
        self._hung_up = hung_up
        self._news: list[Pause] = []
        self._room = True  # whether there was room for the command's output at the last poll
        if stdin is None:
            self._finish_input()

    @property
    def unsent(self) -> int:
        """Bytes of input that the command has not accepted yet."""
        return self._outbox.pending

    @property
    def undelivered(self) -> int:
        """Bytes of output that have not been written yet."""
        return sum(sink.pending for sink in self._sinks.values())

    @property
    def sent(self) -> int:
        """Bytes of input that the command has accepted."""
        return self._outbox.done

    @property
    def delivered(self) -> int:
        """Bytes of output that have been written."""
        return sum(sink.done for sink in self._sinks.values())

    def run(self, deadline: float | None = None) -> Pause:
        """Relay until the end ("ended"), a byte on the wake descriptor, or ``deadline`` (monotonic)."""
        while True:
            self._flush_sinks({})
            if self._side.ended and not self.undelivered:
                return "ended"
            if self._side.ended and self._output_ended is not None:
                tell, self._output_ended = self._output_ended, None
                tell()
            if self._news and not (self._news[0] == "input_closed" and self._outbox.open):
                return self._news.pop(0)
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return "deadline"
            ready = self._poll(left)
            if ready.get(self._wake):
                return "woken"
            self._step(ready)

    def end_input(self) -> None:
        """Act as if stdin had ended: queued input is still sent."""
        if self._stdin is not None:
            self._stdin = None
            self._finish_input()

    def discard(self, stream: str) -> None:
        """Discard all output of ``stream``, "stdout" or "stderr"."""
        self._sinks[1 if stream == "stdout" else 2].discard()

    def close(self) -> None:
        """Close what the sinks opened; the caller's descriptors stay open."""
        self._own.take(self._side.input_taken)
        for sink in self._sinks.values():
            sink.close()

    def _poll(self, left: float | None) -> dict[int, int]:
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        wanted: dict[int, int] = {}
        side = self._side
        room = not any(sink.full() for sink in self._sinks.values()) and self._outbox.answers < LIMIT
        for fd, events in side.wants(room=room, sending=self._outbox.pending > 0):
            wanted[fd] = wanted.get(fd, 0) | events
        accepts = self._outbox.pending < LIMIT > self._sinks[1].answers
        if self._stdin is not None and not self._own.held and not side.ended and accepts:
            wanted[self._stdin] = wanted.get(self._stdin, 0) | select.POLLIN
        for sink in self._sinks.values():
            if sink.pending:
                wanted[sink.fileno()] = wanted.get(sink.fileno(), 0) | select.POLLOUT
        for fd, events in wanted.items():
            poller.register(fd, events)
        if not room and self._through is not None:
            left = self._log_patience if left is None else min(left, self._log_patience)
        self._room = room
        timeout = 0 if room and side.eager else None if left is None else max(1, int(left * 1000))
        return dict(poller.poll(timeout))

    def _step(self, ready: dict[int, int]) -> None:
        if self._room and not self._side.ended:
            self._deliver(self._side.receive(ready))
        if self._stdin is not None and ready.get(self._stdin, 0) & _IN:
            self._read_stdin(ready[self._stdin])
        if self._outbox.pending:
            self._send()
        self._own.take(self._side.input_taken)
        self._flush_sinks(ready)

    def _deliver(self, pieces: list[Piece]) -> None:
        if self._through is None:
            for stream, piece in pieces:
                if self._watch is not None:
                    self._watch.shown(piece)
                if self._record is not None:
                    self._record(piece)
                self._sinks[stream].push(memoryview(piece))
            return
        output = []
        for stream, piece in pieces:
            if stream == 1:
                output.append(piece)
            else:
                self._through.agent_stderr(memoryview(piece))
        if output:
            # Engine frames are 8 KiB (measured); joining them means one call of the filter for eight of them.
            self._through.agent_data(b"".join(output))
        if self._side.ended:
            self._through.agent_eof()
            self._news = ["undelivered"]
        self._take(from_agent=True)

    def _take(self, *, from_agent: bool) -> None:
        """Queue the filter's output for one side's bytes; frames that go back to that side are podbot's own replies."""
        if self._through is None:
            return
        for frame in self._through.for_agent():
            self._outbox.push(memoryview(frame), answer=from_agent)
        for frame in self._through.for_client():
            self._sinks[1].push(memoryview(frame), answer=not from_agent)
        for line in self._through.for_stderr():
            self._sinks[2].push(memoryview(line))

    def _flush_sinks(self, ready: dict[int, int]) -> None:
        for number, sink in self._sinks.items():
            if sink.must_poll and not ready.get(sink.fileno()):
                continue
            try:
                sink.flush()
            except OSError as exc:
                raise SinkClosed("stdout" if number == 1 else "stderr", exc) from exc

    def _read_stdin(self, events: int) -> None:
        try:
            data = self._own.read()
        except BlockingIOError:
            return
        except OSError:
            data = b""  # EIO: the terminal is gone; EBADF: closed by the parent
        if not data:
            if events & select.POLLHUP:
                self._hung_up()
            if self._through is not None:
                self._news.append("input_ended")
            self.end_input()
        elif self._through is None:
            if self._watch is not None and self._watch.typed(data):
                self._news.append("noticed")
            self._outbox.push(memoryview(data))
        else:
            self._through.client_data(data)
            self._take(from_agent=False)

    def _send(self) -> None:
        self._outbox.flush()
        if self._outbox.deaf and self._through is None:
            self._stdin = None  # with a filter, stdin is still read to notice its end

    def _finish_input(self) -> None:
        if self._through is not None:
            self._through.client_eof()
            self._take(from_agent=False)
            self._news.append("input_closed")
        self._outbox.finish()

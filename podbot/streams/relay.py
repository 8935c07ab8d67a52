"""The one relay between podbot's own descriptors and a command's streams.

Bounded both ways: a full buffer stops reading from the side that fills it, so a reader that sleeps
slows the command inside and costs no memory.
"""

from __future__ import annotations

import os
import select
import time
from typing import Literal, Protocol

from podbot.streams.channel import Filter
from podbot.streams.demux import Piece
from podbot.streams.outbox import Outbox
from podbot.streams.sides import CHUNK, CommandSide
from podbot.streams.sink import LIMIT, LOG_PATIENCE, LogSink, Sink

__all__ = ["LIMIT", "Pause", "Relay", "SinkClosed", "Watch"]

Pause = Literal["ended", "woken", "deadline", "input_ended", "input_closed", "undelivered", "noticed"]
_IN = select.POLLIN | select.POLLHUP | select.POLLERR | select.POLLNVAL


class SinkClosed(Exception):
    """``stream`` (stdout or stderr) takes no more: its reader went away, or ``error`` says what else."""

    def __init__(self, stream: str, error: OSError) -> None:
        super().__init__(stream)
        self.stream = stream
        self.error = error


class Watch(Protocol):
    """Sees what passes on a terminal."""

    def typed(self, data: bytes) -> bool:
        """Before it goes to the command; true: ``run`` is to return "noticed"."""
        ...

    def shown(self, data: bytes | memoryview) -> None:
        """What the command printed."""
        ...


class Relay:
    """Moves bytes until the command ended. ``run`` returns early when woken or at a deadline; call it again.

    ``stdin`` None: end of file at once.

    ``through``: everything passes through this filter (not from a terminal), and ``run`` also returns once
    when stdin has ended ("input_ended"), when the command's has as well ("input_closed"), and when the
    command ended and output still waits ("undelivered"). A side whose frames podbot answers itself is left
    unread while it does not read those answers.

    ``watch``: sees what passes, where there is no filter.
    """

    def __init__(
        self,
        side: CommandSide,
        *,
        stdin: int | None,
        stdout: int | None,
        stderr: int | None,
        wake: int,
        through: Filter | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._side = side
        self._stdin = stdin
        self._sinks = {1: Sink(stdout), 2: Sink(stderr) if through is None else LogSink(stderr)}
        self._wake = wake
        self._outbox = Outbox(side)
        self._through = through
        self._watch = watch
        self._news: list[Pause] = []
        self._room = True  # for output of the command, when its descriptors were last polled
        if stdin is None:
            self._finish_input()

    @property
    def broken(self) -> bool:
        """See :class:`~podbot.streams.sides.CommandSide`."""
        return self._side.broken

    @property
    def truncated(self) -> bool:
        """See :class:`~podbot.streams.sides.CommandSide`."""
        return self._side.truncated

    @property
    def unsent(self) -> int:
        """Bytes that the command has not taken yet."""
        return self._outbox.pending

    @property
    def undelivered(self) -> int:
        """Bytes of output that nobody has taken yet."""
        return sum(sink.pending for sink in self._sinks.values())

    @property
    def sent(self) -> int:
        """Bytes that the command has taken."""
        return self._outbox.done

    @property
    def delivered(self) -> int:
        """Bytes of output that were taken."""
        return sum(sink.done for sink in self._sinks.values())

    def run(self, deadline: float | None = None) -> Pause:
        """Relay until the end ("ended"), a byte on the wake descriptor, or ``deadline`` (monotonic)."""
        while True:
            self._flush_sinks({})
            if self._side.ended and not self.undelivered:
                return "ended"
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
        """As if stdin had ended: what is queued is still sent."""
        if self._stdin is not None:
            self._stdin = None
            self._finish_input()

    def discard(self, stream: str) -> None:
        """Go on without this one's reader: "stdout" or "stderr"."""
        self._sinks[1 if stream == "stdout" else 2].discard()

    def hand_over(self) -> tuple[int, ...]:
        """See :class:`~podbot.streams.sides.CommandSide`."""
        return self._side.hand_over()

    def close(self) -> None:
        """Give back what the sinks opened; the caller's descriptors stay open."""
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
        if self._stdin is not None and not side.ended and self._outbox.pending < LIMIT > self._sinks[1].answers:
            wanted[self._stdin] = wanted.get(self._stdin, 0) | select.POLLIN
        for sink in self._sinks.values():
            if sink.pending:
                wanted[sink.fileno()] = wanted.get(sink.fileno(), 0) | select.POLLOUT
        for fd, events in wanted.items():
            poller.register(fd, events)
        if not room and self._through is not None:
            left = LOG_PATIENCE if left is None else min(left, LOG_PATIENCE)
        if side.interval is not None:
            left = side.interval if left is None else min(left, side.interval)
        self._room = room
        timeout = 0 if room and side.eager else None if left is None else max(1, int(left * 1000))
        return dict(poller.poll(timeout))

    def _step(self, ready: dict[int, int]) -> None:
        if self._room and not self._side.ended:
            self._deliver(self._side.receive(ready))
        if self._stdin is not None and ready.get(self._stdin, 0) & _IN:
            self._read_stdin(self._stdin)
        if self._outbox.pending:
            self._send()
        self._flush_sinks(ready)

    def _deliver(self, pieces: list[Piece]) -> None:
        if self._through is None:
            for stream, piece in pieces:
                if self._watch is not None:
                    self._watch.shown(piece)
                self._sinks[stream].push(memoryview(piece))
            return
        output = []
        for stream, piece in pieces:
            if stream == 1:
                output.append(piece)
            else:
                self._through.agent_stderr(memoryview(piece))
        if output:
            # Engine frames are 8 KiB (measured): joined, a filter is called once for eight of them.
            self._through.agent_data(b"".join(output))
        if self._side.ended:
            self._through.agent_eof()
            self._news = ["undelivered"]
        self._take(from_agent=True)

    def _take(self, *, from_agent: bool) -> None:
        """Queue what the filter made of one side's bytes; what goes back to that side is podbot's answer."""
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

    def _read_stdin(self, fd: int) -> None:
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # EIO: the terminal is gone; EBADF: closed by the parent
        if not data:
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
            self._stdin = None  # with a filter it is read on, for its end

    def _finish_input(self) -> None:
        if self._through is not None:
            self._through.client_eof()
            self._take(from_agent=False)
            self._news.append("input_closed")
        self._outbox.finish()

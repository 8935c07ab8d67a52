"""One command on a connection of its own to a guest, for a loop that polls: only the start waits for the guest.

Everything the guest sends is hostile: a message that violates the protocol ends the connection. A silent guest is not
asked whether it is still there, because a command may be silent for hours; a caller that wants the command to end waits
for it no longer than for one that ignores signals.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from podbot.errors import ChannelLost, CommandRefused, NoGuest
from podbot.frozen import Frozen
from podbot.guest import frames
from podbot.guest.link import Link, as_text
from podbot.guest.messages import (
    Ended,
    GuestCommand,
    GuestFacts,
    Malformed,
    ended_from,
    facts_from,
    refusal,
    started_from,
)
from podbot.streams.backlog import Backlog
from podbot.streams.demux import Piece
from podbot.streams.sides import StreamsLost

_WINDOW = 1 << 19  # bytes of output that the guest may send before the relay has taken them
_READ = 1 << 17
_HELLO, _COMMAND = 1, 2  # ids
_STREAMS = {frames.STDOUT: 1, frames.STDERR: 2}

# Waits at most so many seconds for these events (of poll) of the connection; true: another event ends the waiting.
Wait = Callable[[float, int], bool]


class ConnectionState(Frozen):
    """What another process needs to continue a connection, besides its descriptor.

    ``pid``: of the command, inside. ``allowed``: bytes of output that the guest may still send; ``taken``: bytes for
    which no credit was given back yet; ``credit``: bytes of stdin that the guest accepts. ``received``: the beginning
    of a frame; ``unsent``: frames that were not sent yet.
    """

    pid: int
    allowed: int
    taken: int
    credit: int
    received: bytes
    unsent: bytes

    def described(self) -> dict[str, Any]:
        """As values for JSON; the bytes as base64."""
        plain = {"pid": self.pid, "allowed": self.allowed, "taken": self.taken, "credit": self.credit}
        return {**plain, "received": _text(self.received), "unsent": _text(self.unsent)}

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`described`."""
        import base64

        raw = {name: base64.b64decode(values[name]) for name in ("received", "unsent")}
        return cls(**{**values, **raw})


def _text(data: bytes) -> str:
    import base64  # imported here: few commands are handed over

    return base64.b64encode(data).decode("ascii")


class PolledCommand:
    """See ``CommandSide``; also signals, the terminal's size and the end.

    ``end``: how the command ended, once that was received. ``lost``: why the connection has ended; empty until then.
    ``term``: the index of the TERM that the guest chose, or None.
    """

    broken = truncated = False

    def __init__(self, link: Link) -> None:
        self._link = link
        self.facts: GuestFacts | None = None
        self.pid = self._term_choices = 0
        self.term: int | None = None
        self.end: Ended | None = None
        self.lost = ""
        self._closed = False
        self._decoder = frames.Decoder()
        self._out = Backlog()
        self._pieces: list[Piece] = []
        self._started = False
        self._refused: CommandRefused | None = None
        self._credit = frames.WINDOW  # bytes of stdin that the guest accepts now
        self.input_taken = 0
        self._allowed = 0  # bytes of output that the guest may still send
        self._taken = 0  # bytes that the relay has taken and for which no credit was given yet

    @classmethod
    def greeted(cls, link: Link, seconds: float, wait: Wait) -> Self:
        """A connection to a guest of this podbot's version. Raises NoGuest, and then ``link`` is closed."""
        made = cls(link)
        try:
            made._greet(seconds, wait)
        except BaseException:
            made.close()
            raise
        return made

    @classmethod
    def resumed(cls, link: Link, state: ConnectionState) -> Self:
        """The connection of a running command, continued from the state in which another process left it."""
        made = cls(link)
        made._started = True
        made.pid, made._allowed, made._taken, made._credit = state.pid, state.allowed, state.taken, state.credit
        made._decoder.feed(state.received)
        made._out.push(memoryview(state.unsent))
        return made

    def state(self) -> ConnectionState:
        """The state for :meth:`resumed`. Output that was received and not taken is lost."""
        taken = self._taken + sum(len(piece.data) for piece in self._pieces)
        unsent = b"".join(self._out.everything())
        return ConnectionState(self.pid, self._allowed, taken, self._credit, self._decoder.incomplete, unsent)

    def _greet(self, seconds: float, wait: Wait) -> None:
        self._push(frames.HELLO, _HELLO, b'{"version": %d}' % frames.VERSION)
        self._await(lambda: self.facts is not None, seconds, wait)
        reason = ""
        if self.facts is None:
            reason = self.lost or f"it did not answer within {seconds:g} s"
        elif self.facts.version != frames.VERSION:
            reason = f"it uses version {self.facts.version} of the protocol, podbot uses {frames.VERSION}"
        if reason:
            raise NoGuest(where=self._link.where, reason=reason)

    def start(self, command: GuestCommand, seconds: float, wait: Wait) -> None:
        """Start the command; called once. Raises CommandRefused (then nothing was started), and ChannelLost."""
        self._allowed = 0 if command.discard else _WINDOW
        self._term_choices = len(command.term_choices)
        document = command.document(self._allowed, discard=command.discard)
        if len(document) > frames.REQUEST_LIMIT:
            raise CommandRefused(field="command", value="", reason="its arguments and variables are too long")
        limit = frames.PAYLOAD_LIMIT
        last = (len(document) - 1) // limit * limit
        for at in range(0, last, limit):
            self._push(frames.START_PART, _COMMAND, document[at : at + limit])
        self._push(frames.START, _COMMAND, document[last:])
        done = self._await(lambda: self._started or self._refused is not None, seconds, wait)
        if self._refused is not None:
            raise self._refused
        if not done:
            reason = self.lost or f"it did not start a command within {seconds:g} s"
            raise ChannelLost(where=self._link.where, reason=reason)

    def _await(self, done: Callable[[], bool], seconds: float, wait: Wait) -> bool:
        until = time.monotonic() + seconds
        while not done() and not self.lost:
            self._flush()
            left = until - time.monotonic()
            if left <= 0 or wait(left, select.POLLIN | select.POLLOUT * (self._out.pending > 0)):
                return False
            self._receive()
        return done()

    def fileno(self) -> int:
        """The descriptor to poll as :meth:`wants` says."""
        return self._link.fileno()

    # The command's side of a relay

    @property
    def ended(self) -> bool:
        return self.end is not None and not self._pieces

    @property
    def eager(self) -> bool:
        return bool(self._pieces or self.lost)

    def wants(self, *, room: bool, sending: bool) -> Iterator[tuple[int, int]]:
        self._flush()
        events = select.POLLIN if room or (sending and not self._credit) else 0
        if self._out.pending or (sending and self._credit):
            events |= select.POLLOUT
        if events and not self.ended and not self.lost:
            yield self.fileno(), events

    def receive(self, ready: Mapping[int, int]) -> list[Piece]:
        """See CommandSide. Raises StreamsLost when the connection ended before the command."""
        if ready.get(self.fileno(), 0) & ~select.POLLOUT:
            self._receive()
        pieces, self._pieces = self._pieces, []
        if self.lost and not pieces and self.end is None:
            raise StreamsLost(self.lost)
        self._taken += sum(len(piece.data) for piece in pieces)
        if self._taken >= _WINDOW // 4 and self.end is None:
            size, self._taken = self._taken, 0
            self._allowed += size
            self._push(frames.CREDIT, _COMMAND, frames.NUMBER.pack(size))
        return pieces

    def send(self, pieces: Iterable[memoryview]) -> int:
        if not self._credit:
            self._receive()
        self._flush()
        if self.end is not None or self.lost:
            raise BrokenPipeError
        room = min(self._credit, frames.PAYLOAD_LIMIT)
        if self._out.pending or not room:
            raise BlockingIOError
        chosen, size = [], 0
        for piece in pieces:
            chosen.append(piece[: room - size])
            size += len(chosen[-1])
            if size == room:
                break
        self._credit -= size
        self._push(frames.STDIN, _COMMAND, b"".join(chosen))
        return size

    def shut_write(self) -> None:
        self._push(frames.STDIN_END, _COMMAND)

    # What controls the command

    def signal(self, number: int) -> bool:
        """Send a signal to its process group; False when it has ended or the connection has."""
        return self._push(frames.SIGNAL, _COMMAND, frames.NUMBER.pack(number))

    def terminate(self) -> bool:
        """Terminate all its processes, whatever group they are in: TERM, 2 s, KILL. Returns as :meth:`signal` does."""
        return self._push(frames.TERMINATE, _COMMAND)

    def look(self) -> None:
        """Receive what has arrived, even if the relay has no room for it; at most the credit that the guest has."""
        self._receive()

    def resize(self, columns: int, rows: int) -> None:
        """Change its terminal's size."""
        self._push(frames.RESIZE, _COMMAND, frames.SIZE.pack(columns, rows))

    def ends_within(self, seconds: float) -> bool:
        """Wait for its end, and drop its output meanwhile. True also when the connection has ended."""
        until = time.monotonic() + seconds
        while self.end is None and not self.lost:
            poller = select.poll()
            for fd, events in self.wants(room=True, sending=False):
                poller.register(fd, events)
            left = until - time.monotonic()
            if left <= 0:
                return False
            ready = dict(poller.poll(left * 1000))
            with contextlib.suppress(StreamsLost):
                self.receive(ready)
        return True

    def close(self) -> None:
        """End the connection, and with it the command. May be called repeatedly."""
        if not self._closed:
            self._closed = True
            self.lost = self.lost or "podbot closed it"
            self._link.close()

    # Frames

    def _push(self, kind: int, ident: int, payload: bytes = b"") -> bool:
        if self.end is not None or self.lost:
            return False
        self._out.push(memoryview(frames.frame(kind, ident, payload)))
        self._flush()
        return not self.lost

    def _flush(self) -> None:
        try:
            while self._out.pending and not self.lost:
                self._out.taken(self._link.send(self._out.first()))
        except BlockingIOError:
            return
        except OSError as exc:
            self._out.clear()
            while self.end is None and self._receive():
                pass  # what it sent before it ended, at most its credit
            if self.end is None:
                self.lost = self.lost or f"sending to it failed ({as_text(exc)})"

    def _receive(self) -> bool:
        """Process what has arrived; returns whether there may be more."""
        if self.lost:
            return False
        try:
            data = self._link.receive(_READ)
            if not data:
                self.lost = "it ended"
            for kind, ident, payload in self._decoder.feed(data):
                self._take(kind, ident, payload)
        except BlockingIOError:
            return False
        except OSError as exc:
            self.lost = f"receiving from it failed ({as_text(exc)})"
        except (frames.FrameError, Malformed) as exc:
            self.lost = f"it sent an invalid message ({exc})"
        return not self.lost

    def _take(self, kind: int, ident: int, payload: bytes) -> None:
        if kind == frames.WELCOME and ident == _HELLO and self.facts is None and not self._started:
            self.facts = facts_from(payload)
        elif kind == frames.REFUSED and ident == _HELLO:
            raise Malformed("it refused the connection")
        elif ident != _COMMAND or self.end is not None or self._refused is not None:
            raise Malformed("an unrequested frame")
        elif not self._started:
            self._begin(kind, payload)
        elif kind in _STREAMS:
            self._allowed -= len(payload)
            if self._allowed < 0 or not payload:
                raise Malformed("more output than it had credit for")
            self._pieces.append(Piece(_STREAMS[kind], payload))
        elif kind == frames.STDIN_CREDIT:
            size = frames.number(payload)
            self._credit += size
            # Each frame uses up credit of one direction, so that what a guest can send without podbot's is bounded.
            if not size or self._credit > frames.WINDOW:
                raise Malformed("no credit, or more than was used")
            self.input_taken += size
        elif kind == frames.ENDED:
            self.end = ended_from(payload)
        else:
            raise Malformed("an unrequested frame")

    def _begin(self, kind: int, payload: bytes) -> None:
        if kind == frames.STARTED:
            self.pid, _, self.term = started_from(payload, self._term_choices)
            self._started = True
        elif kind == frames.REFUSED:
            self._refused = refusal(payload)
        else:
            raise Malformed("an unrequested frame")

"""podbot's side of a command that a guest runs."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable

from podbot.errors import ChannelLost, CommandRefused
from podbot.guest import frames
from podbot.guest.exchange import Exchange
from podbot.guest.messages import Ended, GuestCommand, Malformed, ended_from, refusal, started_from

_SIGNALS = 64  # the highest number of a signal
_CELLS = 65535  # the most columns or rows of a terminal
OnOutput = Callable[[int, bytes], None]
_WINDOW = 1 << 19  # bytes of output that the guest may send before ``on_output`` has processed them


def signal_number(number: int) -> int:
    """``number``, if Linux has a signal of that number. Raises CommandRefused."""
    if not 1 <= number <= _SIGNALS:
        raise CommandRefused(field="signal", value=str(number)[:40], reason=f"it is not a number from 1 to {_SIGNALS}")
    return int(number)


class Running:
    """One command. ``id``: on its channel; ``pid``: inside; ``job``: the number of the job, or 0 if it is none;
    ``term``: the index of the TERM that the guest chose, or None.

    Any thread may call it. Calls of :meth:`wait` and :meth:`write` pass its output to ``on_output``, and each piece
    counts as processed when that returns. While no thread is in one of these calls, or their ``until`` holds, the guest
    sends up to 512 KiB, which are kept here; after that the command blocks when it prints.
    """

    def __init__(self, exchange: Exchange, on_output: OnOutput | None) -> None:
        self.ready = threading.Condition(exchange.lock)
        self.pid = self.job = self._term_choices = 0
        self.term: int | None = None
        self._exchange, self._on_output = exchange, on_output
        self._delivery = threading.Lock()
        self._queue: deque[tuple[int, bytes]] = deque()
        self._allowed = _WINDOW if on_output is not None else 0  # bytes that the guest may still send
        self._taken = 0  # bytes that ``on_output`` has processed and for which no credit was given yet
        self._credit = frames.WINDOW  # bytes of stdin that the guest accepts now
        self._started = self._abandoned = False
        self._refused: CommandRefused | None = None
        self._ended: Ended | None = None
        self.id = exchange.register(self)

    @classmethod
    def start(cls, exchange: Exchange, command: GuestCommand, on_output: OnOutput | None) -> Running:
        """See Channel.start."""
        if command.keep or command.discard:
            on_output = None
        discard = command.discard or (on_output is None and not command.keep)
        running = cls(exchange, on_output)
        running._term_choices = len(command.term_choices)
        try:
            running._request(command.document(running._allowed, discard=discard))
        except (CommandRefused, ChannelLost):
            exchange.forget(running.id)
            raise
        except BaseException:  # the guest may have started it
            running.abandon()
            raise
        return running

    def _request(self, document: bytes) -> None:
        if len(document) > frames.REQUEST_LIMIT:
            reason = f"arguments and variables are {len(document)} bytes, over the limit of {frames.REQUEST_LIMIT}"
            raise CommandRefused(field="command", value="", reason=reason)
        exchange, limit = self._exchange, frames.PAYLOAD_LIMIT
        last = max(0, (len(document) - 1) // limit * limit)
        for at in range(0, last, limit):
            exchange.send(frames.START_PART, self.id, document[at : at + limit])
        exchange.send(frames.START, self.id, document[last:])
        until = time.monotonic() + exchange.patience.answer
        with exchange.lock:
            if not exchange.wait(self, lambda: self._started or self._refused is not None, until):
                raise exchange.fail(f"it did not start a command within {exchange.patience.answer:g} s")
        if self._refused is not None:
            raise self._refused

    def take(self, kind: int, payload: bytes) -> bool:
        """See Receiver."""
        if kind in (frames.STDOUT, frames.STDERR):
            return self._take_output(1 if kind == frames.STDOUT else 2, payload)
        if kind == frames.STARTED and not self._started:
            self.pid, self.job, self.term = started_from(payload, self._term_choices)
            self._started = True
        elif kind == frames.REFUSED and not self._started:
            self._refused = refusal(payload)
            self._exchange.forget(self.id)
        elif kind == frames.STDIN_CREDIT and self._started:
            self._credit += frames.number(payload)
            if self._credit > frames.WINDOW:
                raise Malformed("it gave more credit than was used")
        elif kind == frames.ENDED and self._started:
            self._ended = ended_from(payload)
            self._exchange.forget(self.id)
        else:
            return False
        self.ready.notify_all()
        return True

    def _take_output(self, stream: int, payload: bytes) -> bool:
        if not self._started or not payload:
            return False
        self._allowed -= len(payload)
        if self._allowed < 0:
            raise Malformed("it sent more output than it had credit for")
        self._queue.append((stream, payload))
        self.ready.notify_all()
        return True

    @property
    def ended(self) -> Ended | None:
        """How the command ended; None until its end was received."""
        return self._ended

    def wait(self, seconds: float | None = None, *, until: Callable[[], bool] | None = None) -> Ended | None:
        """How the command ended, after all its output was passed to ``on_output``.

        Returns None after ``seconds``, and as soon as ``until`` holds, also when another thread delivered the output.
        ``until`` must not block. Raises ChannelLost.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while self._pump(until or (lambda: False), end, until):
            if self._ended is not None and not self._queue:
                return self._ended
            if until is not None and until():
                return None
        return None

    def _pump(self, done: Callable[[], bool], end: float | None, until: Callable[[], bool] | None = None) -> bool:
        """Wait for ``done``, the end or output; deliver output until ``until`` holds. False when the time is over."""
        exchange = self._exchange

        def has_work() -> bool:
            if self._queue and not (until is not None and until()):
                return True
            # What another thread is delivering may make ``done`` hold, which is therefore asked last.
            return self._delivery.locked() or self._ended is not None or done()

        with exchange.lock:
            if not exchange.wait(self, has_work, end):
                return False
        with self._delivery:
            self._deliver(until)
        return True

    def _deliver(self, until: Callable[[], bool] | None) -> None:
        while self._queue and not (until is not None and until()):
            try:
                stream, data = self._queue.popleft()
            except IndexError:  # another thread has abandoned the command
                return
            if self._on_output is not None:
                self._on_output(stream, data)
            self._taken += len(data)
            if self._taken >= _WINDOW // 4 and self._ended is None:
                size, self._taken = self._taken, 0
                with self._exchange.lock:
                    self._allowed += size
                self._exchange.send(frames.CREDIT, self.id, frames.NUMBER.pack(size))

    def write(self, data: bytes, *, until: Callable[[], bool] | None = None, seconds: float | None = None) -> bool:
        """Write to the command's stdin, and wait until the guest has accepted it.

        Returns False if it has not within ``seconds``; the command may then have got a part of it.

        Data that the command no longer reads is dropped without an error. Delivers output meanwhile, as :meth:`wait`
        does, and none while ``until`` holds; ``until`` must not block. An ``on_output`` that only stores the output
        needs an ``until`` that holds as soon as enough is stored, or a command that prints without end fills the
        memory. Then, as with a pipe, a command that prints before it reads makes this wait until another thread takes
        the output and calls :meth:`wait`. Raises ChannelLost.
        """
        rest = memoryview(data)
        end = None if seconds is None else time.monotonic() + seconds
        while rest and self._ended is None and not self._abandoned:
            if not self._pump(lambda: self._credit > 0 or self._abandoned, end, until):
                return False
            with self._exchange.lock:
                size = min(len(rest), self._credit, frames.PAYLOAD_LIMIT)
                self._credit -= size
            if size:
                self._send(frames.STDIN, bytes(rest[:size]))
                rest = rest[size:]
            elif end is not None and time.monotonic() >= end:
                return False  # also while the command prints without pause
        return True

    def close_stdin(self) -> None:
        """Send an end of file after the data that was written."""
        self._send(frames.STDIN_END)

    def signal(self, number: int) -> None:
        """Send a signal (1 to 64) to the command's process group. Does nothing when the command has ended.

        Raises CommandRefused for any other number.
        """
        self._send(frames.SIGNAL, frames.NUMBER.pack(signal_number(number)))

    def terminate(self) -> None:
        """Terminate all its processes: TERM, its grace, KILL. :meth:`wait` still reports the end."""
        self._send(frames.TERMINATE)

    def abandon(self) -> None:
        """Terminate the command, and drop its output and its end, for which :meth:`wait` must not be called any more.

        For callers that may not wait for the end: unread output keeps descriptors open in the guest. A job continues. A
        :meth:`write` of another thread returns. Does nothing when the channel has ended.
        """
        self._exchange.forget(self.id)
        self._queue.clear()
        with contextlib.suppress(ChannelLost):
            self._send(frames.ABANDON)
        with self._exchange.lock:
            self._abandoned = True
            self.ready.notify_all()

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the command's terminal. Raises CommandRefused for a size that no terminal can have."""
        if not 0 <= min(columns, rows) <= max(columns, rows) <= _CELLS:
            reason = f"columns and rows are numbers from 0 to {_CELLS}"
            raise CommandRefused(field="tty", value=f"{columns}x{rows}"[:40], reason=reason)
        self._send(frames.RESIZE, frames.SIZE.pack(columns, rows))

    def _send(self, kind: int, payload: bytes = b"") -> None:
        if self._ended is None and not self._abandoned:
            self._exchange.send(kind, self.id, payload)

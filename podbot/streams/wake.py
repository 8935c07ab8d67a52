"""Waking a relay from a signal handler or another thread."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import deque
from collections.abc import Iterator

from podbot.frozen import Frozen


class Resize(Frozen):
    """The terminal has a new size."""


class Signal(Frozen):
    """A signal for the command inside; TERM and HUP end the session."""

    number: int


class Suspend(Frozen):
    """podbot was asked to stop itself (SIGTSTP)."""


class Continued(Frozen):
    """podbot was continued after another process had stopped it."""


Message = Resize | Signal | Suspend | Continued


class Interrupted(BaseException):
    """A signal arrived where no relay can pass it on: unwind. A BaseException, so nothing catches it by mistake."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def signals_blocked() -> Iterator[None]:
    """For the start of a thread, which inherits this: a signal delivered to it would not wake the main thread."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Wake:
    """A queue with a descriptor to poll. ``post`` may be called from anywhere, including signal handlers.

    A signal handler calls ``deliver``: inside ``listening`` the signal is queued, otherwise Interrupted is raised at
    once (handlers run in the main thread) and unwinds.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._queue: deque[Message] = deque()
        self._listening = 0

    def fileno(self) -> int:
        return self._read

    def post(self, message: Message) -> None:
        """Queue ``message`` and wake the poller."""
        self._queue.append(message)
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes the poller anyway
            os.write(self._write, b"!")

    def deliver(self, number: int) -> None:
        """Called by a signal handler: queue the signal if a relay is listening, else unwind."""
        if self._listening:
            self.post(Signal(number))
        else:
            raise Interrupted(number)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Queue signals while the block runs, because a relay polls or a clean-up must not be interrupted."""
        self._listening += 1
        try:
            yield
        finally:
            self._listening -= 1

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within ``listening``: let a signal, even one already queued, interrupt the block."""
        before, self._listening = self._listening, 0
        try:
            self.check()  # only now: a signal that comes before this is queued
            yield
        finally:
            self._listening = before

    def check(self) -> None:
        """Raise Interrupted if a signal is queued."""
        for message in self.take():
            if isinstance(message, Signal):
                raise Interrupted(message.number)

    @property
    def ending(self) -> bool:
        """Whether a signal that ends the session is queued. INT does not count: it goes to the command."""
        return any(isinstance(message, Signal) and message.number != signal.SIGINT for message in tuple(self._queue))

    @property
    def has_signal(self) -> bool:
        """Whether a signal is queued."""
        return any(isinstance(message, Signal) for message in tuple(self._queue))

    def take(self) -> list[Message]:
        """All queued messages; empties the descriptor."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 4096):
                pass
        taken = []
        while self._queue:
            taken.append(self._queue.popleft())
        return taken

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)

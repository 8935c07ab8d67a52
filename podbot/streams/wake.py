"""Waking a relay from a signal handler or another thread."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple


class Resize(NamedTuple):
    """The terminal has a new size."""


class Signal(NamedTuple):
    """A signal for the command inside; TERM and HUP end the session."""

    number: int


class Suspend(NamedTuple):
    """podbot was asked to stop itself (SIGTSTP)."""


class Continued(NamedTuple):
    """podbot goes on after others stopped it."""


Message = Resize | Signal | Suspend | Continued


class Interrupted(BaseException):
    """A signal arrived where nothing can relay it: unwind. Not an Exception, so that nothing swallows it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Wake:
    """A queue with a descriptor to poll. ``post`` may be called from anywhere, signal handlers too.

    A signal handler calls ``deliver``: while something is ``listening`` the signal is queued for it,
    otherwise Interrupted is raised on the spot (handlers run in the main thread) and unwinds.
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
        """Queue ``message`` and wake whoever polls."""
        self._queue.append(message)
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes as well as one more byte
            os.write(self._write, b"!")

    def deliver(self, number: int) -> None:
        """What a signal handler calls: to the relay when one listens, else unwind."""
        if self._listening:
            self.post(Signal(number))
        else:
            raise Interrupted(number)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """A relay polls, or a clean-up must not be torn: signals are queued here."""
        self._listening += 1
        try:
            yield
        finally:
            self._listening -= 1

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within ``listening``: a wait that a signal may break off after all, also one that is queued already."""
        self.check()
        before, self._listening = self._listening, 0
        try:
            yield
        finally:
            self._listening = before

    def check(self) -> None:
        """Unwind when a signal was queued while nobody could act on it."""
        for message in self.take():
            if isinstance(message, Signal):
                raise Interrupted(message.number)

    @property
    def ending(self) -> bool:
        """A signal that ends the session is queued; INT goes to the command."""
        return any(isinstance(message, Signal) and message.number != signal.SIGINT for message in tuple(self._queue))

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

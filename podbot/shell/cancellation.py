"""Ends one call of a shell from another thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Protocol

from podbot.shell.reconnecting import BROKEN

CALL: ContextVar[Cancellation | None] = ContextVar("podbot_shell_call", default=None)


class Terminable(Protocol):
    """A command that can be ended while another thread waits for it."""

    def terminate(self) -> None: ...


class Cancellation:
    """Identifies one call, and terminates the command for which that call waits.

    The call finds it in the context variable ``CALL``. A thread that made a cancelled call may already be making
    another one, which this does not reach.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._running: Terminable | None = None

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled, for calls that wait for something else than a command."""
        return self._cancelled

    def cancel(self) -> None:
        """Terminate the call's command, or, when it has not started yet, as soon as it has."""
        with self._lock:
            self._cancelled = True
            running = self._running
        _terminate(running)

    @contextlib.contextmanager
    def waiting(self, running: Terminable) -> Iterator[None]:
        """The call waits for this command during the block."""
        with self._lock:
            self._running = running
            cancelled = self._cancelled
        try:
            if cancelled:
                _terminate(running)
            yield
        finally:
            with self._lock:
                self._running = None


def waiting_for(running: Terminable) -> contextlib.AbstractContextManager[None]:
    """See :meth:`Cancellation.waiting`; does nothing for a call that cannot be cancelled."""
    call = CALL.get()
    return contextlib.nullcontext() if call is None else call.waiting(running)


def _terminate(running: Terminable | None) -> None:
    if running is not None:
        with contextlib.suppress(*BROKEN, OSError):  # the call itself reports a broken connection
            running.terminate()

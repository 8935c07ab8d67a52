"""A second process for one half of a scan: a fork of the scanning process, which has one thread and no secrets."""

from __future__ import annotations

import marshal
import os

from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_SECONDS = 30  # after which the second process ends, in case the first one has died


class Half:
    """Runs ``work`` in the second process. Its result must be of built-in types, which ``marshal`` can write."""

    def __init__(self, work: Callable[[], dict[str, Any]]) -> None:
        self._read, write = os.pipe()
        self._process = os.fork()
        if self._process:
            os.close(write)
            return
        try:
            alarm(_SECONDS)
            with open(write, "wb") as file:
                file.write(marshal.dumps(work()))
        finally:
            os._exit(0)  # noqa: TID251 - a fork must not return into its parent's work

    def result(self) -> dict[str, Any] | None:
        """Wait for the second process to end; None if it ended early."""
        with open(self._read, "rb") as file:
            data = file.read()
        os.waitpid(self._process, 0)
        try:
            found = marshal.loads(data)  # noqa: S302 - from a fork of this process
        except (EOFError, TypeError, ValueError):
            return None
        return found if isinstance(found, dict) else None


def alarm(seconds: int) -> None:
    """End this process after that time; 0 cancels it."""
    import _signal  # type: ignore[import-not-found] # `signal` would build enumerations, which is slow

    _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
    _signal.alarm(seconds)


def interrupt_after(seconds: float, act: Callable[[], None]) -> None:
    """Call ``act``, which may raise, half a second after that time, in the middle of whatever Python is doing then.

    A scan looks at the clock between files; this is for one file that takes too long. If the process still runs half a
    minute later, it ends.
    """
    import _signal

    def strike(_signal_number: int, _frame: object) -> None:
        _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
        act()

    _signal.signal(_signal.SIGALRM, strike)
    _signal.setitimer(_signal.ITIMER_REAL, seconds + 0.5, _SECONDS)


def can_share() -> bool:
    """Whether there is a second processor."""
    return hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1

"""Ends a workspace that is idle, or has run for too long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_SHORTEST = 0.01  # seconds between two looks


class Watchdog:
    """Looks at the limits of one start of a workspace, from a thread that ends with it.

    ``end_if_over``: gets when the workspace was started, on the monotonic clock, ends it if a limit is over, and
    returns the seconds until the next look; None if it has ended.
    """

    def __init__(self, ident: str, end_if_over: Callable[[float], float | None]) -> None:
        self._ident, self._end_if_over = ident, end_if_over
        self._since = time.monotonic()
        self._over = threading.Event()

    def start(self) -> None:
        """Start looking."""
        name = f"podbot-limits-{self._ident}"
        threading.Thread(target=self._look, name=name, daemon=True).start()

    def stop(self) -> None:
        """End the thread, from any thread, without waiting for it."""
        self._over.set()

    def _look(self) -> None:
        while (pause := self._end_if_over(self._since)) is not None:
            if self._over.wait(max(pause, _SHORTEST)):
                return

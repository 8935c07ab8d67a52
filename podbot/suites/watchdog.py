"""Ends a workspace that is idle, or has run for too long."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podbot.suites.backends import Opened
    from podbot.suites.lazy_workspace import LazyWorkspace

_SHORTEST = 0.01  # seconds between two looks


class Watchdog:
    """Looks at the limits of one start of a workspace, from a thread that ends with it."""

    def __init__(self, workspace: LazyWorkspace, opened: Opened) -> None:
        self._workspace, self._opened = workspace, opened
        self._since = time.monotonic()
        self._over = threading.Event()

    def start(self) -> None:
        """Start looking."""
        name = f"podbot-limits-{self._workspace.ident}"
        threading.Thread(target=self._look, name=name, daemon=True).start()

    def stop(self) -> None:
        """End the thread, from any thread, without waiting for it."""
        self._over.set()

    def _look(self) -> None:
        while (pause := self._workspace.end_if_over(self._opened, self._since)) is not None:
            if self._over.wait(max(pause, _SHORTEST)):
                return

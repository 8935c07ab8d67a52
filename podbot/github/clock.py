"""The clocks that renewal uses; a test passes its own."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """All times are in seconds."""

    def time(self) -> float:
        """Wall clock, since the epoch; may jump."""
        ...

    def monotonic(self) -> float:
        """Time since boot, including suspended time if the system supports that."""
        ...

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for ``event`` for at most ``seconds``; returns whether it is set."""
        ...


class SystemClock:
    """This machine's clocks."""

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        boot = getattr(time, "CLOCK_BOOTTIME", None)  # Linux; unlike CLOCK_MONOTONIC it counts suspended time
        return time.monotonic() if boot is None else time.clock_gettime(boot)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(seconds)


SYSTEM = SystemClock()

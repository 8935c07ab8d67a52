"""The clocks that renewal goes by; a test hands in its own."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Seconds, all of them."""

    def time(self) -> float:
        """Wall clock, since the epoch; may jump."""
        ...

    def monotonic(self) -> float:
        """Since boot, the time that the machine was suspended included where the system can tell."""
        ...

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for ``event``, at most ``seconds``; whether it is set."""
        ...


class SystemClock:
    """This machine's."""

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        boot = getattr(time, "CLOCK_BOOTTIME", None)  # Linux; unlike CLOCK_MONOTONIC it counts suspended time
        return time.monotonic() if boot is None else time.clock_gettime(boot)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(seconds)


SYSTEM = SystemClock()

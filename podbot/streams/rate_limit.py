"""A rate limit. Pure: the clock is an argument."""

from __future__ import annotations

from collections.abc import Callable


class Budget:
    """Allows ``rate`` a second on average, and ``burst`` at once.

    After something did not fit, nothing is allowed until a second's worth has accumulated. So what is let through, and
    the reports on the rest, come in few pieces.
    """

    def __init__(self, *, rate: int, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left = float(burst)
        self._at = clock()
        self._closed = False

    def take(self, amount: int) -> bool:
        """Spend ``amount`` if it fits; returns whether it did. More than ``burst`` at once never fits."""
        now = self._clock()
        self._left = min(self._burst, self._left + max(0.0, now - self._at) * self._rate)
        self._at = max(self._at, now)
        if self._closed and self._left < min(self._rate, self._burst):
            return False
        self._closed = amount > self._left
        self._left = 0.0 if self._closed else self._left - amount
        return not self._closed

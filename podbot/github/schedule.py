"""When a token is renewed. Pure arithmetic with times in seconds, without clocks or randomness.

A token is due when :data:`BUFFER` seconds of its life are left, or a little earlier for some, so that sessions that
were started together do not all send requests at once. The remaining life is computed with two clocks, and the lower
result counts: the wall clock, which continues while the machine is suspended but may be set, and the time since boot,
which cannot be set.
"""

from __future__ import annotations

import math
import zlib
from typing import NamedTuple

BUFFER = 300.0
SPREAD = 30.0  # the most that jitter adds to the buffer
LIFE = 86_400.0  # longer lives are cut to this; GitHub's tokens live an hour
FIRST = 2.0  # before the first retry
CEILING = 60.0  # the longest time between retries
RETRY_AFTER_MOST = 600.0  # a longer Retry-After is cut to this


class Term(NamedTuple):
    """A token's life. ``expires_at``, ``minted_at``: epoch; ``minted_uptime``: since boot, suspended time included."""

    expires_at: float
    minted_at: float
    minted_uptime: float

    @property
    def life(self) -> float:
        """How long it had to live when it was minted, 0 to LIFE."""
        return _between(0.0, self.expires_at - self.minted_at, LIFE)


def remaining(term: Term, now: float, uptime: float) -> float:
    """Remaining seconds of ``term``, the lower of both clocks' results, at most LIFE; 0 if it is over.

    An ``uptime`` before ``minted_uptime`` means another boot: the remaining life is unknown, so 0.
    """
    since = uptime - term.minted_uptime
    if not since >= 0:
        return 0.0
    return _between(0.0, min(term.expires_at - now, term.life - since), LIFE)


def margin(life: float, jitter: float) -> float:
    """How many seconds before its expiry a token is due; ``jitter``, 0 to 1, can only make it earlier.

    The spread is at most a tenth of the time for which a token is used, so that it does not use up a short life.
    """
    return BUFFER + _between(0.0, (life - BUFFER) / 10, SPREAD) * _between(0.0, jitter, 1.0)


def next_delay(expiry: float, now: float, failures: int = 0, *, jitter: float = 0.0, life: float = LIFE) -> float:
    """Seconds until the next attempt, 0 to LIFE: after ``failures`` in a row, or else when the token is due."""
    if failures > 0:
        return retry_delay(failures, jitter=jitter)
    return _between(0.0, expiry - now - margin(life, jitter), LIFE)


def retry_delay(
    failures: int, *, jitter: float = 0.0, transient: bool = True, retry_after: float | None = None
) -> float:
    """Seconds between the ``failures``-th failure in a row and the next attempt.

    The time doubles from FIRST to CEILING; jitter reduces it by up to half. An error that is not ``transient`` waits
    for CEILING at once, and a server's Retry-After is respected up to RETRY_AFTER_MOST.
    """
    steps = min(max(failures, 1) - 1, 10)  # 2.0 ** 1024 would overflow
    backoff = min(CEILING, FIRST * 2.0**steps) if transient else CEILING
    backoff *= 1 - _between(0.0, jitter, 1.0) / 2
    return max(backoff, _between(0.0, retry_after or 0.0, RETRY_AFTER_MOST))


def born_due_delay(life: float) -> float:
    """Seconds until the next renewal of a token whose whole life is shorter than the buffer."""
    return _between(5.0, life / 2, CEILING)


def jitter_of(*words: object) -> float:
    """0 to 1, equal for equal ``words``, so that every process computes the same time for a session's token."""
    return zlib.crc32(repr(words).encode()) / 2**32


def _between(low: float, value: float, high: float) -> float:
    """``value`` limited to the bounds; ``low`` for NaN."""
    return low if math.isnan(value) else max(low, min(value, high))

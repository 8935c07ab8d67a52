"""When a token is renewed: pure arithmetic of times in seconds, no clock and no randomness of its own.

A token is due when :data:`BUFFER` seconds of its life are left, a little more for some, so that sessions that
were started together do not all ask at once. What a token has left is judged by two clocks, and the worse
answer counts: by the wall clock, which goes on while the machine sleeps but may be set, and by the time since
boot, which nobody sets.
"""

from __future__ import annotations

import math
import zlib
from typing import NamedTuple

BUFFER = 300.0
SPREAD = 30.0  # most that jitter adds to the buffer
LIFE = 86_400.0  # most that is believed; GitHub's tokens live an hour
FIRST = 2.0  # before the first retry
CEILING = 60.0  # between retries
RETRY_AFTER_MOST = 600.0  # as far as a server's Retry-After is believed


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
    """Seconds that are left of ``term``, the worse of both clocks' answers, at most LIFE; 0 when it is over.

    ``uptime`` before ``minted_uptime`` means another boot: nothing is known, so nothing is left.
    """
    since = uptime - term.minted_uptime
    if not since >= 0:
        return 0.0
    return _between(0.0, min(term.expires_at - now, term.life - since), LIFE)


def margin(life: float, jitter: float) -> float:
    """Seconds before its expiry at which a token is due; ``jitter`` is 0 to 1, and only ever makes it earlier.

    The spread is a tenth of the time that a token is used at most, so a short life is not eaten up by it.
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

    Doubles from FIRST to CEILING; jitter takes up to half of it away. What is not ``transient`` waits for
    CEILING at once, and a server that says when to come back is heeded for up to RETRY_AFTER_MOST.
    """
    steps = min(max(failures, 1) - 1, 10)  # 2 ** 1000 failures is no float
    backoff = min(CEILING, FIRST * 2.0**steps) if transient else CEILING
    backoff *= 1 - _between(0.0, jitter, 1.0) / 2
    return max(backoff, _between(0.0, retry_after or 0.0, RETRY_AFTER_MOST))


def born_due_delay(life: float) -> float:
    """Seconds to live with a token that is due the moment it comes, because its whole life is within the buffer."""
    return _between(5.0, life / 2, CEILING)


def jitter_of(*words: object) -> float:
    """0 to 1, the same for the same ``words``: whoever takes a session over agrees on when its token is due."""
    return zlib.crc32(repr(words).encode()) / 2**32


def _between(low: float, value: float, high: float) -> float:
    """``value`` within bounds; ``low`` for what is no number."""
    return low if math.isnan(value) else max(low, min(value, high))

"""How a fast test waits: for an event, with one limit that only a hang reaches.

The only place of `tests/` that sleeps or looks at the time that has passed (tests/test_independence.py), so that no
outcome depends on the machine's speed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import anyio

HANG = 60.0  # seconds; a limit on a hang, on an emulated processor with other load, too

_BETWEEN = 0.002  # seconds from one look to the next


def attempts(what: str = "what must come") -> Iterator[None]:
    """One item for each attempt at something that must succeed within HANG; the caller leaves the loop when it has."""
    end = time.monotonic() + HANG
    while True:
        yield
        assert time.monotonic() < end, f"waited {HANG:.0f} s for {what}"


def wait_until(done: Callable[[], object], what: str = "what must come") -> None:
    """Return when ``done`` is true, which it must become within HANG."""
    for _ in attempts(what):
        if done():
            return
        time.sleep(_BETWEEN)


async def async_wait_until(done: Callable[[], object]) -> None:
    """The same, in an event loop."""
    with anyio.fail_after(HANG):
        while not done():  # noqa: ASYNC110 - what is waited for may happen in another process
            await anyio.sleep(_BETWEEN)


def pause(seconds: float) -> None:
    """Let time pass: between two steps of a slow peer, or for something that must not happen.

    Only where a longer pause changes no outcome, and a shorter one can at most hide a fault.
    """
    time.sleep(seconds)


class Clock:
    """It goes on while podbot waits with its ``sleep``, and stands while it works: a slow machine changes nothing."""

    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

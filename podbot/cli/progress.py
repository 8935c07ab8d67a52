"""The line of progress: what podbot does, for how long it has, and what comes next."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

LEAST_SECONDS = 1.0  # less than that nobody waits for
PLAIN_PAUSE = 10.0  # seconds between two lines of progress that is no step of its own, where lines are not replaced


def progress_text(message: str, elapsed: float, following: str = "") -> str:
    """``step 3 of 9: Node (41 s; next: claude)``; the time is left out below a second."""
    notes = [duration(elapsed)] if elapsed >= LEAST_SECONDS else []
    notes += [f"next: {following}"] if following else []
    return f"{message} ({'; '.join(notes)})" if notes else message


def duration(seconds: float) -> str:
    """``41 s``, or from a minute on ``2 min 5 s``."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def elapsed_of(fields: Mapping[str, Any], otherwise: float) -> float:
    """The seconds that an event reports."""
    found = fields.get("elapsed")
    return float(found) if isinstance(found, int | float) else otherwise


class LiveLine:
    """A renderable for rich whose time goes on while it is shown. ``began``: on ``clock``, when the time began."""

    def __init__(self, message: str, following: str, began: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._message = message
        self._following = following
        self._began = began
        self._clock = clock

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """One line, cut off at the width of the terminal, because a second one would stay on the screen."""
        from rich.text import Text

        text = progress_text(self._message, self._clock() - self._began, self._following)
        yield Text(text, no_wrap=True, overflow="ellipsis")


class Throttle:
    """Lets progress through that comes several times a second, once in ``pause`` seconds."""

    def __init__(self, pause: float = PLAIN_PAUSE, clock: Callable[[], float] = time.monotonic) -> None:
        self._pause = pause
        self._clock = clock
        self._last = clock()

    def ready(self) -> bool:
        """Whether it is time for the next line; the time before it counts anew."""
        now = self._clock()
        if now - self._last < self._pause:
            return False
        self._last = now
        return True

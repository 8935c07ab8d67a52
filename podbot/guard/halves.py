"""A second process for one half of a scan: a fork of the one that scans, which has one thread and no secrets."""

from __future__ import annotations

import marshal
import os

from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_SECONDS = 30  # for the second process, which may have lost the first


class Half:
    """Runs ``work`` in the second process. Its result is of built-in types, which ``marshal`` writes."""

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
        """None where it ended early. Waits for its end."""
        with open(self._read, "rb") as file:
            data = file.read()
        os.waitpid(self._process, 0)
        try:
            found = marshal.loads(data)  # noqa: S302 - of this very program
        except (EOFError, TypeError, ValueError):
            return None
        return found if isinstance(found, dict) else None


def alarm(seconds: int) -> None:
    """End this process after that time; 0: do not."""
    import _signal  # type: ignore[import-not-found] # of which `signal` makes enumerations

    _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
    _signal.alarm(seconds)


def can_share() -> bool:
    """Whether there is a processor for a second process."""
    return hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1

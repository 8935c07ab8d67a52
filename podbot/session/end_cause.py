"""Why a sandbox is ending, as far as its session's directory shows it. Asked when a command in it broke off."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from podbot.errors import PodbotError
from podbot.execution.command_control import Witness
from podbot.session.flags import LEAVING, ORPHANED, STOPPING, is_live
from podbot.session.record import SessionRecord, observed, read_record

_PAUSE, _LOOKS = 0.05, 4  # seconds before each further look, and how many


class OwnersWitness(Witness):
    """For a command in the session in directory ``path``, which this process runs: only another one can tell it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def now(self) -> str:
        """See Witness."""
        return "stopped" if is_live(self._path, STOPPING) else ""


class SessionWitness(Witness):
    """For a command in the session in directory ``path``, which another podbot may run. ``sleep`` waits between looks.

    ``for_one``: for one command, which began while the directory existed. That it is gone when that breaks off says
    that the session has ended; of a later look it would say only that its podbot has cleaned up.
    """

    def __init__(self, path: str, *, for_one: bool = False, sleep: Callable[[float], object] = time.sleep) -> None:
        self._path, self._for_one, self._sleep = path, for_one, sleep

    def now(self) -> str:
        """See Witness."""
        if self._for_one and not os.path.isdir(self._path):
            return "session_ended"
        return end_cause(self._path)

    def later(self) -> str:
        """See Witness. A podbot that was killed has its locks a little longer."""
        for _ in range(_LOOKS):
            self._sleep(_PAUSE)
            if cause := end_cause(self._path):
                return cause
        return ""


def end_cause(path: str, *, read: Callable[[str], SessionRecord | None] = read_record) -> str:
    """A word of ``SandboxDied.CAUSES`` for the session in directory ``path``, or empty: from outside, or not known.

    ``read``: reads the record.
    """
    if is_live(path, STOPPING):
        return "stopped"
    if is_live(path, ORPHANED):
        return "owner_killed"
    if is_live(path, LEAVING):
        return "session_ended"
    live = is_live(path)  # before the record is read: a podbot removes that at its end, and then releases its lock
    with contextlib.suppress(PodbotError):
        record = read(path)
        # And after that: `podbot start` takes the lock, and then writes the record.
        if record is not None and observed(record.state, live=live or is_live(path)) == "orphaned":
            return "owner_killed"
    return ""

"""Why a sandbox is ending, as far as its session's directory shows it. Asked when a command in it broke off."""

from __future__ import annotations

import contextlib

from podbot.errors import PodbotError
from podbot.session.flags import LEAVING, ORPHANED, STOPPING, is_live
from podbot.session.record import observed, read_record


def end_cause(path: str) -> str:
    """A word of ``SandboxDied.CAUSES`` for the session in directory ``path``, or empty: from outside, or not known."""
    if is_live(path, STOPPING):
        return "stopped"
    if is_live(path, ORPHANED):
        return "owner_killed"
    if is_live(path, LEAVING):
        return "session_ended"
    with contextlib.suppress(PodbotError):
        record = read_record(path)
        if record is not None and observed(record.state, live=is_live(path)) == "orphaned":
            return "owner_killed"
    return ""

"""What earlier updates said of the calls that an agent asks about later, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

MOST_CALLS = 1024  # of which something is remembered; some 3 KB for each at most
MOST_PATHS = 8  # of one call
LONGEST = 200  # characters of an id, a path or a title


class Call(NamedTuple):
    """``paths``: those outside the workspace that an update of it named. ``title``: the last one; empty for none."""

    paths: tuple[str, ...] = ()
    title: str = ""


class EarlierCalls:
    """By the id of a call (a tool call of ACP, an item of Codex), for one agent.

    An id that is cut can be another call's as well: what is remembered of both is then said of both.
    """

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}
        self._has_forgotten = False

    def note(self, call: str, paths: Iterable[str], title: str = "") -> None:
        """An update of ``call`` named ``paths`` outside the workspace, and its title when there is one."""
        before = self._calls.pop(call[:LONGEST], Call())
        known = dict.fromkeys(before.paths)
        for path in paths:
            if len(known) == MOST_PATHS:
                break
            known[path[:LONGEST]] = None
        found = Call(tuple(known), title[:LONGEST] or before.title)
        if found != Call():
            self._calls[call[:LONGEST]] = found
        if len(self._calls) > MOST_CALLS:
            self._has_forgotten |= bool(self._calls.pop(next(iter(self._calls))).paths)

    def of(self, call: str) -> Call | None:
        """What is known of ``call``; None when it may have named paths, and that is forgotten."""
        return self._calls.get(call[:LONGEST], None if self._has_forgotten else Call())

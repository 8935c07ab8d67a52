"""Remembers what updates reported about calls that an agent asks about later, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

MOST_CALLS = 1024  # calls that are remembered; each takes 5 KB at most, and 16 KB in other scripts than Latin
MOST_PATHS = 8  # of one call, and as many hidden ones
LONGEST = 200  # characters of an id, a path or a title
_ALONE = r"[\ud800-\udfff]|\\ud[89a-f][0-9a-f]{2}"  # a lone surrogate, or its escape


class Call(NamedTuple):
    """``paths``: paths outside the workspace that its updates named. ``title``: its last title, or empty.

    ``hidden``: such paths that only the agent's own spelling of a question named, and not its escapes. They are kept
    apart because a question has them in a marker of their own.
    """

    paths: tuple[str, ...] = ()
    title: str = ""
    hidden: tuple[str, ...] = ()


class EarlierCalls:
    """Calls of one agent by their id (a tool call of ACP, an item of Codex).

    Two long ids may be equal after they are cut; then each call is reported with what is remembered of both.
    """

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}
        self._has_forgotten = False

    def note(self, call: str, paths: Iterable[str], title: str = "", hidden: Iterable[str] = ()) -> None:
        """An update of ``call`` named ``paths`` outside the workspace, and its title when there is one."""
        call = _key(call)
        before = self._calls.pop(call, Call())
        found = Call(_with(before.paths, paths), title[:LONGEST] or before.title, _with(before.hidden, hidden))
        if found != Call():
            self._calls[call] = found
        if len(self._calls) > MOST_CALLS:
            oldest = self._calls.pop(next(iter(self._calls)))
            self._has_forgotten |= bool(oldest.paths or oldest.hidden)

    def of(self, call: str) -> Call | None:
        """What is known of ``call``; None when it may have named paths, and that is forgotten."""
        return self._calls.get(_key(call), None if self._has_forgotten else Call())

    def each_of(self, calls: Iterable[str]) -> list[Call | None]:
        """See :meth:`of`; what is known of several is there once.

        Ids that are equal in the characters that are kept are one call, and a question can have very many of them.
        """
        return list(dict.fromkeys(map(self.of, calls)))


def first_of(paths: Iterable[str]) -> list[str]:
    """As many of ``paths`` as a call can need: a question may have many, and note them for each of many calls."""
    return list(islice(dict.fromkeys(path[:LONGEST] for path in paths), 2 * MOST_PATHS))


def _with(known: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    """``known`` and the first of ``more``, each once."""
    found = dict.fromkeys(known)
    for path in more:
        if len(found) == MOST_PATHS:
            break
        found[path[:LONGEST]] = None
    return tuple(found)


def _key(call: str) -> str:
    """The id as an update and a question both have it, whose hidden characters are shown as escapes.

    Lone surrogates as the character that readers put in their place: Go, Swift and whatever writes UTF-8.
    """
    from podbot.protocol.escapes import visible  # here: it takes 4 ms, and many sessions have no questions

    return visible(re.sub(_ALONE, "\ufffd", call[: 6 * LONGEST]))[:LONGEST]

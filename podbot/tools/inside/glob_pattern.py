"""Patterns for paths: ``*``, ``?`` and ``[...]`` within a segment, ``**`` for any number of directories.

A pattern is matched segment by segment during a walk. What is left to match is a set of places in the pattern, so each
directory is visited once, and only when something below it can match.
"""

from __future__ import annotations

import re

from podbot.tools import worker_frames as limits
from podbot.tools.inside.refusals import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Matches = Callable[[str], Any] | None  # None: any number of directories

_SPECIAL = re.compile(r"[*?\[]")


class Glob:
    """A pattern, relative to where the walk begins. A final ``**`` matches every file. Raises Refused.

    ``names``: without a ``/``, it is for names in any directory.
    """

    def __init__(self, pattern: Any, *, names: bool = False) -> None:
        if not isinstance(pattern, str) or "\0" in pattern or len(pattern) > limits.PATTERN_CHARS:
            raise Refused("bad_pattern", reason="it is too long or has a NUL")
        words = [word for word in pattern.split("/") if word not in ("", ".")]
        if not words or ".." in words:
            raise Refused("bad_pattern", reason="it is empty or has a segment ..")
        parts: list[Matches] = [None] if names and "/" not in pattern else []
        for word in words:
            if word != "**":
                parts.append(_matcher(word))
            elif not parts or parts[-1] is not None:
                parts.append(None)
        self._parts = parts
        self._known: dict[frozenset[int], frozenset[int]] = {}
        self.start = self._closed({0})

    def _closed(self, places: set[int]) -> frozenset[int]:
        """``places``, and those behind a ``**``, which also matches no directory."""
        asked = frozenset(places)
        found = self._known.get(asked)
        if found is None:
            behind = {at + 1 for at in asked if self._parts[at] is None and at + 1 < len(self._parts)}
            found = self._known[asked] = asked | behind
        return found

    def below(self, places: frozenset[int], name: str) -> frozenset[int]:
        """The places for what is in the directory ``name``; empty when nothing in it can match."""
        found = set()
        for at in places:
            part = self._parts[at]
            if part is None:
                found.add(at)
            elif at + 1 < len(self._parts) and part(name):
                found.add(at + 1)
        return self._closed(found) if found else frozenset()

    def matches(self, places: frozenset[int], name: str) -> bool:
        """Whether the file ``name`` matches."""
        last = len(self._parts) - 1
        if last not in places:
            return False
        part = self._parts[last]
        return part is None or bool(part(name))


def _matcher(word: str) -> Callable[[str], Any]:
    if not _SPECIAL.search(word):
        return word.__eq__
    try:
        return re.compile(_translated(word), re.DOTALL).match
    except (re.error, OverflowError, RecursionError) as error:
        raise Refused("bad_pattern", reason=str(error)) from None


def _translated(word: str) -> str:
    """The regular expression. It tries no ``*`` again once what follows it up to the next ``*`` has matched.

    A match at the earliest place is as good as any later one, and without this `*a*a*a*a*a*b` takes exponential time.
    Python has atomic groups since 3.11; a group in a lookahead is one.
    """
    first, *rest = _runs(word)
    text = first
    for number, run in enumerate(rest[:-1]):
        text += f"(?=(?P<g{number}>.*?{run}))(?P=g{number})"
    return text + (".*" + rest[-1] if rest else "") + r"\Z"


def _runs(word: str) -> list[str]:
    """The expressions between the stars; several stars in a row are one."""
    runs, at = [""], 0
    while at < len(word):
        char = word[at]
        at += 1
        if char == "*":
            if at < 2 or word[at - 2] != "*":
                runs.append("")
        elif char == "?":
            runs[-1] += "."
        elif char == "[":
            expression, at = _class(word, at)
            runs[-1] += expression
        else:
            runs[-1] += re.escape(char)
    return runs


def _class(word: str, at: int) -> tuple[str, int]:
    """A ``[...]`` whose content begins at ``at``, and where it ends; a ``[`` without an end is a character."""
    negated = word[at : at + 1] == "!"
    begin = at + negated
    end = word.find("]", begin + 1)  # a first "]" belongs to the class
    if end < 0:
        return r"\[", at
    members = re.sub(r"([\\\[\]&~|^])", r"\\\1", word[begin:end])
    return f"[{'^' if negated else ''}{members}]", end + 1

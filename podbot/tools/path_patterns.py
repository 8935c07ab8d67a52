"""Patterns for paths: ``*``, ``?`` and ``[...]`` within a segment, ``**`` for any number of directories."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Sequence

from podbot.tools.paths import invalid
from podbot.tools.tool_limits import PATTERN_CHARS

_ANY = None  # in the place of a segment's expression: any number of segments


class PathPattern:
    """A pattern, relative to a directory. ``*`` also matches names with a leading dot; a final ``**`` every file below.

    ``field``: the parameter's name, for errors. Raises ToolValidationError for one that is empty, longer than 4,096
    characters, or has NUL or a segment ``..``.
    """

    def __init__(self, text: object, field: str = "pattern") -> None:
        if not isinstance(text, str) or "\0" in text or len(text) > PATTERN_CHARS:
            raise invalid(field, text, f"a pattern is a string of at most {PATTERN_CHARS} characters without NUL")
        words = [word for word in text.split("/") if word not in ("", ".")]
        if not words or ".." in words:
            raise invalid(field, text, "a pattern is not empty and has no segment ..")
        self.one_name = "/" not in text.rstrip("/")
        self._parts = [_ANY if word == "**" else _expression(word, field) for word in words]

    def matches(self, path: Sequence[str]) -> bool:
        """Whether the file at ``path`` matches."""
        places = self._closed({0})
        for name in path[:-1]:
            places = self._closed(self._after(places, name))
        last = len(self._parts) - 1
        return bool(path) and last in places and self._fits(last, path[-1])

    def matches_anywhere(self, path: Sequence[str]) -> bool:
        """As :meth:`matches`; a pattern without a ``/`` also matches the last name alone, in any directory."""
        return self.matches(path[-1:] if self.one_name else path)

    def _fits(self, at: int, name: str) -> bool:
        part = self._parts[at]
        return part is _ANY or part.match(name) is not None

    def _after(self, places: set[int], name: str) -> set[int]:
        found = {at for at in places if self._parts[at] is _ANY}
        found |= {at + 1 for at in places if self._parts[at] is not _ANY and self._fits(at, name)}
        return {at for at in found if at < len(self._parts)}

    def _closed(self, places: set[int]) -> set[int]:
        """``places``, and those behind a ``**``, which also matches no directory."""
        found: set[int] = set()
        left = list(places)
        while left:
            at = left.pop()
            if at not in found:
                found.add(at)
                if self._parts[at] is _ANY and at + 1 < len(self._parts):
                    left.append(at + 1)
        return found


@functools.lru_cache(256)
def _compiled(word: str) -> re.Pattern[str]:
    # Linear: since Python 3.9 the translation tries no star again once what follows it has matched.
    return re.compile(fnmatch.translate(word))


def _expression(word: str, field: str) -> re.Pattern[str]:
    try:
        return _compiled(word)
    except (re.error, OverflowError, RecursionError) as error:
        raise invalid(field, word, f"it is not valid: {error}") from error

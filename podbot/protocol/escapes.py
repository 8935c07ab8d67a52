"""Characters in questions to the user that reorder, hide or overwrite text, as escapes that can be seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]  # there since 3.0, not in the stubs

from podbot.protocol.jsontext import BadFrame, Cut, Part, scan, without
from podbot.visible_text import HIDDEN

MOST_MARKS = 10_000  # escaped characters in one question; each costs about 200 bytes

# Controls below U+0020 occur in JSON only as escapes. The joiners stay wherever they are in a question: its text is
# read, and not compared with a name.
_IS_HIDDEN = re.compile(f"[\\0-\\x08\\x0b-\\x1f\\ud800-\\udfff{HIDDEN}]")
# One match skips all harmless text up to a character that may be hidden, so harmless text needs no Python loop.
_CANDIDATE = re.compile(
    rf'(?:[^\\{HIDDEN}]++|\\["\\/nt]|\\r\\n)*+'
    r"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."
    rf"|[{HIDDEN}])?"
)


def visible(text: str) -> str:
    """``text`` with its hidden characters as escapes."""
    return _IS_HIDDEN.sub(lambda found: _escape(found[0]), text)


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def escape_cuts(text: str, part: Part) -> list[Cut]:
    """One cut for each hidden character, to make it visible. In JSON they occur only inside strings."""
    return list(_escapes(text, part.place, part.end))


def _escapes(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    count = 0
    for found in _CANDIDATE.finditer(text, start, end):
        spelled = found[1]
        if not spelled:
            continue
        char = scanstring(f'{spelled}"', 0, True)[0] if spelled[0] == "\\" else spelled
        if _IS_HIDDEN.fullmatch(char):
            count += 1
            if count > MOST_MARKS:
                raise BadFrame("too_many_marks")
            yield found.start(1), found.end(1), "\\" + _escape(char)


def cuts_as_shown(text: str, part: Part, marks: Callable[[str, Part], list[Cut]]) -> list[Cut]:
    r"""Make hidden characters visible, and then what ``marks`` finds in the result.

    The client gets the names and texts with escapes, so these are the ones to mark: a mark on the value of
    ``"title\u0000"`` is read by nobody. ``marks``: gets the text and the part in it, which are the given ones when
    nothing is hidden.
    """
    begin = part.place
    found = _escapes(text, begin, part.end)
    escapes: list[Cut] = [(start - begin, end - begin, escape) for start, end, escape in found]
    if not escapes:
        return marks(text, part)
    shown = without(text[begin : part.end], escapes)
    value, end = scan(shown, 0)
    return [(begin, part.end, without(shown, marks(shown, Part(0, end, 0, value))))]

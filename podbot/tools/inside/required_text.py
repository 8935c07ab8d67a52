"""Texts of which a match of a regular expression must have one. Most files and lines have none, and finding is fast."""

from __future__ import annotations

import re

from podbot.tools.inside.required_run import MARK, required_run

try:
    from re import _parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10 and before
    import sre_parse as _parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_LINE_END = ord("\n")  # no line has it
_MOST = 8  # texts, for each of which a file is read once
_LOWER = bytes(range(256)).lower()


class RequiredText:
    """``texts``: every match has one of these, in bytes translated by ``table`` if there is one; none if none is known.

    The text may stand for a run of characters, see ``required_run``.
    The parser is not a documented part of Python: whatever it raises or returns, a search needs no such text.
    """

    def __init__(self, pattern: str) -> None:
        self.texts: list[bytes] = []
        self.table: bytes | None = None
        try:
            parsed = _parser.parse(pattern)
            any_case = bool(parsed.state.flags & re.IGNORECASE)
            found = _one_of(parsed, any_case=any_case)
            run = None if 0 < len(found) <= _MOST else required_run(parsed, any_case=any_case)
        except Exception:  # noqa: BLE001 - see above
            return
        if run is not None:
            self.table, self.texts = run[0], [MARK * run[1]]
        elif len(found) <= _MOST:
            self.table = _LOWER if any_case else None
            self.texts = [text.encode("utf-8", "surrogatepass") for text in found]


def _one_of(items: Iterable[Any], *, any_case: bool) -> list[str]:
    """Of the parts of a sequence, all of which must match, the texts of the part that says most."""
    runs, known = [""], []
    for operation, argument in items:
        name = repr(operation)
        if name == "LITERAL" and argument != _LINE_END and not (any_case and _has_other_cases(chr(argument))):
            runs[-1] += chr(argument).lower() if any_case else chr(argument)
            continue
        runs.append("")
        known.append(_within(name, argument, any_case=any_case))
    known.append([max(runs, key=len)])
    return max((texts for texts in known if texts and all(texts)), key=lambda texts: min(map(len, texts)), default=[])


def _within(name: str, argument: Any, *, any_case: bool) -> list[str]:
    if name == "BRANCH":
        parts = [_one_of(part, any_case=any_case) for part in argument[1]]
        return [text for part in parts for text in part] if all(parts) else []
    if name == "SUBPATTERN" and not argument[1] and not argument[2]:  # with the flags of the whole
        return _one_of(argument[3], any_case=any_case)
    if name in ("MAX_REPEAT", "MIN_REPEAT") and argument[0] > 0:
        return _one_of(argument[2], any_case=any_case)
    return []


def _has_other_cases(char: str) -> bool:
    """Whether a character outside of ASCII may match it when case is ignored, as the Kelvin sign matches k."""
    return not char.isascii() or char in "iksIKS"

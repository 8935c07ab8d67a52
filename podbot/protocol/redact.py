"""Removing secrets from a protocol frame before it is recorded. It finds only what shapes and names reveal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from podbot.config.secret_shapes import HIDDEN, SHAPES

__all__ = ["HIDDEN", "Redactor"]

SHORTEST = 5  # a shorter value would match parts of many ordinary words
SHORTEST_LINE = 8  # of a value with several lines
_END_OF_LINE = re.compile(r"\r{0,2}\n")  # with \r* a text of many \r would take the square of its length
_MARKS = ("-----BEGIN ", "-----END ")  # by them a key is recognized, also one that is no value of the session's
# Members that are hidden completely: editors put keys into an MCP server's environment and headers.
_WHOLE = frozenset({"env", "environment", "headers", "httpheaders"})
_NAMES = re.compile(
    r"(?i)api[-_]?key|access[-_]?key|private[-_]?key|token|secret|passw|passphrase|authorization|credential|cookie|bearer"
)


class Redactor:
    """``values``: the session's own secrets, which are hidden wherever they occur.

    Of one with several lines, each longer line is hidden too; a terminal may have changed the ends of the lines.
    """

    def __init__(self, values: Iterable[str]) -> None:
        texts = {value.strip("\r\n") for value in values}
        found = {tuple(_END_OF_LINE.split(text)) for text in texts if len(text) >= SHORTEST}
        self._several = [lines for lines in found if len(lines) > 1]
        found |= {(line,) for lines in self._several for line in lines if _is_hidden_alone(line)}
        # Longest first, because one secret may be part of another.
        ordered = sorted(found, key=lambda lines: sum(map(len, lines)), reverse=True)
        self.longest = max((sum(map(len, lines)) + 2 * len(lines) for lines in ordered), default=0)  # characters
        patterns = [_END_OF_LINE.pattern.join(map(re.escape, lines)) for lines in ordered]
        self._values = re.compile("|".join(patterns)) if patterns else None

    def frame(self, data: bytes) -> tuple[Any, str] | None:
        """The frame as JSON values, and its redacted text; None if it is not JSON and so cannot be redacted."""
        try:
            value = json.loads(data)
            return value, json.dumps(self._walk(value), ensure_ascii=False, separators=(",", ":"))
        except (ValueError, RecursionError):
            return None

    def text(self, text: str) -> str:
        """``text`` without known secrets and strings that are shaped like one."""
        if self._values is not None:
            text = self._values.sub(HIDDEN, text)
        return SHAPES.sub(HIDDEN, text)

    def begun(self, text: str) -> int:
        """How many lines at the end of ``text``, which ends with a newline, may begin a secret with more lines."""
        ended = _END_OF_LINE.sub("\n", text)
        counts = (
            count
            for lines in self._several
            for count in range(1, len(lines))
            if ended.endswith(f"{lines[count - 1]}\n") and ended.endswith("\n".join((*lines[:count], "")))
        )
        return max(counts, default=0)

    def spared(self, text: str, cut: int) -> int:
        """A place near ``cut`` to divide ``text`` at, so that no secret is divided: behind one, or before it.

        It is ``cut`` if there is none, or if one that has not ended yet begins ``text``.
        """
        for pattern in (self._values, SHAPES):
            for found in pattern.finditer(text) if pattern is not None else ():
                if found.start() < cut < found.end():
                    cut = found.end() if found.end() < len(text) else found.start() or cut
        return cut

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._walk(item) for item in value]
        if isinstance(value, dict):
            named = isinstance(value.get("name"), str) and _NAMES.search(value["name"]) is not None
            return {self.text(k): self._member(k, v, hide=named and k == "value") for k, v in value.items()}
        return value

    def _member(self, key: str, value: Any, *, hide: bool) -> Any:
        if hide or key.lower() in _WHOLE or _NAMES.search(key):
            # Numbers stay, such as "totalTokens": no secret is a number here.
            return value if value is None or isinstance(value, (bool, int, float)) else HIDDEN
        return self._walk(value)


def _is_hidden_alone(line: str) -> bool:
    return len(line) >= SHORTEST_LINE and not line.startswith(_MARKS)

"""Searches the lines of one file with a regular expression of Python's."""

from __future__ import annotations

import heapq
import re

from podbot.tools.inside.required_text import RequiredText

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 1 << 16  # characters that are split into lines at once
_PROBE = 4096  # bytes from a required text on, in which it is counted
_OFTEN = 25  # times that it is in them, above which searching all lines is faster


class LineSearch:
    """``pattern`` is matched anywhere in a line, without its end. Raises re.error and others that compiling raises."""

    def __init__(self, pattern: str) -> None:
        self._search = re.compile(pattern).search
        self._required = RequiredText(pattern)

    def lines(self, data: bytes) -> Iterator[tuple[int, str]]:
        """The numbers, from 1, and the texts of the lines that match. A binary file has none."""
        required = self._required
        where = data if required.table is None else data.translate(required.table)
        begins = [(text, where.find(text)) for text in required.texts]
        found = [(text, at) for text, at in begins if at >= 0]
        if (begins and not found) or b"\0" in data:
            return iter(())
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return iter(())
        if sum(where.count(text, at, at + _PROBE) for text, at in found) > _OFTEN:
            found = []
        return self._some(data, where, found) if found else self._every(text)

    def span(self, line: str) -> list[int]:
        """Where in a line that matches the match begins and ends."""
        found = self._search(line)
        return list(found.span()) if found else [0, 0]

    def _some(self, data: bytes, where: bytes, found: list[tuple[bytes, int]]) -> Iterator[tuple[int, str]]:
        """Of the lines that have a required text, those that match. ``where``: ``data``, in which the texts are.

        ``found``: the texts, and where each is found first.
        """
        number, counted, last = 1, 0, -1
        each = [_lines_with(text, at, data, where) for text, at in found]
        for begin, end in heapq.merge(*each) if len(each) > 1 else each[0]:
            if begin == last:
                continue
            last = begin
            line = _without_return(data[begin:end].decode("utf-8"))
            if self._search(line):
                number += data.count(b"\n", counted, begin)
                counted = begin
                yield number, line

    def _every(self, text: str) -> Iterator[tuple[int, str]]:
        number, at, search = 1, 0, self._search
        while at < len(text):
            end = text.find("\n", at + _PIECE) + 1 or len(text)
            lines = text[at:end].split("\n")
            if lines[-1] == "":  # what follows the last line's end
                del lines[-1]
            for line in lines:
                if search(_without_return(line)):
                    yield number, _without_return(line)
                number += 1
            at = end


def _lines_with(text: bytes, at: int, data: bytes, where: bytes) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends that has the text, which is found first at ``at``."""
    while at >= 0:
        begin = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        yield begin, end
        at = where.find(text, end)


def _without_return(line: str) -> str:
    return line[:-1] if line.endswith("\r") else line  # noqa: FURB188 - removesuffix came with Python 3.9

"""The answers of a files worker as values. A worker is hostile: each answer is bounded and validated.

A worker that is valid by these rules can still lie about the files that it serves, as the sandbox can change them.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from podbot.tools import worker_frames as limits
from podbot.tools.filesystem_results import FoundLine, SearchResult
from podbot.tools.results import (
    DeleteEntry,
    Entry,
    FileInfo,
    GlobMatch,
    GlobResult,
    GrepMatch,
    GrepResult,
    Kind,
    Listing,
    Piece,
    ReadFileResult,
    WriteFile,
)

_KINDS = get_args(Kind)
_NUMBER = (1 << 53) - 1
_LAST_SECOND = 253402300799  # of the year 9999, the last that a datetime has
_MICROSECONDS = 1_000_000
_REASON = 200  # characters of a text that says why a pattern is not valid
_STRUCTURE = 256 << 10  # bytes of an answer's JSON outside of its texts; those of the largest answer are 120 kB
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_FACTS = 3  # kind, size, version
_IDENTITY = 64  # bytes of a text that says which file it is
_STAMP = 128  # bytes of a text that says which content it has
_TARGET = 4095  # bytes of what a link leads to, the most that Linux takes


class Lie(ValueError):
    """An answer is not valid. The text of this error contains nothing of it."""


def message_from(data: bytes) -> dict[str, Any]:
    """A JSON object. Raises Lie.

    An empty list takes 3 bytes of JSON and 64 of memory. So what is not in texts is bounded before it is parsed.
    """
    if len(data) > _STRUCTURE and len(_STRINGS.sub(b"", data)) > _STRUCTURE:
        raise Lie("it has more values than any answer")
    try:
        found = json.loads(data.decode())  # of bytes it would also take UTF-16, which the expression above misreads
    except (ValueError, RecursionError):
        raise Lie("it is not JSON") from None
    if not isinstance(found, dict):
        raise Lie("it is not a JSON object")
    return found


def joined(path: Sequence[str]) -> str:
    """A path as results show it."""
    return "/".join(path)


def info_from(answer: Mapping[str, Any], path: str) -> FileInfo:
    """The answer to ``stat``. Raises Lie."""
    return _info(path, answer.get("facts"))


def listing_from(answer: Mapping[str, Any], path: str, after: str = "") -> Listing:
    """The answer to ``ls``. Raises Lie."""
    rows = _rows(answer, "entries", 1 + _FACTS)
    names = [_name(row[0]) for row in rows]
    _check_order([*([after] if after else []), *names])
    if after and after in names:
        raise Lie("a list has what was to be left out")
    prefix = f"{path}/" if path else ""
    entries = tuple(_info(prefix + name, row[1:]) for name, row in zip(names, rows, strict=True))
    return Listing(path, entries, _flag(answer, "truncated"))


def lines_from(answer: Mapping[str, Any], path: str, offset: int, limit: int) -> ReadFileResult:
    """The answer to ``read``. Raises Lie."""
    content, count = _text(answer.get("content"), limits.TEXT_BYTES), _number(answer.get("lines"))
    total = _number(answer.get("total"))
    if count > limit or count != max(0, min(total - offset, limit)):
        raise Lie("the number of lines is not what was asked for")
    if content.count("\n") != max(0, count - 1) or (content and not count):
        raise Lie("the content does not have the lines that it is said to have")
    return ReadFileResult(path, content, offset, count, total)


def created_from(answer: Mapping[str, Any], path: str) -> WriteFile:
    """The answer to ``write``. Raises Lie."""
    info = _file(path, answer.get("facts"))
    return WriteFile(path, "create", info.size_bytes, info.version, info.updated_at, 0)


def edited_from(answer: Mapping[str, Any], path: str) -> WriteFile:
    """The answer to ``edit``. Raises Lie."""
    info, count = _file(path, answer.get("facts")), _number(answer.get("count"))
    if not count:
        raise Lie("an edit that changed nothing")
    return WriteFile(path, "edit", info.size_bytes, info.version, info.updated_at, count)


def removed_from(answer: Mapping[str, Any], path: str) -> DeleteEntry:
    """The answer to ``rm``. Raises Lie."""
    return DeleteEntry(path, _kind(answer.get("kind")), _number(answer.get("count")))


def glob_from(answer: Mapping[str, Any], path: str, after: str = "") -> GlobResult:
    """The answer to ``glob``. Raises Lie."""
    rows = _rows(answer, "matches", _FACTS)
    parts = [_relative(row[0]) for row in rows]
    last = tuple(after.split("/")) if after else ()
    _check_order([last, *parts])
    if last in parts:
        raise Lie("a list has what was to be left out")
    found = []
    for words, row in zip(parts, rows, strict=True):
        info = _info(_below(path, words), ["file", *row[1:]])
        found.append(GlobMatch(info.path, info.size_bytes, info.version, info.updated_at))
    return GlobResult(tuple(found), _flag(answer, "truncated"), _number(answer.get("skipped")))


def grep_from(answer: Mapping[str, Any], path: str) -> GrepResult:
    """The answer to ``grep``. An empty relative path means ``path`` itself, a file. Raises Lie."""
    rows = _rows(answer, "matches", 3)
    places = [(_relative(row[0]) if row[0] != "" else (), _number(row[1])) for row in rows]
    _check_order(places)
    found = []
    for (words, number), row in zip(places, rows, strict=True):
        line = _text(row[2], limits.TEXT_BYTES)
        if not number or "\n" in line or (not words and not path):
            raise Lie("a match is not a line of a file")
        found.append(GrepMatch(_below(path, words), number, line))
    return GrepResult(tuple(found), _flag(answer, "truncated"), _number(answer.get("skipped")))


def search_from(answer: Mapping[str, Any], path: str, most: int) -> SearchResult:
    """The answer to ``grep`` with ``spans``. Raises Lie."""
    rows = _rows(answer, "matches", 5)
    plain = grep_from({**answer, "matches": [row[:3] for row in rows]}, path)
    found = []
    for match, row in zip(plain.matches, rows, strict=True):
        begin, end = _number(row[3]), _number(row[4])
        if not begin <= end <= len(match.line):
            raise Lie("a match is not in its line")
        found.append(FoundLine(match.path, match.line_number, match.line, begin, end))
    if len(found) > most:
        raise Lie("there are more matches than were asked for")
    return SearchResult(tuple(found), plain.truncated, plain.skipped)


def piece_from(answer: Mapping[str, Any], path: str, limit: int) -> Piece:
    """The answer to ``piece``. Raises Lie."""
    info, file = _file(path, answer.get("facts")), _text(answer.get("file"), _IDENTITY)
    data = _bytes(answer.get("data"))
    if len(data) > min(limit, limits.PIECE_BYTES):
        raise Lie("it has more bytes than were asked for")
    return Piece(data, info, file, _text(answer.get("stamp"), _STAMP))


def inventory_from(answer: Mapping[str, Any], after: str) -> tuple[tuple[Entry, ...], bool]:
    """The answer to ``inventory``: entries, and whether there are more. Raises Lie."""
    found = []
    for path, kind, size, bits, stamp, target in _rows(answer, "entries", 6):
        words = _relative(path)
        if len(words) > limits.SEGMENTS or any(len(word.encode()) > limits.NAME_BYTES for word in words):
            raise Lie("a path is too long")
        entry = Entry(words, _kind(kind), _number(size), _number(bits), _text(stamp, _STAMP), _bytes(target))
        if len(entry.target) > _TARGET or b"\0" in entry.target:
            raise Lie("no link leads there")
        if entry.bits > 0o777 or bool(entry.target) != (entry.kind == "link"):
            raise Lie("an entry is not valid")
        found.append(entry)
    places = [tuple(after.split("/")) if after else (), *(entry.path for entry in found)]
    if any(later <= earlier for earlier, later in itertools.pairwise(places)):
        raise Lie("a list is not in order")
    return tuple(found), _flag(answer, "truncated")


def linked_from(answer: Mapping[str, Any], path: str) -> FileInfo:
    """The answer to ``link``. Raises Lie."""
    return _info(path, answer.get("facts"))


def placed_from(answer: Mapping[str, Any], path: str) -> FileInfo:
    """The answer to ``put`` and ``commit``. Raises Lie."""
    return _file(path, answer.get("facts"))


def made_from(answer: Mapping[str, Any], path: str) -> FileInfo:
    """The answer to ``mkdir`` and ``mode``. Raises Lie."""
    info = _info(path, answer.get("facts"))
    if info.kind != "directory":
        raise Lie("what was made is not a directory")
    return info


def staged_from(answer: Mapping[str, Any], size: int) -> int:
    """The answer to ``stage``. Raises Lie."""
    if _number(answer.get("size")) != size:
        raise Lie("what was staged has another size")
    return size


def _below(path: str, words: Sequence[str]) -> str:
    return "/".join((path, *words) if path else words)


def _check_order(found: Sequence[Any]) -> None:
    """Names that are not UTF-8 may be shown alike, so that two in a row may be equal."""
    if any(later < earlier for earlier, later in itertools.pairwise(found)):
        raise Lie("a list is not in order")


def _rows(answer: Mapping[str, Any], name: str, width: int) -> list[list[Any]]:
    rows = answer.get(name)
    if not isinstance(rows, list) or len(rows) > limits.ENTRIES:
        raise Lie("a list is missing or too long")
    if not all(isinstance(row, list) and len(row) == width for row in rows):
        raise Lie("a list has an entry that is not valid")
    return rows


def _info(path: str, facts: object) -> FileInfo:
    if not isinstance(facts, list) or len(facts) != _FACTS:
        raise Lie("the facts of an entry are not valid")
    version = _number(facts[2])
    seconds, rest = divmod(version, _MICROSECONDS)
    changed = datetime.fromtimestamp(min(seconds, _LAST_SECOND), UTC).replace(microsecond=rest)
    return FileInfo(path, _kind(facts[0]), _number(facts[1]), version, changed)


def _file(path: str, facts: object) -> FileInfo:
    info = _info(path, facts)
    if info.kind != "file":
        raise Lie("what was written is not a file")
    return info


def _kind(value: object) -> Kind:
    for kind in _KINDS:
        if value == kind:
            return kind  # type: ignore[no-any-return]
    raise Lie("a kind is not valid")


def _relative(value: object) -> tuple[str, ...]:
    text = _text(value, limits.TEXT_BYTES)
    return tuple(_name(word) for word in text.split("/"))


def _name(value: object) -> str:
    text = _text(value, limits.NAME_BYTES * 4)  # \xNN for a byte
    if text in ("", ".", "..") or "/" in text or "\0" in text:
        raise Lie("a name is not valid")
    return text


def _text(value: object, limit: int) -> str:
    if not isinstance(value, str):
        raise Lie("a text is not valid")
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise Lie("a text is not UTF-8") from None
    if size > limit:
        raise Lie("a text is too long")
    return value


def _bytes(value: object) -> bytes:
    text = _text(value, 2 * limits.PIECE_BYTES)
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # binascii.Error is one, too
        raise Lie("the data is not base64") from None


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _NUMBER:
        raise Lie("a number is not valid")
    return value


def _flag(answer: Mapping[str, Any], name: str) -> bool:
    value = answer.get(name)
    if not isinstance(value, bool):
        raise Lie("a flag is not valid")
    return value


def printable(value: object) -> str:
    """A short text of the worker's for an error message: printable ASCII only. Empty if there is none."""
    text = value if isinstance(value, str) else ""
    return "".join(char for char in text[:_REASON] if " " <= char <= "~")

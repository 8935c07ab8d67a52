"""Parses git's configuration as git does, without git. Pure, and bounded by the size of its input.

The grammar is that of git's ``config.c`` (2.39): a test compares both on generated input. Git stops with "bad config"
at an error and obeys nothing, so the entries before the error are returned with ``whole`` false.
"""

from __future__ import annotations

from podbot.guard.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEY = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
_ALPHA = _KEY - frozenset(b"0123456789-")
_SPACE = frozenset(b" \t\n\r")
_ESCAPES = {ord("t"): b"\t", ord("b"): b"\b", ord("n"): b"\n", ord("\\"): b"\\", ord('"'): b'"'}
_END = ord("\n")
_KEYS = 16 << 20  # characters of all keys


class Config(NamedTuple):
    """``entries``: (key, value) in the order of the file, with keys as git prints them; None for a missing value."""

    entries: tuple[tuple[str, str | None], ...]
    whole: bool


class _Bad(Exception):
    pass


class _Input:
    """Returns bytes one at a time; after the last one, a line break, and then ``over`` is true."""

    def __init__(self, data: bytes) -> None:
        self.data = data.replace(b"\r\n", b"\n")
        self.at = 0
        self.over = False

    def next(self) -> int:
        if self.at >= len(self.data):
            self.over = True
            return _END
        self.at += 1
        return self.data[self.at - 1]


def parse(data: bytes) -> Config:
    """The entries of one file; includes are not followed but returned as entries.

    A section's name is a part of each of its keys: those of a file of 256 KiB could take gigabytes without a limit.
    """
    entries: list[tuple[str, str | None]] = []
    room = _KEYS
    try:
        for entry in _entries(data, longest=len(data) + 1):
            room -= len(entry[0])
            if room < 0:
                return Config(tuple(entries), whole=False)
            entries.append(entry)
    except _Bad:
        return Config(tuple(entries), whole=False)
    return Config(tuple(entries), whole=True)


def entries_of(data: bytes, longest: int) -> Iterator[tuple[str, str | None]]:
    """Those of :func:`parse` whose key has at most ``longest`` bytes, one by one.

    A section's name is a part of each of its keys, so that the keys of a file can be far larger than the file.
    """
    try:
        yield from _entries(data, longest)
    except _Bad:
        return


def _entries(data: bytes, longest: int) -> Iterator[tuple[str, str | None]]:
    """Raises _Bad."""
    source = _Input(data.removeprefix(b"\xef\xbb\xbf"))
    stem = b""
    while True:
        char = source.next()
        if char == _END and source.over:
            return
        if char in _SPACE:
            continue
        if char in b"#;":
            _skip_line(source)
        elif char == ord("["):
            stem = _section(source) + b"."
        elif char in _ALPHA:
            name, value = _variable(source, char)
            if len(stem) + len(name) <= longest:
                yield _text(stem + name), None if value is None else _text(value)
        else:
            raise _Bad


def _text(data: bytes) -> str:
    """Git's strings end at a NUL byte."""
    return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _skip_line(source: _Input) -> None:
    while source.next() != _END:
        pass


def _section(source: _Input) -> bytes:
    name = bytearray()
    while True:
        char = source.next()
        if source.over:
            raise _Bad
        if char == ord("]"):
            if not name:  # git refuses [], although it accepts a subsection alone
                raise _Bad
            return bytes(name)
        if char in _SPACE:
            return bytes(name) + b"." + _subsection(source, char)
        if char not in _KEY and char != ord("."):
            raise _Bad
        name += bytes((char,)).lower()


def _subsection(source: _Input, char: int) -> bytes:
    while char in _SPACE:
        if char == _END:
            raise _Bad
        char = source.next()
    if char != ord('"'):
        raise _Bad
    name = bytearray()
    while (char := source.next()) != ord('"'):
        if char == ord("\\"):
            char = source.next()
        if char == _END:
            raise _Bad
        name.append(char)
    if source.next() != ord("]"):
        raise _Bad
    return bytes(name)


def _variable(source: _Input, char: int) -> tuple[bytes, bytes | None]:
    name = bytearray()
    while char in _KEY and not source.over:
        name += bytes((char,)).lower()
        char = source.next()
    while char in b" \t":
        char = source.next()
    if char == _END:
        return bytes(name), None
    if char != ord("="):
        raise _Bad
    return bytes(name), _value(source)


def _value(source: _Input) -> bytes:
    value = bytearray()
    quoted = False
    spaces = bytearray()
    while True:
        char = source.next()
        if char == _END:
            if quoted:
                raise _Bad
            return bytes(value)
        if char in _SPACE and not quoted:
            if value:
                spaces.append(char)
            continue
        if not quoted and char in b"#;":
            _skip_line(source)
            return bytes(value)
        value += spaces
        spaces.clear()
        if char == ord("\\"):
            value += _escaped(source)
        elif char == ord('"'):
            quoted = not quoted
        else:
            value.append(char)


def _escaped(source: _Input) -> bytes:
    char = source.next()
    if char == _END:  # the line continues
        return b""
    if char not in _ESCAPES:
        raise _Bad
    return _ESCAPES[char]

"""A strict reader of tar streams from a hostile program. Sans-IO: bytes in, entries out, in bounded memory.

Python's ``tarfile`` reads a header's extensions whole, whatever size they claim, and follows what it finds. This reader
knows ustar, the long names of GNU and of POSIX, and nothing else; all numbers are checked against limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["file", "directory", "symlink", "hardlink", "other"]
Parts = tuple[bytes, ...]

BLOCK = 512
_LONGEST = 1 << 16  # bytes of a name, and of the extensions of one entry; the kernel's paths have at most 4096
_DEEPEST = 256
_KINDS: dict[bytes, Kind] = {
    b"0": "file", b"\0": "file", b"7": "file", b"1": "hardlink", b"2": "symlink", b"5": "directory",
    b"3": "other", b"4": "other", b"6": "other",
}  # fmt: skip


class BadArchive(ValueError):
    """The stream is no tar archive that podbot reads, or it names a path outside; the message says which."""


class Entry(NamedTuple):
    """One entry. ``path``: its parts, none for the top. ``link``: the target of a symbolic link, as it is.

    ``size``: bytes of content that follow, 0 unless it is a file. ``linked``: the parts of a hard link's target.
    """

    kind: Kind
    path: Parts
    size: int = 0
    mode: int = 0
    mtime: int = 0
    link: bytes = b""
    linked: Parts = ()


class TarReader:
    """:meth:`feed` it; then :attr:`ended` must be true."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._content = 0  # bytes of the present entry's content that are still to come
        self._skip = 0  # bytes to ignore: padding, and content of what is no file
        self._extension: tuple[bytes, int] | None = None  # type and size of an extension that is being read
        self._path: bytes | None = None
        self._link: bytes | None = None
        self._size: int | None = None
        self.ended = False

    def feed(self, data: bytes) -> Iterator[Entry | bytes]:
        """The entries that begin in ``data``, and pieces of the content of the last file. Raises BadArchive."""
        self._buffer += data
        while self._buffer and not self.ended:
            if self._content:
                piece = bytes(self._buffer[: self._content])
                self._content -= len(piece)
                del self._buffer[: len(piece)]
                yield piece
            elif self._skip:
                skipped = min(self._skip, len(self._buffer))
                self._skip -= skipped
                del self._buffer[:skipped]
            elif self._extension is not None:
                if len(self._buffer) < self._extension[1]:
                    return
                self._extend(*self._extension)
            else:
                if len(self._buffer) < BLOCK:
                    return
                entry = self._header(bytes(self._buffer[:BLOCK]))
                del self._buffer[:BLOCK]
                if entry is not None:
                    yield entry
        if self.ended:
            self._buffer.clear()

    def _header(self, block: bytes) -> Entry | None:
        if not any(block):
            self.ended = True
            return None
        _check_sum(block)
        flag, size = block[156:157], _number(block[124:136])
        if flag in b"LKxg" and flag:
            if size > _LONGEST:
                raise BadArchive("an extension of an entry is too long")
            self._extension = (flag, size)
            return None
        return self._entry(block, flag, size)

    def _entry(self, block: bytes, flag: bytes, size: int) -> Entry:
        if flag not in _KINDS:
            raise BadArchive(f"it has an entry of an unknown kind, {flag!r}")
        kind = _KINDS[flag]
        name = self._path if self._path is not None else _name(block)
        link = self._link if self._link is not None else _text(block[157:257])
        size = self._size if self._size is not None else size
        self._path = self._link = self._size = None
        path = parts(name)
        if kind == "file" and name.endswith(b"/"):  # how the oldest archives write directories
            kind = "directory"
        content = size if kind == "file" else 0
        self._content = content
        if kind in ("file", "other"):  # for the others the size says something else, or nothing
            self._skip = -size % BLOCK + (size - content)
        linked = parts(link) if kind == "hardlink" else ()
        mode, mtime = _number(block[100:108]) & 0o7777, _number(block[136:148])
        return Entry(kind, path, content, mode, mtime, link if kind == "symlink" else b"", linked)

    def _extend(self, flag: bytes, size: int) -> None:
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._extension, self._skip = None, -size % BLOCK
        if flag == b"L":
            self._path = _text(data)
        elif flag == b"K":
            self._link = _text(data)
        elif flag == b"x":
            for key, value in _records(data):
                if key == b"path":
                    self._path = value
                elif key == b"linkpath":
                    self._link = value
                elif key == b"size":
                    self._size = _decimal(value)
                elif key.startswith(b"GNU.sparse."):
                    raise BadArchive("it has sparse files in a form that podbot does not read")


def parts(name: bytes) -> Parts:
    """The parts of a relative path without empty ones and dots. Raises BadArchive for a path outside."""
    if name.startswith(b"/"):
        raise BadArchive("it has an entry with an absolute path")
    if b"\0" in name:
        raise BadArchive("it has an entry with a NUL in its name")
    found = tuple(part for part in name.split(b"/") if part not in (b"", b"."))
    if b".." in found:
        raise BadArchive("it has an entry whose path leads out")
    if len(found) > _DEEPEST:
        raise BadArchive(f"it has an entry in more than {_DEEPEST} directories")
    return found


def _name(block: bytes) -> bytes:
    name = _text(block[0:100])
    prefix = _text(block[345:500]) if block[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _number(field: bytes) -> int:
    """An octal number, or one of GNU's in binary."""
    if field[0] == 0x80:
        number = int.from_bytes(field[1:], "big")
        if number >> 63:
            raise BadArchive("it has a number that is too large")
        return number
    if field[0] == 0xFF:  # negative, as times before 1970 can be
        return 0
    text = _text(field).strip()
    if not text:
        return 0
    if not all(48 <= byte <= 55 for byte in text):
        raise BadArchive("it has a number that is not octal")
    return int(text, 8)


def _check_sum(block: bytes) -> None:
    expected = _number(block[148:156])
    if sum(block) - sum(block[148:156]) + 8 * 32 != expected:
        raise BadArchive("the check sum of an entry is wrong")


def _records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The records ``LENGTH KEY=VALUE\\n`` of a POSIX extension."""
    at = 0
    while at < len(data):
        blank = data.find(b" ", at, at + 8)
        length = _decimal(data[at:blank]) if blank > at else 0
        record = data[blank + 1 : at + length]
        key, equals, value = record[:-1].partition(b"=")
        if length < blank - at + 3 or at + length > len(data) or record[-1:] != b"\n" or not equals:
            raise BadArchive("an extension of an entry is malformed")
        yield key, value
        at += length


def _decimal(text: bytes) -> int:
    if not (0 < len(text) <= 19 and text.isdigit()):
        raise BadArchive("it has a number that is not decimal")
    number = int(text)
    if number >> 63:
        raise BadArchive("it has a number that is too large")
    return number

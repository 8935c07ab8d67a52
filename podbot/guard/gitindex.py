"""Parses git's index for entries that git does not compare with their files. Pure, in time linear in its input.

Each entry has flags: with "assume unchanged" or "skip worktree", `git status` and `git diff` do not look at the file.
The format is that of ``gitformat-index(5)``, versions 2 to 4; a test compares the result with real git's. What git
might read in another way than podbot is :class:`Unreadable`. For 50,000 entries this takes 4 ms, and 10 ms in version
4: the loop over all of them only looks at the byte with the flags, and names are read if some have them.
"""

from __future__ import annotations

from podbot.guard.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_ASSUMED, _EXTENDED, _SKIPPED = 0x80, 0x40, 0x40  # in the first byte of the flags, and of the further ones
_LENGTH = 0x0FFF  # the bits with a name's length; all of them set: the name is longer, and ends at a NUL byte
_FIXED = 40  # bytes of an entry in front of its object's id: times, inode, mode, size
_LONGEST = 4096  # bytes of a name, as in the kernel
_NAMES = 64 << 20  # bytes of all names that are returned
_PARTS = 1024  # blocks and extensions; git writes about ten of each
_KNOWN = frozenset((b"link", b"sdir"))  # git refuses others that begin with a small letter


class Unreadable(ValueError):
    """It is not an index, or not one that podbot and git surely read in the same way."""


class Index(NamedTuple):
    """``assumed``, ``skipped``: names of entries with a flag; one that only replaces another index's is its id.

    ``shared``: the id of the other index that this one is the difference to, in hexadecimal digits; or empty.
    ``extensions``: the names of its further parts.
    """

    assumed: list[bytes]
    skipped: list[bytes]
    shared: str
    extensions: frozenset[bytes]


def parse(data: bytes, width: int) -> Index:
    """``width``: bytes of an object's id, 20 or 32. Raises Unreadable."""
    try:
        return _parse(data, width)
    except (IndexError, ValueError) as exc:
        raise Unreadable(str(exc)) from exc


def _parse(data: bytes, width: int) -> Index:
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if data[:4] != b"DIRC" or not 2 <= version <= 4 or len(data) < 12 + width:
        raise Unreadable
    limit = len(data) - width  # a checksum, which git does not check
    walk = _walk_compressed if version == 4 else _walk
    flagged: list[int] = []
    at = 12
    blocks, end = _blocks(data, width, limit, count)
    for begin, some in blocks:
        if begin != at or some > limit:  # git reads blocks at the same time, from where the table says
            raise Unreadable
        at = walk(data, at, some, width, flagged)
    if at > limit or end not in (at, 0):
        raise Unreadable
    extensions = list(_extensions(data, at, limit))
    names = [name for name, _, _ in extensions]
    shared = [data[begin:end] for name, begin, end in extensions if name == b"link"]
    if any(name[:1].islower() and name not in _KNOWN for name in names) or len(shared) > 1:
        raise Unreadable
    base = shared[0][:width] if shared else b""
    if shared and len(base) < width:
        raise Unreadable
    found = _named(data, flagged, count, width, compressed=version == 4) if flagged else []
    assumed = [name for name, is_assumed, _ in found if is_assumed]
    skipped = [name for name, _, is_skipped in found if is_skipped]
    return Index(assumed, skipped, base.hex() if any(base) else "", frozenset(names))


def _walk(data: bytes, at: int, count: int, width: int, flagged: list[int]) -> int:
    """Where the entries from ``at`` end. Appends where those with flags begin."""
    before = _FIXED + width
    step = tuple((before + 2 + length + 8) & ~7 for length in range(256))
    at += before
    for _ in range(count):
        high = data[at]
        if not high:  # a name of less than 256 bytes and no flags: nearly all entries
            at += step[data[at + 1]]
            continue
        length = (high << 8 | data[at + 1]) & _LENGTH
        head = before + (4 if high & _EXTENDED else 2)
        if high & _ASSUMED or (high & _EXTENDED and data[at + 2] & _SKIPPED):
            flagged.append(at - before)
        if length == _LENGTH:
            name = at - before + head
            length = data.index(0, name) - name
        at += (head + length + 8) & ~7
    return at - before


def _walk_compressed(data: bytes, at: int, count: int, width: int, flagged: list[int]) -> int:
    """As :func:`_walk`, for version 4: a name is what differs from the one before, and ends at a NUL byte."""
    before = _FIXED + width
    find = data.index
    at += before
    for _ in range(count):
        high = data[at]
        if high & _ASSUMED or (high & _EXTENDED and data[at + 2] & _SKIPPED):
            flagged.append(at - before)
        at += 4 if high & _EXTENDED else 2
        while data[at] & 0x80:  # a number: how many bytes of the name before are dropped
            at += 1
        at = find(0, at + 1) + 1 + before
    return at - before


def _blocks(data: bytes, width: int, limit: int, count: int) -> tuple[list[tuple[int, int]], int]:
    """Where git begins to read, and how many entries from there on; where the entries end, or 0 if that is not said."""
    at = limit - (8 + 4 + width)
    if at < 12 or data[at : at + 8] != b"EOIE" + (4 + width).to_bytes(4, "big"):
        return [(12, count)], 0
    begin = int.from_bytes(data[at + 8 : at + 12], "big")
    for name, first, last in _extensions(data, begin, limit):
        if name == b"IEOT":
            numbers = [int.from_bytes(data[one : one + 4], "big") for one in range(first + 4, last, 4)]
            blocks = list(zip(numbers[::2], numbers[1::2], strict=True))
            if len(blocks) > _PARTS or sum(some for _, some in blocks) != count:
                raise Unreadable
            return blocks, begin
    return [(12, count)], begin


def _extensions(data: bytes, at: int, limit: int) -> Iterator[tuple[bytes, int, int]]:
    """The name of each further part, and where its content begins and ends."""
    for _ in range(_PARTS):
        if at + 8 > limit:
            return
        end = at + 8 + int.from_bytes(data[at + 4 : at + 8], "big")
        if end > limit:
            raise Unreadable
        yield data[at : at + 4], at + 8, end
        at = end
    raise Unreadable


def _named(
    data: bytes, flagged: list[int], count: int, width: int, *, compressed: bool
) -> list[tuple[bytes, bool, bool]]:
    """The entries that begin at ``flagged``: name, whether they are assumed unchanged, whether they are skipped."""
    before = _FIXED + width
    names = _names_compressed(data, set(flagged), count, width) if compressed else None
    found: list[tuple[bytes, bool, bool]] = []
    room = _NAMES
    for at in flagged:
        high, low = data[at + before], data[at + before + 1]
        extended = bool(high & _EXTENDED)
        if names is not None:
            name = next(names)
        else:
            begin = at + before + (4 if extended else 2)
            length = (high << 8 | low) & _LENGTH
            name = data[begin : data.index(0, begin) if length == _LENGTH else begin + length]
        room -= len(name)
        if len(name) > _LONGEST or room < 0:
            raise Unreadable
        name = name or b"object " + data[at + _FIXED : at + _FIXED + 6].hex().encode()
        found.append((name, bool(high & _ASSUMED), extended and bool(data[at + before + 2] & _SKIPPED)))
    return found


def _names_compressed(data: bytes, flagged: set[int], count: int, width: int) -> Iterator[bytes]:
    """The names of the entries that begin at ``flagged``. In linear time: each byte is added and dropped once."""
    before = _FIXED + width
    name = bytearray()
    at = 12
    for _ in range(count):
        begin = at
        at += before + (4 if data[at + before] & _EXTENDED else 2)
        drop = data[at] & 0x7F
        while data[at] & 0x80:
            at += 1
            drop = ((drop + 1) << 7) | (data[at] & 0x7F)
            if drop > len(data):
                raise Unreadable
        end = data.index(0, at + 1)
        if drop > len(name):
            raise Unreadable
        del name[len(name) - drop :]
        name += data[at + 1 : end]
        at = end + 1
        if begin in flagged:
            yield bytes(name[: _LONGEST + 1])

"""A change of one file as text that ``git apply`` reads. Pure.

Contents that are not UTF-8, have a NUL or, old and new together, more than ``LINES`` lines are in git's binary form, so
that a patch is always text.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Callable
from typing import NamedTuple

from podbot.suites.line_diff import hunks, lines_of

LINES = 100_000  # of both sides together: what is compared
_NOTHING = b"0" * 40
_LITERAL = 52  # bytes on a line of a binary patch
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+/@%,=~")
_ESCAPES = {0x22: b'\\"', 0x5C: b"\\\\", 0x09: b"\\t", 0x0A: b"\\n", 0x0D: b"\\r"}
# Characters that a Mac's file system ignores in names: with them, too, a name is .git there.
_IGNORED = frozenset("\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u206a\u206b\u206c\u206d\u206e\u206f\ufeff")

_END = re.compile("[:\ufffd\ufffe\uffff]")


class Content(NamedTuple):
    """A file on one side of a change."""

    data: bytes
    executable: bool


def patch_of(path: bytes, old: Content | None, new: Content | None, check: Callable[[], None]) -> bytes:
    """The patch of a file; None: it does not exist on that side. Empty if nothing differs.

    ``path``: relative. ``check``: called often; what it raises ends the work.
    """
    before, after = (b"" if side is None else side.data for side in (old, new))
    head = _modes(old, new)
    if before != after or old is None or new is None:
        kept = b" " + _mode(new) if new and old and new.executable == old.executable else b""
        head += b"index %s..%s%s\n" % (_blob(old), _blob(new), kept)
    if not head:
        return b""
    names = _quoted(b"a/" + path), _quoted(b"b/" + path)
    head = b"diff --git %s %s\n" % names + head
    if before == after:
        return head
    if not _is_text(before, after):
        return head + _binary(after)
    sides = names[0] if old else b"/dev/null", names[1] if new else b"/dev/null"
    return head + b"--- %s\n+++ %s\n" % sides + b"".join(hunks(lines_of(before), lines_of(after), check))


def mode_patch(path: bytes, *, executable: bool) -> bytes:
    """The patch of a file of which only the executable bit changes."""
    return patch_of(path, Content(b"", not executable), Content(b"", executable), lambda: None)


def is_refused(name: bytes) -> bool:
    """Whether git applies no patch with such a name in it: ``.git``, and what some file system takes for it."""
    text = "".join(letter for letter in name.decode("utf-8", "replace") if letter not in _IGNORED).lower()
    return any(_is_git(part) for part in text.split("\\"))


def _is_git(text: str) -> bool:
    """As NTFS reads a name: without dots and spaces at its end, and without a stream, which follows a colon.

    For git a name also ends before what it does not take for UTF-8.
    """
    name = _END.split(text, maxsplit=1)[0].rstrip(". ")
    return name in (".git", "git~1")


def _modes(old: Content | None, new: Content | None) -> bytes:
    if old and new:
        changed = old.executable != new.executable
        return b"old mode %s\nnew mode %s\n" % (_mode(old), _mode(new)) if changed else b""
    return b"new file mode %s\n" % _mode(new) if new else b"deleted file mode %s\n" % _mode(old)


def _mode(side: Content | None) -> bytes:
    return b"100755" if side and side.executable else b"100644"


def _blob(side: Content | None) -> bytes:
    """git's name of the content. A binary patch needs it, and `git apply --3way` finds the old content by it."""
    if side is None:
        return _NOTHING
    head = b"blob %d\0" % len(side.data)
    return hashlib.sha1(head + side.data, usedforsecurity=False).hexdigest().encode()


def _is_text(*sides: bytes) -> bool:
    if any(b"\0" in data for data in sides) or sum(data.count(b"\n") for data in sides) > LINES:
        return False
    try:
        for data in sides:
            data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _binary(data: bytes) -> bytes:
    """Only forward: `git apply --reverse` needs the old content, which would double it."""
    packed = zlib.compress(data)
    lines = [b"GIT binary patch\nliteral %d\n" % len(data)]
    for begin in range(0, len(packed), _LITERAL):
        some = packed[begin : begin + _LITERAL]
        length = len(some) + (ord("A") - 1 if len(some) <= 26 else ord("a") - 27)
        lines.append(b"%c%s\n" % (length, base64.b85encode(some, pad=True)))
    return b"".join(lines) + b"\n"


def _quoted(path: bytes) -> bytes:
    """As git writes a path with ``core.quotePath``; also in quotes if it has spaces."""
    if all(byte in _PLAIN for byte in path):
        return path
    return b'"%s"' % b"".join(_escaped(byte) for byte in path)


def _escaped(byte: int) -> bytes:
    plain = 0x20 <= byte < 0x7F
    return _ESCAPES.get(byte) or (b"%c" % byte if plain else b"\\%03o" % byte)

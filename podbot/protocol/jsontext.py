"""The JSON gate: strict text in, the places of members and elements out.

Values are checked and built by the standard library's C scanner; only the outermost level is walked here,
because a verdict needs what a dict does not keep: duplicates, spellings and places. Numbers stay text, so
no digit count is too long. The scanner alone cannot be trusted with memory or stack, so depth and number of
values are bounded first.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from json.decoder import scanstring  # type: ignore[attr-defined]  # there since 3.0, not in the stubs
from typing import Any, NamedTuple

# Readers stop at 128 to 1000. Not lower: text is full of brackets, and counting those outside strings is slow.
MAX_DEPTH = 512
MAX_STRUCTURE = 400_000  # brackets, commas and colons outside strings: the scanner builds up to 80 bytes for each
MAX_MESSAGES = 1024  # in one batch
FEW = 16  # brackets that are looked for one by one
PROTOTYPE = "__proto__"  # in JavaScript a copy of the object has what is in here
ALIKE = 64  # characters of a name whose fold_key is remembered; longer than any that is looked for
LONGEST_NAME = 4096

_NO_STRUCTURE = bytes(set(range(256)) - set(b"{}[],:"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_LETTERS = re.compile(r"[\W_]+")  # what str.isalnum is false for
# In valid JSON: a string (with a group: a member's name), or where an object or list begins or ends.
TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"([ \t\n\r]*+:)?|[][{}]')
_WHITESPACE = re.compile(r"[ \t\n\r]*+")
# The beginning of a member whose name needs no decoding; the long way below gives the same, 1 us later.
_PLAIN_KEY = re.compile(r'[ \t\n\r]*+"([A-Za-z_]++)"[ \t\n\r]*+:[ \t\n\r]*+')


class BadFrame(Exception):
    """``reason``: a key of ``refusal.REASONS``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Cut = tuple[int, int] | tuple[int, int, str]  # a range of a frame's text, and what stands there instead


class Part(NamedTuple):
    """An element of an array, or a member of an object (then ``key`` is its name, decoded).

    ``text[start:end]`` is all of it, ``text[place:end]`` its value, which is ``value``.
    """

    start: int
    end: int
    place: int
    value: Any
    key: str = ""


make = tuple.__new__  # half the time of Part(...), which is a function of Python's


def _no_constant(word: str) -> Any:
    raise ValueError(word)  # NaN and Infinity are Python's, not JSON's


# (text, at) -> (value, end). Raises StopIteration at the end of the text, ValueError for what is not JSON.
scan = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_constant).scan_once  # type: ignore[attr-defined]


def strict_text(frame: bytes) -> str:
    """The text of a frame that is fit to be parsed. Raises BadFrame."""
    try:
        text = frame.decode()
    except UnicodeDecodeError:
        raise BadFrame("not_utf8") from None
    cr = text.find("\r")
    if cr >= 0 and not (cr == len(text) - 2 and text[-1] == "\n"):
        raise BadFrame("carriage_return")
    # What is counted here is never too low: most frames need no closer look.
    if len(frame) > MAX_STRUCTURE or (_many(frame) and frame.count(b"{") + frame.count(b"[") > MAX_DEPTH):
        _check_size(frame)
    return text


def _many(frame: bytes) -> bool:
    """Whether there are more than a few brackets. ``find`` is memchr; one ``count`` takes 1.4 us for 4 KiB."""
    left = FEW
    for bracket in b"{[":
        at = frame.find(bracket)
        while at >= 0:
            left -= 1
            if not left:
                return True
            at = frame.find(bracket, at + 1)
    return False


def _check_size(frame: bytes) -> None:
    """Refuse what would cost the scanner too much memory or stack. Linear, and no step of Python for each byte."""
    plain = frame.replace(b"\\\\", b"").replace(b'\\"', b"")  # the quotes that are left begin and end strings
    # In valid JSON a structural character stands between any two strings.
    if plain.count(b'"') > 2 * MAX_STRUCTURE + 2:
        raise BadFrame("too_many_values")
    bare = b"".join(plain.split(b'"')[::2]).translate(None, _NO_STRUCTURE)
    if len(bare) > MAX_STRUCTURE:
        raise BadFrame("too_many_values")
    brackets = bare.translate(_ONE_KIND, b",:")
    for _ in range(MAX_DEPTH + 1):  # each round takes one level away; which kind closes which is the parser's to see
        if not brackets:
            return
        brackets = brackets.replace(b"[]", b"")
    raise BadFrame("too_deep")


def skip(text: str, at: int) -> int:
    """The first place from ``at`` on that is no white space."""
    if text[at] in " \t\n\r":
        return _WHITESPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
    return at


def members(text: str, at: int) -> tuple[list[Part], int]:
    """The members of the object that begins at ``at``, and where it ends.

    Raises ValueError, IndexError or StopIteration when it is not valid JSON.
    """
    found: list[Part] = []
    at += 1
    while True:
        plain = _PLAIN_KEY.match(text, at)
        if plain is not None:
            start, key, place = plain.start(1) - 1, plain[1], plain.end()
        else:
            start = skip(text, at)
            if text[start] == "}" and not found:
                return found, start + 1
            _expect(text, start, '"')
            key, at = scanstring(text, start + 1, True)
            at = skip(text, at)
            _expect(text, at, ":")
            place = skip(text, at + 1)
        value, end = scan(text, place)
        found.append(make(Part, (start, end, place, value, key)))
        at = end if text[end] > " " else skip(text, end)
        if text[at] == "}":
            return found, at + 1
        if text[at] != ",":
            raise ValueError(text[at])
        at += 1


def elements(text: str, at: int, most: int = MAX_STRUCTURE) -> tuple[list[Part], int]:
    """The elements of the array that begins at ``at``, and where it ends; raises like ``members``.

    Raises BadFrame "bad_batch" at more than ``most`` elements.
    """
    found: list[Part] = []
    at = skip(text, at + 1)
    if text[at] == "]":
        return found, at + 1
    while True:
        value, end = scan(text, at)
        found.append(Part(at, end, at, value))
        if len(found) > most:
            raise BadFrame("bad_batch")
        at = skip(text, end)
        if text[at] == "]":
            return found, at + 1
        _expect(text, at, ",")
        at = skip(text, at + 1)


def _expect(text: str, at: int, char: str) -> None:
    if text[at] != char:
        raise ValueError(char)


def fold_key(name: str) -> str:
    """What ``name`` may be taken for by a reader that ignores case, width, joins, or what follows a NUL.

    Raises BadFrame for a name that is too long to be anything but an attempt.
    """
    if "\0" in name:
        name = name[: name.index("\0")]
    if len(name) > LONGEST_NAME:
        raise BadFrame("ambiguous_key")
    if len(name) <= ALIKE:
        return _likeness(name)
    found = ""
    for at in range(0, len(name), ALIKE):
        # In slices: a run of combining marks takes the square of its length (33 ms for 4096; a frame has thousands).
        found += _fold(name[at : at + ALIKE])
        if len(found) > ALIKE:
            break
    return found


def _fold(name: str) -> str:
    # Go folds by Unicode (K is k, long s is s), Java takes a dotless i for an I, C ends a name at NUL.
    plain = unicodedata.normalize("NFKC", name.replace("\u0131", "i")).casefold()
    return _NO_LETTERS.sub("", plain)


_likeness = lru_cache(maxsize=1024)(_fold)


def alike(parts: Sequence[Part], name: str) -> Part | None:
    """The one member that is, or is spelled like, ``name``. Raises BadFrame when there are several."""
    wanted = fold_key(name)
    found = []
    for part in parts:
        if part.key == PROTOTYPE:
            raise BadFrame("ambiguous_key")
        if fold_key(part.key) == wanted:
            found.append(part)
    if len(found) > 1:
        raise BadFrame("duplicate_key")
    return found[0] if found else None


def cuts_for(parts: Sequence[Part], drop: set[int]) -> list[Cut]:
    """The ranges whose removal takes the parts numbered ``drop`` out of their list, each with one comma."""
    if not drop:
        return []
    last = max((number for number in range(len(parts)) if number not in drop), default=-1)
    cuts: list[Cut] = [(parts[number].start, parts[number + 1].start) for number in sorted(drop) if number < last]
    if last < len(parts) - 1:
        cuts.append((parts[last].end if last >= 0 else parts[0].start, parts[-1].end))
    return cuts


def without(text: str, cuts: Sequence[Cut]) -> str:
    """``text`` without the ranges, which do not overlap."""
    pieces = []
    at = 0
    for start, end, *instead in sorted(cuts):
        pieces += [text[at:start], *instead]
        at = end
    return "".join([*pieces, text[at:]])

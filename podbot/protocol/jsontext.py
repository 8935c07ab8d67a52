"""Strict JSON parsing that also returns the positions of members and elements.

Values are checked and built by the standard library's C scanner. Only the outermost level is walked here, because a
verdict needs what a dict does not keep: duplicates, spellings and positions. Numbers stay text, so any number of
digits is accepted. The scanner does not limit its memory or stack, so depth and number of values are bounded first.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from json.decoder import scanstring  # type: ignore[attr-defined]  # there since 3.0, not in the stubs
from typing import Any, NamedTuple

# Parsers stop at 128 to 1000. Not lower: text is full of brackets, and counting those outside strings is slow.
MAX_DEPTH = 512
MAX_STRUCTURE = 400_000  # brackets, commas and colons outside strings: the scanner builds up to 80 bytes for each
FRAME_SHARE = 32  # bytes of the frame limit for each of them, if that makes more: up to 2.5 times the limit is built
MAX_MESSAGES = 1024  # in one batch
FEW = 16  # brackets that are counted one by one
PROTOTYPE = "__proto__"  # in JavaScript, a copy of the object gets this member's content
ALIKE = 64  # longest name whose fold_key is cached; longer than any name that is searched for
LONGEST_NAME = 4096

_SLICE = 1 << 20  # bytes that are split at once, because splitting takes up to 50 times their size

_NO_STRUCTURE = bytes(set(range(256)) - set(b"{}[],:"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_LETTERS = re.compile(r"[\W_]+")  # characters for which str.isalnum is false
# In valid JSON: a string (with the group: a member's name), or the start or end of an object or list.
TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"([ \t\n\r]*+:)?|[][{}]')
_WHITESPACE = re.compile(r"[ \t\n\r]*+")
# The beginning of a member whose name needs no decoding; the general code below gives the same, 1 us slower.
_PLAIN_KEY = re.compile(r'[ \t\n\r]*+"([A-Za-z_]++)"[ \t\n\r]*+:[ \t\n\r]*+')


class BadFrame(Exception):
    """``reason``: a key of ``refusal.REASONS``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Cut = tuple[int, int] | tuple[int, int, str]  # a range of a frame's text, and its replacement if any


class Part(NamedTuple):
    """An element of an array, or a member of an object, whose decoded name is ``key``.

    ``text[start:end]`` is the whole part, ``text[place:end]`` its value, which decodes to ``value``.
    """

    start: int
    end: int
    place: int
    value: Any
    key: str = ""


make = tuple.__new__  # takes half the time of Part(...), which is a Python function


def _no_constant(word: str) -> Any:
    raise ValueError(word)  # NaN and Infinity are accepted by Python but are not JSON


# (text, at) -> (value, end). Raises StopIteration at the end of the text, ValueError for invalid JSON.
scan = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_constant).scan_once  # type: ignore[attr-defined]


def most_values(limit: int) -> int:
    """How many structural characters a frame may have where frames may have ``limit`` bytes."""
    return max(MAX_STRUCTURE, limit // FRAME_SHARE)


def strict_text(frame: bytes, most: int = MAX_DEPTH, values: int = MAX_STRUCTURE) -> str:
    """Decode a frame and check that it is safe to parse. Raises BadFrame.

    ``most``: levels; ``values``: structural characters outside strings, MAX_STRUCTURE or more.
    """
    try:
        text = frame.decode()
    except UnicodeDecodeError:
        raise BadFrame("not_utf8") from None
    cr = text.find("\r")
    if cr >= 0 and not (cr == len(text) - 2 and text[-1] == "\n"):
        raise BadFrame("carriage_return")
    # This count is never too low, so most frames need no exact check.
    if len(frame) > MAX_STRUCTURE or (_many(frame) and frame.count(b"{") + frame.count(b"[") > most):
        _check_size(frame, most, values)
    return text


def _many(frame: bytes) -> bool:
    """Whether there are ``FEW`` brackets or more. ``find`` uses memchr; one ``count`` takes 1.4 us for 4 KiB."""
    left = FEW
    for bracket in b"{[":
        at = frame.find(bracket)
        while at >= 0:
            left -= 1
            if not left:
                return True
            at = frame.find(bracket, at + 1)
    return False


def _check_size(frame: bytes, most: int, values: int) -> None:
    """Refuse a frame that would cost the scanner too much memory or stack. Linear, without a Python loop over bytes."""
    plain = frame.replace(b"\\\\", b"").replace(b'\\"', b"")  # the remaining quotes delimit strings
    # In valid JSON there is a structural character between any two strings.
    if plain.count(b'"') > 2 * values + 2:
        raise BadFrame("too_many_values")
    bare = _outside_strings(plain)
    if len(bare) > values:
        raise BadFrame("too_many_values")
    brackets = bare.translate(_ONE_KIND, b",:")
    for _ in range(most + 1):  # each round removes one level; the parser checks that the kinds match
        if not brackets:
            return
        brackets = brackets.replace(b"[]", b"")
    raise BadFrame("too_deep")


def _outside_strings(plain: bytes) -> bytes:
    """The structural characters outside strings, whose ends are the quotes in ``plain``."""
    found = []
    inside = 0
    for at in range(0, len(plain), _SLICE):
        pieces = plain[at : at + _SLICE].split(b'"')
        found.append(b"".join(pieces[inside::2]).translate(None, _NO_STRUCTURE))
        inside ^= (len(pieces) - 1) & 1
    return b"".join(found)


def skip(text: str, at: int) -> int:
    """The first position from ``at`` on that is not white space."""
    if text[at] in " \t\n\r":
        return _WHITESPACE.match(text, at).end()  # type: ignore[union-attr]  # it also matches the empty string
    return at


def members(text: str, at: int) -> tuple[list[Part], int]:
    """The members of the object that begins at ``at``, and its end.

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
    """The elements of the array that begins at ``at``, and its end; raises like ``members``.

    Also raises BadFrame "bad_batch" at more than ``most`` elements.
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
    """``name`` as a lenient parser may read it: without case, width, separators, or anything after a NUL.

    Raises BadFrame for a name so long that it can only be an attack.
    """
    if "\0" in name:
        name = name[: name.index("\0")]
    if len(name) > LONGEST_NAME:
        raise BadFrame("ambiguous_key")
    if len(name) <= ALIKE:
        return _folded(name)
    found = ""
    for at in range(0, len(name), ALIKE):
        # In slices, because a run of combining marks takes quadratic time (33 ms for 4096; a frame may have thousands).
        found += _fold(name[at : at + ALIKE])
        if len(found) > ALIKE:
            break
    return found


def _fold(name: str) -> str:
    # Go folds by Unicode (the Kelvin sign is k, the long s is s), Java reads a dotless i as I, C ends a name at NUL.
    plain = unicodedata.normalize("NFKC", name.replace("\u0131", "i")).casefold()
    return _NO_LETTERS.sub("", plain)


_folded = lru_cache(maxsize=1024)(_fold)


def alike(parts: Sequence[Part], name: str) -> Part | None:
    """The member whose fold key equals that of ``name``, or None. Raises BadFrame when there are several."""
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
    """The ranges to cut so that the parts numbered ``drop`` are removed from their list, each with one comma."""
    if not drop:
        return []
    last = max((number for number in range(len(parts)) if number not in drop), default=-1)
    cuts: list[Cut] = [(parts[number].start, parts[number + 1].start) for number in sorted(drop) if number < last]
    if last < len(parts) - 1:
        cuts.append((parts[last].end if last >= 0 else parts[0].start, parts[-1].end))
    return cuts


def without(text: str, cuts: Sequence[Cut]) -> str:
    """``text`` with the cuts applied. Raises BadFrame when two overlap, because the result could be any text."""
    pieces = []
    at = 0
    for start, end, *instead in sorted(cuts):
        if start < at:
            raise BadFrame("overlapping_changes")
        pieces += [text[at:start], *instead]
        at = end
    return "".join([*pieces, text[at:]])

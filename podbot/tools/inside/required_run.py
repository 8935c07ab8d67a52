"""A run of characters that every match of a regular expression has, such as three digits in a row.

To find it, each byte of a file that can be part of such a character is translated to one mark, and all others to
another; the run is then a text of marks. Bytes of characters outside of ASCII are not told apart.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MARK = b"\1"
_OTHERS = frozenset(range(128, 256))  # bytes of characters outside of ASCII
_ANY = frozenset(range(256))
_DIGITS = frozenset(b"0123456789")
_WORD = frozenset(b"_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") | _DIGITS
_SPACE = frozenset(b" \t\n\r\f\v")
_SPACE_OF_UNICODE = frozenset(b"\x1c\x1d\x1e\x1f")  # spaces unless the expression is for ASCII
_FOLDED = frozenset(b"iksIKS")  # each is another case of a character outside of ASCII
_CATEGORIES = {"DIGIT": _DIGITS, "WORD": _WORD, "SPACE": _SPACE}
_LINE_END = frozenset(b"\n")  # no line has it
_ZERO_WIDTH = ("AT", "ASSERT", "ASSERT_NOT")
_PARTS = 8  # of an expression, that are joined to one run at most
_LOOKED_AT = 200  # parts of an expression, of which the rest is not looked at
_LONGEST = 64  # characters; of a longer run its beginning is enough
_RARE = 0.02  # the part of all places at which a run may begin; a more frequent one does not save work
# The share of each byte in a typical text, roughly. All digits together have 0.03.
_SHARE = [0.0] * 256
for _bytes, _share in (
    (b" ", 0.15), (b"\t\r", 0.02), (b"0123456789", 0.03), (b"abcdefghijklmnopqrstuvwxyz", 0.6),
    (b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 0.04), (b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", 0.15), (bytes(_OTHERS), 0.01),
):  # fmt: skip
    for _byte in _bytes:
        _SHARE[_byte] = _share / len(_bytes)


def required_run(items: Iterable[Any], *, any_case: bool) -> tuple[bytes, int] | None:
    """The rarest run of an expression, given its parsed parts: the table that translates bytes, and the run's length.

    None if no rare run is known. May raise any exception for parts that it does not know.
    """
    best: tuple[float, frozenset[int], int] | None = None
    for parts in _sequences(items, any_case=any_case):
        for begin in range(min(len(parts), _LOOKED_AT)):
            allowed: frozenset[int] = frozenset()
            length = 0
            for some, count in parts[begin : begin + _PARTS]:
                allowed, length = allowed | some, length + count
                often = sum(_SHARE[byte] for byte in allowed) ** length
                if best is None or often < best[0]:
                    best = often, allowed, length
    if best is None or best[0] > _RARE:
        return None
    return bytes(MARK[0] if byte in best[1] - _LINE_END else 0 for byte in range(256)), min(best[2], _LONGEST)


def _sequences(items: Iterable[Any], *, any_case: bool) -> list[list[tuple[frozenset[int], int]]]:
    """Parts that follow each other in every match: the bytes that each may have, and how many characters at least."""
    found: list[list[tuple[frozenset[int], int]]] = [[]]
    for operation, argument in items:
        name = repr(operation)
        if name in _ZERO_WIDTH:
            continue
        if name == "SUBPATTERN" and not argument[1] and not argument[2]:  # with the flags of the whole
            first, *others = _sequences(argument[3], any_case=any_case)
            found[-1] += first
            found += others
            continue
        count = 1
        if name in ("MAX_REPEAT", "MIN_REPEAT") and len(argument[2]) == 1:
            count = argument[0]
            operation, argument = argument[2][0]  # noqa: PLW2901
            name = repr(operation)
        allowed = _allowed(name, argument, any_case=any_case)
        if allowed is None or count == 0:
            found.append([])
        else:
            found[-1].append((allowed, count))
    return found


def _allowed(name: str, argument: Any, *, any_case: bool) -> frozenset[int] | None:
    """The bytes of all characters that a part for one character matches, and maybe more; None for any other part."""
    if name in ("ANY", "NOT_LITERAL"):
        return _ANY
    if name == "LITERAL":
        return _in_any_case(_between(argument, argument), any_case=any_case)
    if name != "IN":
        return None
    negated = repr(argument[0][0]) == "NEGATE"
    if negated:
        return _ANY - _never(argument[1:])
    allowed: frozenset[int] = frozenset()
    for operation, value in argument:
        allowed |= _of_set(repr(operation), value)
    return _in_any_case(allowed, any_case=any_case)


def _of_set(name: str, value: Any) -> frozenset[int]:
    if name == "LITERAL":
        return _between(value, value)
    if name == "RANGE":
        return _between(*value)
    kind = repr(value).replace("CATEGORY_", "")
    if kind in _CATEGORIES:
        return _CATEGORIES[kind] | _OTHERS | (_SPACE_OF_UNICODE if kind == "SPACE" else frozenset())
    return _ANY - _CATEGORIES[kind.replace("NOT_", "")]


def _never(members: Iterable[Any]) -> frozenset[int]:
    """The bytes that a set which excludes ``members`` never has."""
    never: frozenset[int] = frozenset()
    for operation, value in members:
        name = repr(operation)
        if name == "CATEGORY":
            never |= _CATEGORIES.get(repr(value).replace("CATEGORY_", ""), frozenset())
        else:
            never |= _of_set(name, value) - _OTHERS
    return never


def _between(low: int, high: int) -> frozenset[int]:
    ascii_ones = frozenset(range(low, min(high, 127) + 1))
    return ascii_ones | _OTHERS if high > 127 else ascii_ones


def _in_any_case(allowed: frozenset[int], *, any_case: bool) -> frozenset[int]:
    if not any_case:
        return allowed
    if allowed & (_FOLDED | _OTHERS):
        allowed |= _FOLDED | _OTHERS
    return allowed | frozenset(bytes(byte for byte in allowed if byte < 128).swapcase())

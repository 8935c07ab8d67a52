"""Hunks are right for every two texts, short where that matters, and never cost more than a few comparisons a line."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podbot.suites.line_diff import EDITS, blocks, hunks, lines_of

HEAD = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")
UNENDED = b"\\ No newline at end of file\n"
FEW = st.lists(st.sampled_from([b"a", b"b", b"c", b"", b"\r", b"-x", b"@@"]), max_size=40).map(b"\n".join)
TEXTS = FEW | st.binary(max_size=60)


def nothing() -> None:
    """A check that never ends the work."""


def diff(old: bytes, new: bytes) -> list[bytes]:
    return list(hunks(lines_of(old), lines_of(new), nothing))


def applied(old: bytes, parts: Sequence[bytes]) -> bytes:
    """What a strict reader of unified diffs makes of it."""
    before, after, at = lines_of(old), list[bytes](), 0
    for part in parts:
        head = HEAD.match(part)
        assert head
        start, count, begin, more = (1 if word is None else int(word) for word in head.groups())
        first = start - 1 if count else start
        after += before[at:first]
        assert (begin - 1 if more else begin) == len(after)
        minus, plus = list[bytes](), list[bytes]()
        sides: tuple[list[bytes], ...] = ()
        for line in lines_of(part[head.end() :]):
            if line == UNENDED:
                for side in sides:
                    side[-1] = side[-1].removesuffix(b"\n")
                continue
            sides = {b" ": (minus, plus), b"-": (minus,), b"+": (plus,)}[line[:1]]
            for side in sides:
                side.append(line[1:])
        assert minus == before[first : first + count]
        assert (len(minus), len(plus)) == (count, more)
        after, at = after + plus, first + count
    return b"".join([*after, *before[at:]])


@given(TEXTS, TEXTS)
@example(b"", b"")
@example(b"a", b"a\n")
@example(b"a\nb", b"a\nb\nc")
@example(b"x\n" * 20, b"x\n" * 21)
def test_the_hunks_make_the_new_text_of_the_old_one(old: bytes, new: bytes) -> None:
    assert applied(old, diff(old, new)) == new
    assert bool(diff(old, new)) is (old != new)


@given(st.integers(0, 300), st.lists(st.tuples(st.integers(0, 300), st.sampled_from("dic")), max_size=12))
def test_edits_of_a_longer_text(size: int, edits: list[tuple[int, str]]) -> None:
    old = [b"%d\n" % (number % 37) for number in range(size)]
    new = list(old)
    for place, kind in edits:
        at = place % (len(new) + 1)
        new[at : at + (kind != "i")] = [] if kind == "d" else [b"new\n"]
    made = diff(b"".join(old), b"".join(new))
    assert applied(b"".join(old), made) == b"".join(new)
    changed = sum(line[:1] in b"+-" for part in made for line in lines_of(part)[1:])
    assert changed <= 2 * len(edits)  # it is a shortest edit


def test_a_hunk_has_three_lines_around_each_change_and_near_changes_share_one() -> None:
    old = [b"%d\n" % number for number in range(40)]
    new = [*old[:10], b"ten\n", *old[11:17], b"seventeen\n", *old[18:30], b"thirty\n", *old[31:]]
    first, second = diff(b"".join(old), b"".join(new))
    assert first.startswith(b"@@ -8,14 +8,14 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n")
    assert second == b"@@ -28,7 +28,7 @@\n 27\n 28\n 29\n-30\n+thirty\n 31\n 32\n 33\n"


def test_the_hunks_are_those_of_git_where_lines_have_no_newline() -> None:
    assert diff(b"a\nb", b"a\nc\n") == [b"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n"]
    assert diff(b"a\nb\n", b"a\nb") == [b"@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n"]
    assert diff(b"x\na", b"y\na") == [b"@@ -1,2 +1,2 @@\n-x\n+y\n a\n\\ No newline at end of file\n"]
    assert diff(b"", b"a") == [b"@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n"]


class Counted(bytes):
    """A line that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return bytes.__eq__(self, other)

    __hash__ = bytes.__hash__


@pytest.mark.parametrize("case", ["same", "two", "reversed", "shifted", "pairs", "halves", "nothing"])
def test_no_text_needs_more_than_a_number_of_comparisons_for_each_line(case: str) -> None:
    size = 3000
    old, new = {
        "same": (["x"] * size, ["x"] * (size - 40)),
        "two": (["x", "y"] * size, ["y", "y", "x"] * size),
        "reversed": (list(map(str, range(size))), list(map(str, reversed(range(size))))),
        "shifted": ([str(number % 7) for number in range(size)], [str(number % 5) for number in range(size)]),
        "pairs": ([str(number // 2) for number in range(size)], [str(number // 2 ^ 1) for number in range(size)]),
        "halves": ([*map(str, range(size)), *["z"] * size], [*["z"] * size, *map(str, range(size))]),
        "nothing": ([f"a{number}" for number in range(size)], [f"b{number}" for number in range(size)]),
    }[case]
    Counted.compared = 0
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1

    blocks([Counted(word.encode()) for word in old], [Counted(word.encode()) for word in new], check)
    assert checks
    assert Counted.compared < 4 * EDITS * (len(old) + len(new))

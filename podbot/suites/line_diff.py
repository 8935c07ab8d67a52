"""Unified hunks between two texts, in a time that no input can make quadratic.

Lines that occur once in both texts are matched first (a patience diff), then what lies between them in the same way,
up to ``LEVELS`` deep. The rest gets a shortest edit of at most ``EDITS`` lines (Myers), and is replaced as a whole if
that does not do. So the hunks are always right, and at worst longer than they need to be.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

LEVELS = 24
EDITS = 48
CONTEXT = 3
_UNENDED = b"\n\\ No newline at end of file\n"

Lines = Sequence[bytes]
Block = tuple[int, int, int]
"""Lines that both texts have: the index of the first in the old one, in the new one, and how many."""
Span = tuple[int, int, int, int]
"""Lines of both texts: begin and end in the old one, begin and end in the new one."""


def lines_of(data: bytes) -> list[bytes]:
    """The lines with their ``\\n``, which only the last one may lack. Nothing else ends a line."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def hunks(old: Lines, new: Lines, check: Callable[[], None]) -> Iterator[bytes]:
    """The hunks of a unified diff. ``check``: called often; what it raises ends the work."""
    group: list[Span] = []
    for change in _changes(old, new, check):
        if group and change[0] - group[-1][1] > 2 * CONTEXT:
            yield _hunk(old, new, group)
            group = []
        group.append(change)
    if group:
        yield _hunk(old, new, group)


def blocks(old: Lines, new: Lines, check: Callable[[], None]) -> list[Block]:
    """What both texts have, in order, without overlaps."""
    found: list[Block] = []
    pending = [(0, len(old), 0, len(new), 0)]
    while pending:
        check()
        low, high, left, right, level = pending.pop()
        same = _prefix(old, new, (low, high, left, right))
        found.append((low, left, same))
        low, left = low + same, left + same
        same = _suffix(old, new, (low, high, left, right))
        high, right = high - same, right - same
        found.append((high, right, same))
        if low == high or left == right:
            continue
        anchors = _anchors(old, new, (low, high, left, right)) if level < LEVELS else []
        if not anchors:
            found += _shortest(old[low:high], new[left:right], low, left, check)
            continue
        for row, column in [*anchors, (high, right)]:
            if low < row and left < column:
                pending.append((low, row, left, column, level + 1))
            if row < high:
                found.append((row, column, 1))
            low, left = row + 1, column + 1
    return sorted(block for block in found if block[2])


def _changes(old: Lines, new: Lines, check: Callable[[], None]) -> Iterator[Span]:
    row = column = 0
    for low, left, count in [*blocks(old, new, check), (len(old), len(new), 0)]:
        if row < low or column < left:
            yield row, low, column, left
        row, column = low + count, left + count


def _hunk(old: Lines, new: Lines, group: Sequence[Span]) -> bytes:
    above, below = min(CONTEXT, group[0][0]), min(CONTEXT, len(old) - group[-1][1])
    row, column = group[0][0] - above, group[0][2] - above
    end, last = group[-1][1] + below, group[-1][3] + below
    parts = [b"@@ -%s +%s @@\n" % (_range(row, end), _range(column, last))]
    for low, high, left, right in group:
        parts += [b" " + line for line in old[row:low]]
        parts += [b"-" + line for line in old[low:high]]
        if high == len(old) and low < high:
            parts[-1] = _ended(parts[-1])
        parts += [b"+" + line for line in new[left:right]]
        row = high
    parts += [b" " + line for line in old[row:end]]
    parts[-1] = _ended(parts[-1])
    return b"".join(parts)


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + _UNENDED


def _range(begin: int, end: int) -> bytes:
    """A range of lines in a hunk's head, where the first line has the number 1."""
    if end - begin == 1:
        return b"%d" % end
    return b"%d,%d" % (begin + (begin < end), end - begin)


def _prefix(old: Lines, new: Lines, span: Span) -> int:
    low, high, left, right = span
    most, same = min(high - low, right - left), 0
    while same < most and old[low + same] == new[left + same]:
        same += 1
    return same


def _suffix(old: Lines, new: Lines, span: Span) -> int:
    low, high, left, right = span
    most, same = min(high - low, right - left), 0
    while same < most and old[high - 1 - same] == new[right - 1 - same]:
        same += 1
    return same


def _anchors(old: Lines, new: Lines, span: Span) -> list[tuple[int, int]]:
    """Lines that occur once in either range, as many as have the same order in both."""
    low, high, left, right = span
    once = _once(new, left, right)
    pairs = [(row, once[line]) for line, row in _once(old, low, high).items() if line in once]
    ends: list[int] = []  # the smallest column in which an increasing sequence of each length ends
    at: list[int] = []  # the pair that it ends with
    before: list[int] = []
    for number, (_, column) in enumerate(pairs):  # pairs are in the order of their rows
        length = bisect_left(ends, column)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1], at[length : length + 1] = [column], [number]
    chain, number = [], at[-1] if at else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]


def _once(lines: Lines, begin: int, end: int) -> dict[bytes, int]:
    """Where the lines are that occur once, in order."""
    places: dict[bytes, int] = {}
    for index in range(begin, end):
        line = lines[index]
        places[line] = -1 if line in places else index
    return {line: index for line, index in places.items() if index >= 0}


def _shortest(old: Lines, new: Lines, low: int, left: int, check: Callable[[], None]) -> list[Block]:
    """What a shortest edit keeps; nothing if it has more than ``EDITS`` lines."""
    rows, columns = len(old), len(new)
    if abs(rows - columns) > EDITS:
        return []
    reach, trace = {1: 0}, []  # by diagonal: how far into the old text
    for edits in range(EDITS + 1):
        check()
        trace.append(dict(reach))
        for diagonal in range(-edits, edits + 1, 2):
            row, _ = _entered(reach, diagonal, edits)
            while row < rows and row - diagonal < columns and old[row] == new[row - diagonal]:
                row += 1
            reach[diagonal] = row
            if row >= rows and row - diagonal >= columns:
                return _kept(trace, rows, diagonal, low, left)
    return []


def _entered(reach: dict[int, int], diagonal: int, edits: int) -> tuple[int, int]:
    """Where a path with one more edit enters the diagonal, and from which one: by a line added, or one removed."""
    if diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1]):
        return reach[diagonal + 1], diagonal + 1
    return reach[diagonal - 1] + 1, diagonal - 1


def _kept(trace: list[dict[int, int]], row: int, diagonal: int, low: int, left: int) -> list[Block]:
    found = []
    for edits in range(len(trace) - 1, -1, -1):
        entered, before = _entered(trace[edits], diagonal, edits)
        found.append((low + entered, left + entered - diagonal, row - entered))
        row, diagonal = (entered if before > diagonal else entered - 1), before
    return found

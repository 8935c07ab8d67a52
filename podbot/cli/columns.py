"""Tables as plain text that fit a terminal. Without rich, because `podbot ps` is on the fast path."""

from __future__ import annotations

from collections.abc import Sequence

from podbot.frozen import Frozen

_GAP = "  "
_CUT = "…"


class Column(Frozen):
    """A column of a table.

    ``least``: the number of characters to which its cells may be cut; 0: they are never cut. ``keeps_end``: a cell is
    cut at its beginning, such as a path. ``droppable``: it is left out if the table does not fit otherwise.
    """

    title: str
    cells: tuple[str, ...]
    least: int = 0
    keeps_end: bool = False
    droppable: bool = False

    @property
    def width(self) -> int:
        return max(len(self.title), *map(len, self.cells)) if self.cells else len(self.title)


def laid_out(columns: Sequence[Column], width: int | None) -> str:
    """The table with its titles, one line for each row. It fits ``width`` characters if that is possible.

    First columns are cut, the last one first; then columns are left out, the last one first. None: no limit.
    """
    shown = list(columns)
    while True:
        widths = _widths(shown, width)
        droppable = [at for at, column in enumerate(shown) if column.droppable]
        if width is None or _total(widths) <= width or not droppable or len(shown) == 1:
            break
        del shown[droppable[-1]]
    rows = zip(*([column.title, *column.cells] for column in shown), strict=True)
    lines = (
        _GAP.join(_cut(cell, at, column).ljust(at) for cell, at, column in zip(row, widths, shown, strict=True))
        for row in rows
    )
    return "".join(line.rstrip() + "\n" for line in lines)


def _widths(columns: Sequence[Column], width: int | None) -> list[int]:
    widths = [column.width for column in columns]
    for at in reversed(range(len(columns))):
        over = 0 if width is None else _total(widths) - width
        if over > 0 and columns[at].least:
            least = min(widths[at], max(columns[at].least, len(columns[at].title)))
            widths[at] = max(least, widths[at] - over)
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * max(0, len(widths) - 1)


def _cut(cell: str, width: int, column: Column) -> str:
    if len(cell) <= width:
        return cell
    return _CUT + cell[len(cell) - width + 1 :] if column.keeps_end else cell[: width - 1] + _CUT

"""Tables that fit a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podbot.cli.columns import Column, laid_out

TEXT = st.text("abc", max_size=30)


@st.composite
def tables(draw: st.DrawFn) -> list[Column]:
    rows = draw(st.integers(0, 3))
    return [
        Column(
            draw(st.text("AB", min_size=1, max_size=8)),
            tuple(draw(st.lists(TEXT, min_size=rows, max_size=rows))),
            least=draw(st.integers(0, 9)),
            keeps_end=draw(st.booleans()),
            droppable=number > 0 and draw(st.booleans()),
        )
        for number in range(draw(st.integers(1, 5)))
    ]


def test_columns_are_aligned_and_lines_have_no_trailing_blank() -> None:
    columns = [Column("NAME", ("a", "longer")), Column("STATE", ("up", ""))]
    assert laid_out(columns, None) == "NAME    STATE\na       up\nlonger\n"


def test_the_last_column_that_may_be_cut_is_cut_first() -> None:
    path = Column("PATH", ("/home/ada/src/shop",), least=8, keeps_end=True)
    columns = [Column("NAME", ("0123456789",), least=6), path]
    assert laid_out(columns, 24) == "NAME        PATH\n0123456789  …da/src/shop\n"
    assert laid_out(columns, 18) == "NAME      PATH\n0123456…  …rc/shop\n"


def test_columns_are_left_out_when_cutting_is_not_enough() -> None:
    columns = [Column("NAME", ("0123456789",)), Column("AGE", ("2m",), droppable=True), Column("STATE", ("running",))]
    assert laid_out(columns, 20) == "NAME        STATE\n0123456789  running\n"


@given(tables())
def test_without_a_width_nothing_is_cut(columns: list[Column]) -> None:
    text = laid_out(columns, None)
    assert "…" not in text
    for column in columns:
        assert all(cell in text for cell in (column.title, *column.cells))


@given(tables(), st.integers(1, 120))
def test_a_table_fits_or_cannot_be_made_smaller(columns: list[Column], width: int) -> None:
    lines = laid_out(columns, width).splitlines()
    assert len(lines) == 1 + len(columns[0].cells)
    fixed = [column for column in columns if not column.droppable]
    least = [max(column.least, len(column.title)) if column.least else column.width for column in fixed]
    smallest = sum(min(cut, column.width) for cut, column in zip(least, fixed, strict=True))
    if width >= smallest + 2 * len(fixed):
        assert max(map(len, lines)) <= width

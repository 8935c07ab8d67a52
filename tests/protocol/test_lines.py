from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.lines import LineAssembler, Overlong
from tests.protocol.drive import pieces

TEXT = st.binary(max_size=60).map(lambda data: data.replace(b"a", b"\n").replace(b"\0", b"\n"))


def lines(data: bytes, places: list[int], limit: int) -> list[bytes | Overlong]:
    assembler = LineAssembler(limit)
    found = [line for piece in pieces(data, places) for line in assembler.feed(piece)]
    last = assembler.finish()
    return found if last is None else [*found, last]


@given(TEXT, st.lists(st.integers(0, 60)), st.integers(1, 12))
def test_any_cutting_gives_the_same_lines(data: bytes, places: list[int], limit: int) -> None:
    whole = [piece + b"\n" for piece in data.split(b"\n")]
    whole[-1] = whole[-1][:-1]
    expected = [line if len(line) <= limit else Overlong(len(line)) for line in whole if line]
    assert lines(data, places, limit) == expected


def test_what_is_over_the_limit_is_not_held() -> None:
    assembler = LineAssembler(1000)
    for _ in range(100):
        assert assembler.feed(b"x" * 900) == []
        assert len(assembler._held) <= 1000
    assert assembler.feed(b"\n{}\n") == [Overlong(90001), b"{}\n"]
    assert assembler.finish() is None


def test_a_line_in_single_bytes_costs_its_own_size() -> None:
    assembler = LineAssembler(1 << 20)
    for _ in range(100_000):
        assembler.feed(b"x")
    assert assembler._held.__sizeof__() < 120_000
    assert assembler.finish() == b"x" * 100_000

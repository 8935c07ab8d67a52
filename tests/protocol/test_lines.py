from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.lines import HEAD, SHORT, TAIL, LineAssembler, Overlong, whole_lines
from tests.protocol.drive import pieces

TEXT = st.lists(st.sampled_from([b"\n", b"\n", b"x", b"yz", b"\r", b"\0", b"abcde"]), max_size=30).map(b"".join)


def lines(data: bytes, places: list[int], limit: int, short: int) -> list[bytes | Overlong]:
    assembler = LineAssembler(limit, short=short)
    found: list[bytes | Overlong] = []
    for piece in pieces(data, places):
        for block in assembler.feed(piece):
            found += [block] if isinstance(block, Overlong) else whole_lines(block)
    last = assembler.finish()
    return found if last is None else [*found, last]


@given(TEXT, st.lists(st.integers(0, 60)), st.integers(1, 12), st.sampled_from([0, 3, SHORT]))
def test_any_division_gives_the_same_lines(data: bytes, places: list[int], limit: int, short: int) -> None:
    whole = [piece + b"\n" for piece in data.split(b"\n")]
    whole[-1] = whole[-1][:-1]
    expected = [line if len(line) <= limit else Overlong(len(line), line, line) for line in whole if line]
    assert lines(data, places, limit, short) == expected


@given(st.lists(st.integers(0, 12_000)), st.integers(5001, 12_000), st.integers(1, 5000), st.sampled_from([0, SHORT]))
def test_the_ends_of_a_dropped_line_are_kept(places: list[int], size: int, limit: int, short: int) -> None:
    line = b"".join(b"%d " % number for number in range(3000))[: size - 1] + b"\n"
    (found,) = lines(line, places, limit, short)
    assert found == Overlong(size, line[:HEAD], line[-TAIL:])


def test_lines_come_in_blocks() -> None:
    assembler = LineAssembler(1 << 20)
    assert assembler.feed(b"a\nb\n\nc") == [b"a\nb\n\n"]
    assert assembler.feed(b"d\ne\nf") == [b"cd\ne\n"]
    assert assembler.feed(b"x" * SHORT) == []
    assert assembler.feed(b"\ng\n") == [b"f" + b"x" * SHORT + b"\n", b"g\n"], "long ones are not copied once more"


def memory_of(assembler: LineAssembler, piece: bytes, times: int) -> int:
    """Bytes that it has taken after so many pieces without a newline."""
    tracemalloc.start()
    try:
        for _ in range(times):
            assert assembler.feed(piece) == []
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_what_is_over_the_limit_is_not_held() -> None:
    assembler = LineAssembler(1000)
    assert memory_of(assembler, b"x" * 900, 100) <= 2000 + HEAD + TAIL
    assert assembler.feed(b"\n{}\n") == [Overlong(90001, b"x" * HEAD, b"x" * (TAIL - 1) + b"\n"), b"{}\n"]
    assert assembler.finish() is None


def test_a_line_in_single_bytes_costs_its_own_size() -> None:
    assembler = LineAssembler(1 << 20)
    assert memory_of(assembler, b"x", 100_000) < 120_000
    assert assembler.finish() == b"x" * 100_000

"""The queue under every output: bytes in order, few objects, podbot's own answers counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podbot.streams.backlog import JOIN, MOST, Backlog


@given(st.lists(st.tuples(st.sampled_from([0, 1, 3, 100, JOIN - 1, JOIN, 5000]), st.booleans(), st.integers(0, 6000))))
def test_bytes_are_taken_in_the_order_in_which_they_were_pushed(steps: list[tuple[int, bool, int]]) -> None:
    backlog, expected, got, answers_end = Backlog(), bytearray(), bytearray(), 0
    for number, (size, answer, take) in enumerate(steps):
        data = bytes([number % 256]) * size
        expected += data
        backlog.push(memoryview(data), answer=answer)
        if answer and size:
            answers_end = len(expected)
        there = b"".join(backlog.pieces())
        done = min(take, len(there))
        got += there[:done]
        backlog.taken(done)
        assert backlog.pending == len(expected) - len(got)
        assert (backlog.answers > 0) == (len(got) < answers_end)
    while backlog.pending:
        there = bytes(backlog.first())
        got += there
        backlog.taken(len(there))
    assert got == expected
    assert not backlog.answers


def test_single_bytes_cost_no_object_each() -> None:
    backlog = Backlog()
    for _ in range(100_000):
        backlog.push(memoryview(b"x"))
    assert backlog.pending == 100_000
    assert 100_000 // (JOIN // 2) < MOST, "so these are all pieces"
    assert len(list(backlog.pieces())) <= 100_000 // (JOIN // 2)
    backlog.clear()
    assert not backlog.pending

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from podbot.shell.output_budget import STDERR, STDOUT, OutputBudget

MARKER = re.compile(r"\n\[(\d+) bytes are missing here\]\n")
LIMIT = 400
TEXT = st.text(st.sampled_from("aé€😀z"), max_size=500).map(str.encode)


def kept(out: bytes, err: bytes, limit: int = LIMIT, piece: int = 1000) -> tuple[str, str, bool]:
    budget = OutputBudget(limit)
    for at in range(0, max(len(out), len(err)), piece):
        budget.take(STDOUT, out[at : at + piece])
        budget.take(STDERR, memoryview(err)[at : at + piece])
    return budget.kept()


@given(TEXT, TEXT, st.integers(1, 700))
def test_every_byte_is_there_or_truncated_says_that_it_is_not(out: bytes, err: bytes, piece: int) -> None:
    shown_out, shown_err, truncated = kept(out, err, piece=piece)
    whole = shown_out.encode() == out and shown_err.encode() == err
    assert truncated == (not whole)
    assert truncated == (len(out) + len(err) > LIMIT)
    assert len(shown_out.encode()) + len(shown_err.encode()) <= LIMIT


@given(TEXT, TEXT, st.integers(1, 700))
def test_head_and_tail_with_the_exact_number_between_and_no_character_cut(out: bytes, err: bytes, piece: int) -> None:
    for shown, data in zip(kept(out, err, piece=piece)[:2], (out, err), strict=True):
        assert "\ufffd" not in shown
        found = MARKER.search(shown)
        if found is None:
            assert shown.encode() == data
            continue
        head, tail = shown[: found.start()].encode(), shown[found.end() :].encode()
        assert data.startswith(head)
        assert data.endswith(tail)
        assert len(head) + int(found[1]) + len(tail) == len(data)
        assert abs(len(head) - len(tail)) <= 8


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_each_stream_is_sure_of_half_and_may_use_what_the_other_leaves(out: bytes, err: bytes) -> None:
    shown_out, shown_err, truncated = kept(out, err, limit=300)
    assert truncated == (len(out) + len(err) > 300)
    if len(out) <= max(150, 300 - len(err)):
        assert shown_out == out.decode("utf-8", "replace")
    if len(err) <= max(150, 300 - len(out)):
        assert shown_err == err.decode("utf-8", "replace")


@given(st.binary(max_size=200), st.integers(0, 60))
def test_a_limit_with_no_room_for_the_line(out: bytes, limit: int) -> None:
    shown, _, truncated = kept(out, b"", limit=limit)
    assert truncated == (len(out) > limit)
    assert shown == out.decode("utf-8", "replace") or len(shown) <= limit


def test_what_is_kept_of_a_flood_does_not_grow() -> None:
    budget = OutputBudget(32768)
    for number in range(3000):
        budget.take(STDOUT, bytes([65 + number % 26]) * (1 + number * 7919 % 65536))
    assert 32768 <= budget.held <= 3 * 32768
    shown, _, truncated = budget.kept()
    assert truncated
    assert shown.startswith("AB")
    assert shown.endswith(chr(65 + 2999 % 26))
    assert 32000 < len(shown) <= 32768


def test_what_is_not_utf8_becomes_replacement_characters() -> None:
    assert kept(b"a\xffb\xc3", b"") == ("a\ufffdb\ufffd", "", False)

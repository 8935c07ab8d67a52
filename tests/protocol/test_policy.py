"""Which lines may be tool calls: the search that precedes the fast path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.policy import may_be_tool_call

PIECES = st.sampled_from([b"tool_call", b"tool_cal", b"ool_call", b"tool", b"_", b"__", b"call", b"x" * 300, b"\n"])


@given(st.lists(PIECES, max_size=40).map(b"".join))
def test_a_call_is_found_wherever_it_is(lines: bytes) -> None:
    assert may_be_tool_call(lines) == (b"tool_call" in lines)


@pytest.mark.parametrize("before", [0, 1, 4, 5, 1023, 1024, 1025, 100_000], ids=str)
@pytest.mark.parametrize("filler", [b"x", b"_", b"tool", b"x_"], ids=["none", "only", "tool", "half"])
def test_behind_any_number_of_underscores(filler: bytes, before: int) -> None:
    assert may_be_tool_call((filler * before)[:before] + b"tool_call")
    assert not may_be_tool_call((filler * before)[:before] + b"tool-call")


@pytest.mark.parametrize("spelled", [rb"\u0074ool_call", rb"tool\u005Fcall", rb"too\u006c_call", rb"t\u006Fol_call"])
def test_letters_as_escapes(spelled: bytes) -> None:
    assert may_be_tool_call(b"x" * 5000 + spelled)

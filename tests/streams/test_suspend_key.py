"""Ctrl-Z in the forms that terminals send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.execution.suspension import has_suspend_key


@pytest.mark.parametrize(
    "data",
    [
        b"\x1a",
        b"abc\x1adef",
        b"\x1b[122;5u",
        b"\x1b[122:90;5u",
        b"\x1b[122;5:1u",
        b"\x1b[122;5:2u",
        b"\x1b[122;5;26u",
        b"\x1b[122;69u",  # caps lock is on
        b"\x1b[122;133u",  # num lock is on
        b"\x1b[27;5;122~",
        b"x\x1b[122;1u\x1b[122;5u",
    ],
)
def test_ctrl_z(data: bytes) -> None:
    assert has_suspend_key(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"z",
        b"^Z",
        b"\x03",
        b"\x1b[122u",
        b"\x1b[122;1u",
        b"\x1b[122;2u",  # shift
        b"\x1b[122;3u",  # alt
        b"\x1b[122;6u",  # ctrl and shift
        b"\x1b[122;7u",  # ctrl and alt
        b"\x1b[122;5:3u",  # the key's release
        b"\x1b[121;5u",
        b"\x1b[1122;5u",
        b"\x1b[27;2;122~",
        b"\x1b[27;5;121~",
        b"\x1b[122;0u",
    ],
)
def test_another_key(data: bytes) -> None:
    assert not has_suspend_key(data)


@given(st.binary())
def test_any_bytes_are_accepted(data: bytes) -> None:
    assert has_suspend_key(data) or b"\x1a" not in data

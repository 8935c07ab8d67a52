"""A hostile program's output as harmless text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podbot.cli.logs import plain_line
from podbot.visible_text import is_printable


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"plain\r\n", "plain"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b]52;c;aGk=", ""),
        (b"\x1bPq#0\x1b\\x", "x"),
        (b"\x1b(B\x1b7\x1b=a", "a"),
        (b"\xc2\x9b31mred", "red"),
        (b"\xc2\x9d0;title\xc2\x9cx", "x"),
        (b"10%\r50%\r100%\n", "100%"),
        (b"ab\b\bcd", "cd"),
        (b"a\tb", "a       b"),
        (b"\x07bell", "bell"),
        (b"\0\x7f", "\\x00\\x7f"),
        ("a\u202eb".encode(), "a\\u202eb"),
        (b"\xff", "\ufffd"),
        (b"\x1b", ""),
    ],
)
def test_what_is_left(line: bytes, text: str) -> None:
    assert plain_line(line) == text


@given(st.binary(max_size=200))
@example(b"\x1b\x1b[\x1b]\x9b\xc2\x9b")
def test_nothing_that_a_terminal_obeys_is_left(line: bytes) -> None:
    assert is_printable(plain_line(line))


def test_long_lines_take_linear_time() -> None:
    for line in (b"a\b" * 200_000, b"\x1b" * 400_000, b"\x1b]" * 200_000, b"\x1b[" * 200_000, b"\r" * 400_000):
        assert is_printable(plain_line(line))

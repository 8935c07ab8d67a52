"""Undoing and redoing a full-screen program's changes to the terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.streams.screen import ScreenModes

RESET = b"\x1b[0m"


def off(data: bytes) -> bytes:
    """The sequences that switch off each report that ``data`` has not switched off already."""
    reports = (b"\x1b[?%dl" % mode for mode in (1000, 1002, 1003, 1004, 1006, 2004))
    return b"".join(report for report in reports if report not in data)


def without_reports(data: bytes) -> bytes:
    return re.sub(rb"\x1b\[\?(1000|1002|1003|1004|1006|2004)l", b"", data)


def fed(*pieces: bytes) -> ScreenModes:
    screen = ScreenModes()
    for piece in pieces:
        screen.feed(piece)
    return screen


@pytest.mark.parametrize(
    ("data", "leave", "enter"),
    [
        (b"plain", b"", b""),
        (b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?1049h"),
        (b"\x1b[?25l", b"\x1b[?25h", b"\x1b[?25l"),
        (b"\x1b[?25h", b"", b""),
        (b"\x1b[?1000;1006h", b"\x1b[?1000l\x1b[?1006l", b"\x1b[?1000h\x1b[?1006h"),
        (b"\x1b[?1000h\x1b[?1000l", b"", b""),
        (b"\x1b[?2004h\x1b[?1049h", b"\x1b[?2004l\x1b[?1049l", b"\x1b[?1049h\x1b[?2004h"),
        (b"\x1b[>1u\x1b[>3u", b"\x1b[<2u", b"\x1b[>1u\x1b[>3u"),
        (b"\x1b[>1u\x1b[<u", b"", b""),
        (b"\x1b[>1u\x1b[<99999u", b"", b""),
        (b"\x1b[<u", b"", b""),
        (b"\x1b[>1u\x1b[=5;1u", b"\x1b[<1u", b"\x1b[>5u"),
        (b"\x1b[=5u", b"\x1b[=0u", b"\x1b[=5u"),
        (b"\x1b[=5u\x1b[=0u", b"", b""),
        (b"\x1b[>4;2m", b"\x1b[>4;0m", b"\x1b[>4;2m"),
        (b"\x1b[>4;2m\x1b[>4m", b"", b""),
        (b"\x1b[>4;1m\x1b[>4;0m", b"", b""),
        (b"\x1b[?4242h\x1b[?8h", b"", b""),  # unknown ones are not podbot's to undo
        (b"\x1b]0;title\x07\x1b[31m", b"", b""),
    ],
)
def test_changes_are_undone_and_redone(data: bytes, leave: bytes, enter: bytes) -> None:
    screen = fed(data)
    assert without_reports(screen.leave()) == without_reports(leave) + RESET
    assert (
        screen.leave().count(b"\x1b") == leave.count(b"\x1b") + (off(leave).count(b"\x1b") if b"?" in data else 0) + 1
    )
    assert screen.enter() == enter
    assert screen.clean == (not leave)


@pytest.mark.parametrize(
    "data",
    [
        b"\x1b[?01003h",
        b"\x1b[?" + b"0" * 50 + b"1003;0001006h",
        b"\x1b[?10\x0003h",
        b"\x1b\x00[\x07?1003\n\x7fh",
    ],
)
def test_a_mode_is_recognised_in_any_spelling(data: bytes) -> None:
    for screen in (fed(data), fed(*(data[at : at + 1] for at in range(len(data))))):
        assert screen.leave().count(b"\x1b[?1003l") == screen.enter().count(b"\x1b[?1003h") == 1
        assert not screen.clean
    assert fed(data, data[:-1] + b"l").clean


@pytest.mark.parametrize(
    "data",
    [
        b"\x1b[?" + b"0;" * 80 + b"1003h",
        b"\x1b[?" + b"0" * 80 + b"1003h",
        b"\x1b[?1003h\x1b[?" + b"0;" * 30 + b"1003l",  # more than terminals parse
        b"\x1b[?1003h\x1b[?1003s\x1b[?1003l\x1b[?1003r",  # saved, and restored
        b"\x1b[?1003:1h",
        b"\x9b?1003h",
        b"\xc2\x9b?1003h",
    ],
)
def test_reports_are_switched_off_even_in_unknown_spellings(data: bytes) -> None:
    """A mouse that continues to report types into the operator's shell."""
    for screen in (fed(data), fed(*(data[at : at + 1] for at in range(len(data))))):
        assert screen.leave() == off(b"") + RESET
        assert (screen.enter(), screen.clean) == (b"", True)


def test_nothing_is_switched_off_after_plain_output() -> None:
    assert fed(b"\x1b[31mred\x1b[0m\x1b]0;title?\x07\x1b[2J plain?\n").leave() == RESET


def test_a_program_cannot_make_the_memory_grow() -> None:
    screen = fed(*(b"\x1b[>%du\x1b[?%dh\x1b[" % (n % 32, n) for n in range(3000)), b"?" + b"1;" * 5000)
    assert len(screen.leave()) < 400
    assert len(screen.enter()) < 400


sequences = st.lists(
    st.one_of(
        st.binary(max_size=6),
        st.sampled_from(
            [
                *(b"\x1b[?%d%s" % (mode, switch) for mode in (25, 1049, 2004, 1000, 7, 77) for switch in (b"h", b"l")),
                *(b"\x1b[>5u", b"\x1b[<u", b"\x1b[<2u", b"\x1b[=3u", b"\x1b[>4;2m", b"\x1b[>4m", b"\x1b[?1;25l"),
            ]
        ),
    )
).map(b"".join)


@given(sequences, st.lists(st.integers(1, 7)))
def test_division_into_pieces_does_not_matter(data: bytes, sizes: list[int]) -> None:
    whole, rest, pieces = fed(data), data, []
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    parts = fed(*pieces, rest)
    assert (parts.leave(), parts.enter()) == (whole.leave(), whole.enter())


@given(sequences)
def test_it_understands_its_own_output(data: bytes) -> None:
    screen = fed(data)
    again = fed(screen.enter())
    assert (again.enter(), without_reports(again.leave())) == (screen.enter(), without_reports(screen.leave()))
    assert fed(screen.enter(), screen.leave()).clean


# --- the end ---


def test_plain_text_needs_no_reset() -> None:
    assert fed(b"hello\n").end(own_line=True) == b""
    assert fed(b"").end(own_line=True) == b""
    assert fed(b"half").end(own_line=False) == b""
    assert fed(b"half").end(own_line=True) == b"\r\n"


@pytest.mark.parametrize("data", [b"\x1b[31mred\n", b"\x9b?1049h", b"\x05", b"\x1b]0;title"])
def test_the_reset_works_in_any_state_of_the_terminal(data: bytes) -> None:
    """Issue 12.9: before, modes were only restored after an abnormal end, and by a list that moved the cursor."""
    end = fed(data).end(own_line=True)
    assert end.startswith(b"\x18\x1b\\"), "an unfinished sequence or title would swallow the rest"
    for part in (b"\x1b[?25h", b"\x1b[0m", b"\x1b(B", b"\x1b[4l", b"\x1b[r"):
        assert part in end
    assert end.endswith(b"\x1b[J")
    assert b"\x1b[?1049l" not in end, "left twice it moves the cursor, and podbot's words go over the program's"


def test_the_screen_of_a_killed_full_screen_program_is_left() -> None:
    end = fed(b"text\n\x1b[?1049h\x1b[?25l\x1b[10;10Hx").end(own_line=True)
    assert end.count(b"\x1b[?1049l") == 1
    assert b"\r\n" not in end


def test_podbots_message_begins_a_line_and_nothing_follows_on_it() -> None:
    for data in (b"\x1b[1mhalf a line", b"a line\nanother\n\x1b[A\x1b[3C"):
        assert fed(data).end(own_line=True).endswith(b"\r\n\x1b[J")
    assert fed(b"\x1b[1mline\n").end(own_line=True).endswith(b"\x1b8\x1b[J")


NO_KEYS = b"\x1b[<99u\x1b[=0u\x1b[>4;0m"


@pytest.mark.parametrize(
    "data",
    [
        b"\x9b>1u",
        b"\xc2\x9b>31u",
        b"\x9b=5u",
        b"\x1b[>1:1u",
        b"\x1b[> 1u",
        b"\x1b[>" + b"0" * 40 + b"1u",
        b"\x1b[=" + b"1;" * 40 + b"1u",
        b"\x1b[=1u\x1b[=0;2u",  # nothing is unset by it
        b"\x1b[>04;2m",
        b"\x1b[>4:2m",
        b"\x9b>4;2m",
        b"\x1b[>1u" * 17,  # more than podbot keeps
    ],
)
def test_a_keyboard_protocol_is_switched_off_even_in_unknown_spellings(data: bytes) -> None:
    """Keys sent as sequences type into the operator's shell. The alternate screen has its own flags."""
    for screen in (fed(data), fed(*(data[at : at + 1] for at in range(len(data))))):
        for end in (screen.end(own_line=True), screen.lend()):
            assert end.count(NO_KEYS) == 2
            assert end.startswith(b"\x18\x1b\\")
    alternate = b"\x1b[?1049l"
    before, _, after = fed(b"\x1b[?1049h" + data).end(own_line=True).partition(alternate)
    assert NO_KEYS in before
    assert NO_KEYS in after


@pytest.mark.parametrize(
    "data",
    [
        *(b"\x1b[>q", b"\x1b[>0q", b"\x1b[>c", b"\x1b[=c", b"\x9b>c", b"\x1b[>4;2m", b"\x1b[>4m", b"\x1b[?1003h"),
        *(b"\x1b[>1u\x1b[<u", b"\x1b[=5u", b"\x1b[=5;1u", b"\x1b[=0;01u", b"\x1b[31m<=>", b"\x1b[>1u" * 16),
    ],
)
def test_a_keyboard_protocol_of_the_caller_is_not_switched_off_without_reason(data: bytes) -> None:
    for screen in (fed(data), fed(*(data[at : at + 1] for at in range(len(data))))):
        assert NO_KEYS not in screen.end(own_line=True) + screen.lend()


@pytest.mark.parametrize(
    "data", [b"\x1b G", b"\x1b\x00 G", b'\x1b[62;0"p', b'\x1b[64"p', b'\x9b65;2"p', b'a"p\x1b G"p']
)
def test_answers_have_seven_bits_again(data: bytes) -> None:
    for screen in (fed(data), fed(*(data[at : at + 1] for at in range(len(data))))):
        assert b"\x1b F" in screen.end(own_line=False)
        assert b"\x1b F" in screen.lend()


@pytest.mark.parametrize("data", [b'\x1b[1m{"path": 62"p}', b"\x1b[0m G", b'\x1b[1;"p'[:-1]])
def test_a_console_that_would_print_the_seven_bit_sequence_does_not_get_it(data: bytes) -> None:
    assert b"\x1b F" not in fed(data).end(own_line=True)


@pytest.mark.parametrize("data", [b"\x1b[?2l", b"\x1b[?" + b"0" * 90 + b"2l", b"\x9b?2l", b"\x1b[?1;2;3l"])
def test_vt52_mode_is_left_before_anything_else(data: bytes) -> None:
    """It treats CSI as text and would print everything that follows."""
    for end in (fed(data).end(own_line=True), fed(data).lend()):
        assert end.startswith(b"\x18\x1b\\\x1b<")


@given(sequences)
def test_the_reset_alone_leaves_everything_at_its_default(data: bytes) -> None:
    assert fed(data, fed(data).end(own_line=True)).clean


@pytest.mark.parametrize("code", [*range(0x80, 0xA0), 0x05, 0x0E, 0x1B])
def test_each_control_that_a_terminal_obeys_counts(code: int) -> None:
    """DECID (U+009A) is answered; APC, PM and SOS consume what follows."""
    for data in (bytes([code]), chr(code).encode()):
        screen = ScreenModes()
        screen.feed(data)
        assert screen.commanded


@pytest.mark.parametrize("mode", [b"20", b"?9", b"?2031", b"?2048", b"?9001"])
def test_modes_that_type_are_switched_off_however_they_were_spelled(mode: bytes) -> None:
    screen = ScreenModes()
    screen.feed(b"\x1b7")
    assert b"\x1b[%sl" % mode in screen.end(own_line=False)
    assert b"\x1b[%sl" % mode in screen.lend()

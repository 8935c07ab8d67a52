"""What a program changes in a terminal beyond its modes, and how it is undone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.streams.lasting import LastingChanges
from podbot.streams.screen import ScreenModes

ST = b"\x1b\\"
CHANGES = [
    (b"\x1b]4;1;#ff0000\x07", b"\x1b]104" + ST),
    (b"\x1b]4;1;?;2;red\x1b\\", b"\x1b]104" + ST),
    (b"\xc2\x9d4;1;red\x07", b"\x1b]104" + ST),
    (b"\x1b]5;0;red\x07", b"\x1b]105" + ST),
    (b"\x1b]10;#fff\x07", b"\x1b]110" + ST),
    (b"\x1b]11;rgb:0/0/0\x1b\\", b"\x1b]111" + ST),
    (b"\x1b]10;#fff;#000\x07", b"\x1b]110" + ST + b"\x1b]111" + ST),
    (b"\x1b]10;?;#000\x07", b"\x1b]111" + ST),
    (b"\x1b]12;pink\x07", b"\x1b]112" + ST),
    (b"\x1b[6 q", b"\x1b[0 q"),
    (b"\xc2\x9b5 q", b"\x1b[0 q"),
    (b"\x1b[22;0t\x1b]0;new\x07", b"\x1b[23;0t"),
    (b"\x1b[22t", b"\x1b[23;0t"),
    (b"\x1b[22;2t\x1b[22;1t", b"\x1b[23;1t\x1b[23;2t"),
    (b"\x1b]9;4;1;50\x07", b"\x1b]9;4;0;0" + ST),
    (b"\x1b]9;4;3\x1b\\", b"\x1b]9;4;0;0" + ST),
    (b"\x1b[5i", b"\x1b[4i"),
    (b"\x1b[1$}", b"\x1b[0$}"),
    (b"\x1b[2$~", b"\x1b[0$~"),
    (b"\x1b[3g", b"\x1b[?5W"),
    (b"\x1b[12l", b"\x1b[12h"),
    (b"\x1b[4;12l", b"\x1b[12h"),
    (b"\x1b]22;wait\x07", b"\x1b]22;" + ST),
    (b"\x1b]22;>pointer\x1b\\", b"\x1b]22;" + ST),
    (b"\x1b%@", b"\x1b%G"),
]
UNDONE = [
    *(b"\x1b]4;1;red\x07\x1b]104\x07", b"\x1b]11;red\x07\x1b]111\x1b\\", b"\x1b[6 q\x1b[ q", b"\x1b[6 q\x1b[0 q"),
    *(b"\x1b[22;0t\x1b[23;0t", b"\x1b]9;4;1;5\x07\x1b]9;4;0\x07", b"\x1b[5i\x1b[4i", b"\x1b[12l\x1b[12h"),
    *(b"\x1b]22;wait\x07\x1b]22;\x07", b"\x1b%@\x1b%G"),
]
NOTHING = [
    *(b"\x1b]11;?\x07", b"\x1b]10;?;?\x1b\\", b"\x1b]4;1;?\x07", b"\x1b]0;title\x07", b"\x1b[?12l", b"\x1b[18t"),
    *(b"\x1b]9;done\x07", b"\x1b]8;;http://h/11;red\x07", "”11;red ]10;red [6 q".encode(), b"\x1b[23;0t", b"\x1b[0 q"),
    *(b"\x1b]22;?__current__\x07", b"\x1b%G", b"100%@"),
]


def in_pieces(data: bytes) -> list[LastingChanges]:
    whole, single = LastingChanges(), LastingChanges()
    whole.feed(data)
    for at in range(len(data)):
        single.feed(data[at : at + 1])
    return [whole, single]


@pytest.mark.parametrize(("data", "undo"), CHANGES)
def test_a_change_is_undone(data: bytes, undo: bytes) -> None:
    """Issue 29.20: each of them was left to the shell."""
    for changes in in_pieces(data):
        assert changes.undo() == undo
    screen = ScreenModes()
    screen.feed(data)
    assert undo in screen.end(own_line=False)
    assert undo not in screen.lend(), "a shell that borrows the terminal gives it back as it was"


@pytest.mark.parametrize("data", [*UNDONE, *NOTHING])
def test_what_was_not_changed_is_left_alone(data: bytes) -> None:
    """The operator's own colours and cursor, which a reset would replace by the terminal's."""
    for changes in in_pieces(data):
        assert changes.undo() == b""


def test_a_palette_of_which_one_colour_was_reset_is_still_changed() -> None:
    assert in_pieces(b"\x1b]4;1;red;2;red\x07\x1b]104;1\x07")[0].undo() == b"\x1b]104" + ST


def test_what_a_printer_got_is_said_to_the_terminal_again() -> None:
    """The sequences that come first, because a terminal understands none of the others."""
    screen = ScreenModes()
    screen.feed(b"\x1b G\x1b[?2l\x1b[5i")
    before, found, after = screen.end(own_line=False).partition(b"\x1b[4i")
    assert found
    assert all(first in before and first in after for first in (b"\x1b F", b"\x1b<"))


def test_a_printer_is_switched_off_before_anything_else() -> None:
    screen = ScreenModes()
    screen.feed(b"\x1b[?1049h\x1b[5i")
    end = screen.end(own_line=False)
    assert end.index(b"\x1b[4i") < end.index(b"\x1b[?1049l")


def test_a_program_cannot_make_the_memory_grow() -> None:
    changes = LastingChanges()
    for number in range(3000):
        changes.feed(b"\x1b[22;%dt\x1b]%d;x;x\x07" % (number % 3, number) + b"\x1b]4;" + b"1;" * 900)
    assert len(changes.undo()) < 400


parts = st.sampled_from([data for data, _ in CHANGES] + UNDONE + NOTHING) | st.binary(max_size=6)


@given(st.lists(parts).map(b"".join), st.lists(st.integers(1, 7)))
def test_division_into_pieces_does_not_matter(data: bytes, sizes: list[int]) -> None:
    whole, pieces = LastingChanges(), LastingChanges()
    whole.feed(data)
    rest = data
    for size in sizes:
        pieces.feed(rest[:size])
        rest = rest[size:]
    pieces.feed(rest)
    assert pieces.undo() == whole.undo()


@given(st.lists(parts).map(b"".join))
def test_its_own_sequences_undo_everything(data: bytes) -> None:
    changes = LastingChanges()
    changes.feed(data)
    changes.feed(b"\x18" + changes.undo())
    assert changes.undo() == b""

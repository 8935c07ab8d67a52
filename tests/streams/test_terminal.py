from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import Iterator

import pytest

from podbot.streams.terminal import is_terminal, raw_mode, terminal_size
from tests.streams.plumbing import pipes


@pytest.fixture
def pty() -> Iterator[tuple[int, int]]:
    """(the emulator's end, the terminal)."""
    ends = os.openpty()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


def resize(fd: int, columns: int, rows: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def test_which_descriptors_are_terminals(pty: tuple[int, int]) -> None:
    assert is_terminal(pty[1])
    with pipes(1) as (pipe,):
        assert not is_terminal(pipe.read)
        closed = pipe.write
    assert not is_terminal(closed)


def test_its_size(pty: tuple[int, int]) -> None:
    assert terminal_size(pty[1]) is None, "a new terminal says 0x0"
    resize(pty[0], 101, 33)
    assert terminal_size(pty[1]) == (101, 33)
    resize(pty[0], 0, 33)
    assert terminal_size(pty[1]) is None
    with pipes(1) as (pipe,):
        assert terminal_size(pipe.read) is None


def test_raw_mode_passes_every_key_and_is_undone(pty: tuple[int, int]) -> None:
    before = termios.tcgetattr(pty[1])
    with raw_mode(pty[1]):
        during = termios.tcgetattr(pty[1])
        assert not during[3] & (termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        assert not during[0] & termios.ICRNL
        os.write(pty[0], b"\x03\x1a\x04\r")
        assert os.read(pty[1], 10) == b"\x03\x1a\x04\r"
    assert termios.tcgetattr(pty[1]) == before


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        (b"\x04", b""),
        (b"\x04\x04\x04", b""),
        (b"\x04ab", b"ab"),
        (b"ab\n", b"ab\n"),
        (b"ab", b"ab"),
        (b"", b""),
    ],
)
def test_an_end_of_file_typed_before_raw_mode_is_not_a_nul_byte(
    pty: tuple[int, int], typed: bytes, left: bytes
) -> None:
    """Issue 10.14: `script` types one at once, and the first output was ``^@``."""
    os.write(pty[0], typed)
    with raw_mode(pty[1]):
        os.write(pty[0], b"\x04!")  # input from here on goes to the agent unchanged
        wanted = left + b"\x04!"
        assert b"".join(os.read(pty[1], 1) for _ in wanted) == wanted


def test_a_terminal_that_reports_an_end_for_ever_is_abandoned(pty: tuple[int, int]) -> None:
    os.write(pty[0], b"\x04" * 20)
    with raw_mode(pty[1]):
        assert os.read(pty[1], 10) == b"\0" * 4


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_raw_mode_is_undone_whatever_happens(pty: tuple[int, int], error: type[BaseException]) -> None:
    before = termios.tcgetattr(pty[1])
    with pytest.raises(error), raw_mode(pty[1]):
        raise error
    assert termios.tcgetattr(pty[1]) == before


def test_a_terminal_that_disappears_is_no_error(pty: tuple[int, int]) -> None:
    with raw_mode(pty[1]):
        os.close(pty[0])


def test_unread_input_is_dropped_on_request(pty: tuple[int, int]) -> None:
    for emptied in (False, True):
        with raw_mode(pty[1]) as mode:
            os.write(pty[0], b"\x1b[1;1R\n")
            states = [mode.taken]
            mode.give_back(emptied=emptied)
            assert [*states, mode.taken] == [True, False]
        os.set_blocking(pty[1], False)
        if emptied:
            with pytest.raises(BlockingIOError):
                os.read(pty[1], 20)
        else:
            assert os.read(pty[1], 20) == b"\x1b[1;1R\n"

"""podbot's own descriptors, with real pseudo-terminals in place of them."""

from __future__ import annotations

import contextlib
import os
import termios
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from podbot.cli.attach import attached, both_terminals, in_foreground
from podbot.engine.port import Size
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.streams.terminal_answers import drain
from podbot.streams.wake import Wake
from tests.cli.terminals import Emulator
from tests.streams.test_terminal import resize
from tests.waiting import HANG

# The emulator answers, however slow its thread is.
patient_drain = partial(drain, silence=HANG, most=HANG)


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    """Of the terminal that podbot's descriptors 0 and 1 are, as :func:`on_terminal` calls it."""
    with contextlib.closing(Emulator()) as made:
        yield made


def on_terminal(
    emulator: Emulator,
    work: Callable[[ExecIO], ExecStatus],
    wake: Wake,
    *,
    own_line: bool = False,
    foreground: Callable[[], bool] = in_foreground,
) -> ExecStatus:
    """On a terminal that is not the controlling one, as after `setsid podbot …`."""
    with emulator.in_place_of(0, 1):
        return attached(work, tty=True, wake=wake, own_line=own_line, foreground=foreground, drain=patient_drain)


def test_without_a_terminal_the_three_descriptors_are_used(wake: Wake) -> None:
    seen: list[ExecIO] = []

    def work(io: ExecIO) -> ExecStatus:
        seen.append(io)
        return ExecStatus(3)

    assert attached(work, tty=False, wake=wake) == ExecStatus(3)
    (io,) = seen
    assert (io.stdin, io.stdout, io.stderr, io.size()) == (0, 1, 2, None)
    assert isinstance(io.terminal(), contextlib.nullcontext)


def test_size_and_raw_mode_are_the_terminal_s(emulator: Emulator, wake: Wake) -> None:
    resize(emulator.controller, 101, 33)
    before = termios.tcgetattr(emulator.terminal)

    def work(io: ExecIO) -> ExecStatus:
        assert io.size() == Size(columns=101, rows=33)
        with io.terminal():
            assert not termios.tcgetattr(emulator.terminal)[3] & termios.ICANON
        return ExecStatus(0)

    with emulator.in_place_of(0, 1):
        assert both_terminals()
    assert on_terminal(emulator, work, wake) == ExecStatus(0)
    assert termios.tcgetattr(emulator.terminal) == before
    assert emulator.said() == b"", "a command that ended by itself left the screen as it wanted"


def printing(data: bytes, then: Exception | None = None) -> Callable[[ExecIO], ExecStatus]:
    def work(io: ExecIO) -> ExecStatus:
        assert io.screen is not None
        with io.terminal():
            io.screen.feed(data)
        if then is not None:
            raise then
        return ExecStatus(0)

    return work


@pytest.mark.parametrize("own_line", [False, True])
def test_modes_are_put_right_after_every_end(emulator: Emulator, wake: Wake, *, own_line: bool) -> None:
    """Issue 12.9: only after an abnormal one before."""
    on_terminal(emulator, printing(b"\x1b[?25l\x1b[?2004hx"), wake, own_line=own_line)
    printed = emulator.said()
    assert printed.index(b"\x1b[?25h") < printed.index(b"\x1b[?2004l") < printed.index(b"\x1b[J")
    assert (b"\r\n" in printed) == own_line


def test_what_nobody_read_is_not_left_to_the_shell(emulator: Emulator, wake: Wake) -> None:
    emulator.type(b"\x1b[1;1R\x1b[?6c")
    on_terminal(emulator, printing(b"\x1b[6n\x1b[c"), wake)
    os.set_blocking(emulator.terminal, False)
    with pytest.raises(BlockingIOError):
        os.read(emulator.terminal, 100)


def test_a_command_that_prints_plain_text_costs_neither_time_nor_what_was_typed(emulator: Emulator, wake: Wake) -> None:
    emulator.type(b"next\n")
    on_terminal(emulator, printing(b"plain\n"), wake)
    assert emulator.said() == b"next\r\n", "the echo of before"
    assert os.read(emulator.terminal, 100) == b"next\n"


def test_an_error_is_said_on_a_line_of_its_own(emulator: Emulator, wake: Wake) -> None:
    with pytest.raises(ValueError, match="x"):
        on_terminal(emulator, printing(b"half a line", ValueError("x")), wake)
    assert emulator.said() == b"\r\n"


def test_a_terminal_that_was_given_back_or_lent_to_others_is_left_alone(emulator: Emulator, wake: Wake) -> None:
    on_terminal(emulator, printing(b"\x1b[?25lx"), wake, own_line=True, foreground=lambda: False)
    assert emulator.said() == b""


def test_a_screen_that_was_never_touched_is_left_alone(emulator: Emulator, wake: Wake) -> None:
    def work(_io: ExecIO) -> ExecStatus:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        on_terminal(emulator, work, wake)
    assert emulator.said() == b""

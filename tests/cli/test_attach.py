"""podbot's own descriptors, with real pseudo-terminals in their places."""

from __future__ import annotations

import contextlib
import os
import termios
from collections.abc import Callable, Iterator

import pytest

from podbot.cli import attach
from podbot.cli.attach import attached, both_terminals
from podbot.engine.port import Size
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.streams import answers
from podbot.streams.wake import Wake
from tests.streams.test_terminal import resize


@pytest.fixture
def pty(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """(the emulator's end, a terminal that stands in for podbot's descriptors 0 and 1)."""
    controller, terminal = os.openpty()
    for name in ("is_terminal", "raw_mode", "terminal_size"):
        real = getattr(attach, name)
        monkeypatch.setattr(attach, name, lambda fd, real=real: real(terminal if fd in (0, 1) else fd))
    for name in ("write", "drain"):
        real = getattr(answers, name)
        monkeypatch.setattr(
            answers, name, lambda _, second, real=real: real(terminal, terminal if second == 1 else second)
        )
    monkeypatch.setattr(answers, "SILENCE", 0.1)  # this terminal answers nothing
    monkeypatch.setattr(attach, "_in_foreground", lambda: True)
    yield controller, terminal
    os.close(controller)
    os.close(terminal)


@pytest.fixture
def wake() -> Iterator[Wake]:
    with contextlib.closing(Wake()) as made:
        yield made


def said(controller: int) -> bytes:
    os.set_blocking(controller, False)
    try:
        return os.read(controller, 1000)
    except BlockingIOError:
        return b""


def test_without_a_terminal_it_is_the_three_descriptors(wake: Wake) -> None:
    seen: list[ExecIO] = []

    def work(io: ExecIO) -> ExecStatus:
        seen.append(io)
        return ExecStatus(3)

    assert attached(work, tty=False, wake=wake) == ExecStatus(3)
    (io,) = seen
    assert (io.stdin, io.stdout, io.stderr, io.size()) == (0, 1, 2, None)
    assert isinstance(io.terminal(), contextlib.nullcontext)


def test_size_and_raw_mode_are_the_terminal_s(pty: tuple[int, int], wake: Wake) -> None:
    resize(pty[0], 101, 33)
    before = termios.tcgetattr(pty[1])

    def work(io: ExecIO) -> ExecStatus:
        assert io.size() == Size(columns=101, rows=33)
        with io.terminal():
            assert not termios.tcgetattr(pty[1])[3] & termios.ICANON
        return ExecStatus(0)

    assert both_terminals()
    assert attached(work, tty=True, wake=wake) == ExecStatus(0)
    assert termios.tcgetattr(pty[1]) == before
    assert said(pty[0]) == b"", "a command that ended by itself left the screen as it wanted"


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
def test_modes_are_put_right_after_every_end(pty: tuple[int, int], wake: Wake, *, own_line: bool) -> None:
    """Issue 12.9: only after an abnormal one before."""
    attached(printing(b"\x1b[?25l\x1b[?2004hx"), tty=True, wake=wake, own_line=own_line)
    told = said(pty[0])
    assert told.index(b"\x1b[?25h") < told.index(b"\x1b[?2004l") < told.index(b"\x1b[J")
    assert (b"\r\n" in told) == own_line


def test_what_nobody_read_is_not_left_to_the_shell(pty: tuple[int, int], wake: Wake) -> None:
    os.write(pty[0], b"\x1b[1;1R\x1b[?6c")
    attached(printing(b"\x1b[6n\x1b[c"), tty=True, wake=wake)
    os.set_blocking(pty[1], False)
    with pytest.raises(BlockingIOError):
        os.read(pty[1], 100)


def test_a_command_that_prints_plain_text_costs_neither_time_nor_what_was_typed(
    pty: tuple[int, int], wake: Wake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "drain", None)
    os.write(pty[0], b"next\n")
    attached(printing(b"plain\n"), tty=True, wake=wake)
    assert said(pty[0]) == b"next\r\n", "the echo of before"
    assert os.read(pty[1], 100) == b"next\n"


def test_an_error_is_said_on_a_line_of_its_own(pty: tuple[int, int], wake: Wake) -> None:
    with pytest.raises(ValueError, match="x"):
        attached(printing(b"half a line", ValueError("x")), tty=True, wake=wake)
    assert said(pty[0]) == b"\r\n"


def test_a_terminal_that_was_given_back_or_lent_to_others_is_left_alone(
    pty: tuple[int, int], wake: Wake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach, "_in_foreground", lambda: False)
    attached(printing(b"\x1b[?25lx"), tty=True, wake=wake, own_line=True)
    assert said(pty[0]) == b""


def test_a_screen_that_was_never_touched_is_left_alone(pty: tuple[int, int], wake: Wake) -> None:
    def work(_io: ExecIO) -> ExecStatus:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        attached(work, tty=True, wake=wake)
    assert said(pty[0]) == b""

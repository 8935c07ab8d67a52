"""podbot's own descriptors, with real pseudo-terminals in their places."""

from __future__ import annotations

import contextlib
import os
import termios
from collections.abc import Iterator

import pytest

from podbot.cli import attach
from podbot.cli.attach import attached, both_terminals
from podbot.engine.port import Size
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.streams.terminal import RESET
from podbot.streams.wake import Wake
from tests.streams.test_terminal import resize


@pytest.fixture
def pty(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """(the emulator's end, a terminal that stands in for podbot's descriptors 0 and 1)."""
    controller, terminal = os.openpty()
    for name in ("is_terminal", "raw_mode", "reset_screen", "terminal_size"):
        real = getattr(attach, name)
        monkeypatch.setattr(attach, name, lambda fd, real=real: real(terminal if fd in (0, 1) else fd))
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


@pytest.mark.parametrize("status", [ExecStatus(143, 15), ExecStatus(137), ExecStatus(130)])
def test_a_screen_that_a_killed_command_left_is_reset(pty: tuple[int, int], status: ExecStatus, wake: Wake) -> None:
    def work(io: ExecIO) -> ExecStatus:
        with io.terminal():
            return status

    attached(work, tty=True, wake=wake)
    assert said(pty[0]) == RESET


def test_a_screen_is_reset_after_an_error(pty: tuple[int, int], wake: Wake) -> None:
    def work(io: ExecIO) -> ExecStatus:
        with io.terminal():
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        attached(work, tty=True, wake=wake)
    assert said(pty[0]) == RESET


def test_a_screen_that_was_never_touched_is_left_alone(pty: tuple[int, int], wake: Wake) -> None:
    def work(_io: ExecIO) -> ExecStatus:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        attached(work, tty=True, wake=wake)
    assert said(pty[0]) == b""

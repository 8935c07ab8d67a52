"""Connects podbot's own descriptors to a command, and restores the terminal whatever happens."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from podbot.engine.port import Size
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.streams.terminal import RawMode, is_terminal, raw_mode, terminal_size
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.streams.screen import ScreenModes


def both_terminals() -> bool:
    """Whether stdin and stdout are terminals; only then does the command inside get one."""
    return is_terminal(0) and is_terminal(1)


def size() -> Size | None:
    """The terminal's size, or None when it cannot be read."""
    found = terminal_size(1) or terminal_size(0)
    return Size(*found) if found else None


def in_foreground() -> bool:
    """Whether this process can read and set the terminal without being stopped.

    True on a terminal that is not the controlling one (`setsid podbot …`), where no process is in the background.
    """
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError as exc:
        return exc.errno == errno.ENOTTY


def attached(
    work: Callable[[ExecIO], ExecStatus],
    *,
    tty: bool,
    wake: Wake,
    own_line: bool = False,
    foreground: Callable[[], bool] = in_foreground,
    drain: Callable[[int, int], bool] | None = None,
) -> ExecStatus:
    """Run ``work`` with the process's streams; the command gets the terminal, raw, when ``tty``.

    ``wake``: what the command's relay polls. ``own_line``: podbot says more behind a command that ends well, too.
    ``foreground``: whether the terminal may be touched; a process in the background would be stopped by it. ``drain``:
    discards the terminal's late answers; if None, ``terminal_answers.drain``.
    """
    if not tty:
        return work(ExecIO(0, 1, 2))
    from podbot.cli.job import TerminalJob  # imported here: only a command with a terminal needs them
    from podbot.streams import terminal_answers
    from podbot.streams.screen import ScreenModes

    screen = ScreenModes()
    job = TerminalJob(wake, output=1)
    lent = False

    @contextlib.contextmanager
    def terminal() -> Iterator[None]:
        nonlocal lent
        with raw_mode(0) as mode, job.using(mode):
            lent = True
            try:
                yield
            finally:
                if mode.taken and foreground():
                    _settle(screen, mode, own_line=own_line, drain=drain or terminal_answers.drain)

    try:
        return work(ExecIO(0, 1, 2, size=size, terminal=terminal, job=job, screen=screen))
    except BaseException:
        if lent and not own_line and foreground():
            # An error message follows; the terminal, in its own mode again, adds the carriage return itself.
            terminal_answers.write(1, screen.next_line()[1:])
        raise


def _settle(screen: ScreenModes, mode: RawMode, *, own_line: bool, drain: Callable[[int, int], bool]) -> None:
    """The terminal as a shell expects it, and nothing in its input that a shell would take for typed."""
    from podbot.streams import terminal_answers

    end = screen.end(own_line=own_line)
    if end and terminal_answers.write(1, end) and screen.commanded:
        drain(0, 1)
        mode.give_back(emptied=True)

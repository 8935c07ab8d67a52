"""podbot's own descriptors as a command's streams, with the terminal given back whatever happens."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from podbot.cli.job import TerminalJob
from podbot.engine.port import Size
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.streams.terminal import RawMode, is_terminal, raw_mode, terminal_size
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.streams.screen import ScreenModes


def both_terminals() -> bool:
    """stdin and stdout are terminals: the only case in which the command inside gets one."""
    return is_terminal(0) and is_terminal(1)


def size() -> Size | None:
    """The terminal's size, or None when it cannot be read."""
    found = terminal_size(1) or terminal_size(0)
    return Size(*found) if found else None


def attached(work: Callable[[ExecIO], ExecStatus], *, tty: bool, wake: Wake, own_line: bool = False) -> ExecStatus:
    """Run ``work`` with the process's streams; the command gets the terminal, raw, when ``tty``.

    ``wake``: what the command's relay polls. ``own_line``: podbot says more behind a command that ends well, too.
    """
    if not tty:
        return work(ExecIO(0, 1, 2))
    from podbot.streams import answers  # here, for a command without a terminal needs neither
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
                _settle(screen, mode, own_line=own_line)

    try:
        return work(ExecIO(0, 1, 2, size=size, terminal=terminal, job=job, screen=screen))
    except BaseException:
        if lent and not own_line and _in_foreground():
            answers.write(1, screen.next_line()[1:])  # what is wrong will be said; a terminal makes the \r itself
        raise


def _settle(screen: ScreenModes, mode: RawMode, *, own_line: bool) -> None:
    """The terminal as a shell expects it, and nothing in its input that a shell would take for typed.

    Not for a process in the background, which would be stopped by it.
    """
    if not mode.taken or not _in_foreground():
        return
    from podbot.streams import answers

    end = screen.end(own_line=own_line)
    if end and answers.write(1, end) and screen.commanded:
        answers.drain(0, 1)
        mode.give_back(emptied=True)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False

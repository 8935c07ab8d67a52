"""podbot's own descriptors as a command's streams, with the terminal given back whatever happens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from podbot.cli.job import TerminalJob
from podbot.engine.port import Size
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.streams.terminal import is_terminal, raw_mode, reset_screen, terminal_size
from podbot.streams.wake import Wake


def both_terminals() -> bool:
    """stdin and stdout are terminals: the only case in which the command inside gets one."""
    return is_terminal(0) and is_terminal(1)


def size() -> Size | None:
    """The terminal's size, or None when it cannot be read."""
    found = terminal_size(1) or terminal_size(0)
    return Size(*found) if found else None


def attached(work: Callable[[ExecIO], ExecStatus], *, tty: bool, wake: Wake) -> ExecStatus:
    """Run ``work`` with the process's streams; the command gets the terminal, raw, when ``tty``.

    ``wake``: what the command's relay polls.
    """
    if not tty:
        return work(ExecIO(0, 1, 2))
    touched = False
    job = TerminalJob(wake, output=1)

    @contextlib.contextmanager
    def terminal() -> Iterator[None]:
        nonlocal touched
        touched = True
        with raw_mode(0) as mode, job.using(mode):
            yield

    clean = False
    try:
        status = work(ExecIO(0, 1, 2, size=size, terminal=terminal, job=job))
        clean = status.signal is None and status.code < 128
    finally:
        if touched and not clean:
            reset_screen(1)
    return status

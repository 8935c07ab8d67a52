"""The operator's terminal: its size, raw mode, and restoring its mode."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

_MOST_ENDS = 16  # more than a person types; bounds a terminal that reports end of file for ever


def is_terminal(fd: int) -> bool:
    """Whether ``fd`` is open and a terminal."""
    try:
        return os.isatty(fd)
    except OSError:
        return False


def terminal_size(fd: int) -> tuple[int, int] | None:
    """(columns, rows) of the terminal at ``fd``; None when it has no size or reports 0."""
    try:
        size = os.get_terminal_size(fd)
    except OSError:
        return None
    return (size.columns, size.lines) if size.columns > 0 and size.lines > 0 else None


class RawMode:
    """Raw mode, in which every key is passed on unchanged; it can be taken and given back any number of times.

    The mode is restored with TCSANOW: waiting for output to drain would hang on a terminal stopped by Ctrl-S.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._before: list[Any] | None = None

    def take(self) -> None:
        """Switch to raw mode. Raises termios.error.

        A background process is stopped here until it is in the foreground.
        """
        import termios
        import tty

        termios.tcflow(self._fd, termios.TCOON)  # only waits, so that the mode read next is not a shell's
        if self._before is None:
            self._before = termios.tcgetattr(self._fd)
        _drop_end_of_file(self._fd)
        tty.setraw(self._fd, termios.TCSANOW)

    @property
    def taken(self) -> bool:
        """Whether the terminal is in raw mode."""
        return self._before is not None

    def give_back(self, *, emptied: bool = False) -> None:
        """Restore the mode. No effect when it was restored already: a background process would be stopped by it.

        ``emptied``: discard unread input, whether typed or sent by the terminal.
        """
        import termios

        before, self._before = self._before, None
        if before is not None:
            with contextlib.suppress(termios.error):  # the terminal is gone
                if emptied:
                    termios.tcflush(self._fd, termios.TCIFLUSH)
                termios.tcsetattr(self._fd, termios.TCSANOW, before)


@contextlib.contextmanager
def raw_mode(fd: int) -> Iterator[RawMode]:
    """Raw mode while the block runs; the former mode is restored however it ends."""
    mode = RawMode(fd)
    mode.take()
    try:
        yield mode
    finally:
        mode.give_back()


def _drop_end_of_file(fd: int) -> None:
    """Discard an unread end of file that was typed earlier: in raw mode it would be read as a NUL byte.

    ``script`` types one when its own input ends; the terminal inside would then echo ``^@`` before the agent's first
    byte. If a whole line follows it, the two cannot be distinguished, and it stays.
    """
    import fcntl
    import select
    import termios

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    waiting = bytearray(4)
    for _ in range(_MOST_ENDS):
        if poll.poll(0) != [(fd, select.POLLIN)]:
            return
        fcntl.ioctl(fd, termios.FIONREAD, waiting)
        if any(waiting):  # a line; an end of file counts as 0 bytes
            return
        os.read(fd, 1)

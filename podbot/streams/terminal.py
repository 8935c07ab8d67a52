"""The operator's terminal: its size, raw mode, and giving it back."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

_MOST_ENDS = 16  # typed by a person; more would be a terminal that reports them without end


def is_terminal(fd: int) -> bool:
    """Whether ``fd`` is open and a terminal."""
    try:
        return os.isatty(fd)
    except OSError:
        return False


def terminal_size(fd: int) -> tuple[int, int] | None:
    """(columns, rows) of the terminal at ``fd``; None when it has none or says 0."""
    try:
        size = os.get_terminal_size(fd)
    except OSError:
        return None
    return (size.columns, size.lines) if size.columns > 0 and size.lines > 0 else None


class RawMode:
    """The mode in which every key goes through as it is, taken and given back any number of times.

    TCSANOW on the way back: waiting for output to drain would hang on a terminal stopped by ctrl-s.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._before: list[Any] | None = None

    def take(self) -> None:
        """A process in the background is stopped here until it is in the foreground. Raises termios.error."""
        import termios
        import tty

        termios.tcflow(self._fd, termios.TCOON)  # waits, and changes nothing: the mode read next is no shell's own
        if self._before is None:
            self._before = termios.tcgetattr(self._fd)
        _drop_end_of_file(self._fd)
        tty.setraw(self._fd, termios.TCSANOW)

    @property
    def taken(self) -> bool:
        """It has not been given back."""
        return self._before is not None

    def give_back(self, *, emptied: bool = False) -> None:
        """Nothing when it was given back already: a process in the background would be stopped by it.

        ``emptied``: what was typed, or answered, and not read by anybody is dropped.
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
    """Raw for as long as the block runs; the former mode comes back on every way out."""
    mode = RawMode(fd)
    mode.take()
    try:
        yield mode
    finally:
        mode.give_back()


def _drop_end_of_file(fd: int) -> None:
    """Take away an end of file that waits, typed before anybody read: in raw mode it would be read as a NUL byte.

    ``script`` types one when its own input is over; the terminal inside then echoes ``^@`` before the agent's first
    byte. With a whole line behind it, it cannot be told from that line, and stays.
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
        if any(waiting):  # a line; the mark of an end is not counted
            return
        os.read(fd, 1)

"""The operator's terminal: its size, raw mode, and giving it back."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

# Leaves the alternate screen, shows the cursor, ends mouse reports and bracketed paste, resets colours:
# what a full-screen agent that was killed had no chance to send.
RESET = b"\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[0m"


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


@contextlib.contextmanager
def raw_mode(fd: int) -> Iterator[None]:
    """Every key goes through as it is; the former mode comes back on every way out.

    TCSANOW on the way back: waiting for output to drain would hang on a terminal stopped by ctrl-s.
    """
    import termios
    import tty

    before = termios.tcgetattr(fd)
    tty.setraw(fd, termios.TCSANOW)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(fd, termios.TCSANOW, before)


def reset_screen(fd: int) -> None:
    """Undo what a killed full-screen program left on the terminal."""
    with contextlib.suppress(OSError):
        os.write(fd, RESET)

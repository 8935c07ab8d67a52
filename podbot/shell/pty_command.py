"""A command on its own terminal."""

from __future__ import annotations

from podbot.shell.call import bytes_result
from podbot.shell.live import Live
from podbot.shell.requests import signal_number, size_of
from podbot.shell.types import BytesResult


class Terminal(Live):
    """See :class:`~podbot.shell.types.TerminalSession`. One thread reads; others may write, resize and signal."""

    def read(self, timeout_seconds: float | None = None) -> bytes:
        """At least one byte of its output; ``b""`` when the command has ended or the time has passed."""
        piece = self.next(timeout_seconds)
        return b"" if piece is None else piece[1]

    def resize(self, columns: int, rows: int) -> None:
        """Change the terminal's size. Raises InvalidCommand."""
        self.running.resize(*size_of(columns, rows))

    def signal(self, number: int) -> None:
        """Send a signal, 1 to 64, to all processes of the command. Raises InvalidCommand."""
        self.running.signal(signal_number(number))

    def wait(self, timeout_seconds: float | None = None) -> BytesResult | None:
        """Wait for the command's end and drop its output; None when the time has passed first."""
        self.drop_output(timeout_seconds)
        return None if self.ended is None else bytes_result(self.call, self.ended)

"""Commands that are used while they run: one whose output is iterated over, and one on its own terminal."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from podbot.shell.call import Call, bytes_result
from podbot.shell.live import Live, Start
from podbot.shell.output_budget import STDERR
from podbot.shell.reconnecting import BROKEN
from podbot.shell.requests import signal_number, size_of, wait_of
from podbot.shell.types import BytesResult, Chunk


class Stream(Live):
    """See :class:`~podbot.shell.types.CommandStream`. One thread iterates; ``signal`` may come from another."""

    def __init__(self, call: Call, start: Start) -> None:
        super().__init__(call, start)
        self._feeder: threading.Thread | None = None

    def __iter__(self) -> Iterator[Chunk]:
        """Yield chunks as they arrive. The iteration also ends when the time limit has passed: see ``result``."""
        self._feed()
        while (piece := self.next(None)) is not None:
            yield Chunk("stderr" if piece[0] == STDERR else "stdout", piece[1])

    @property
    def result(self) -> BytesResult:
        """The command's result, with empty streams. Raises ValueError while the command runs."""
        if self.ended is None:
            raise ValueError("the command has not ended yet: iterate over its output to the end first")
        return bytes_result(self.call, self.ended)

    def signal(self, number: int) -> None:
        """Send a signal, 1 to 64, to all processes of the command. Raises InvalidCommand."""
        self.running.signal(signal_number(number))

    def terminate(self) -> None:
        """Begin to end the command: TERM, its grace, KILL. Any thread may call it; the iteration goes on to the end."""
        self.running.terminate()

    def _feed(self) -> None:
        """Write stdin in a separate thread: the command may print output before it reads."""
        if self.call.command.stdin == "open" and self._feeder is None:
            self._feeder = threading.Thread(target=self._write, daemon=True)
            self._feeder.start()

    def _write(self) -> None:
        with contextlib.suppress(*BROKEN, OSError):  # the thread that reads reports a broken connection
            self.write(self.call.data)
            self.running.close_stdin()


class Terminal(Live):
    """See :class:`~podbot.shell.types.TerminalSession`. One thread reads; others may write, resize and signal."""

    def read(self, timeout_seconds: float | None = None) -> bytes:
        """At least one byte of its output; ``b""`` when the command has ended or the time has passed."""
        piece = self.next(wait_of(timeout_seconds))
        return b"" if piece is None else piece[1]

    def resize(self, columns: int, rows: int) -> None:
        """Change the terminal's size. Raises InvalidCommand."""
        self.running.resize(*size_of(columns, rows))

    def signal(self, number: int) -> None:
        """Send a signal, 1 to 64, to all processes of the command. Raises InvalidCommand."""
        self.running.signal(signal_number(number))

    def wait(self, timeout_seconds: float | None = None) -> BytesResult | None:
        """Wait for the command's end and drop its output; None when the time has passed first."""
        self.drop_output(wait_of(timeout_seconds))
        return None if self.ended is None else bytes_result(self.call, self.ended)

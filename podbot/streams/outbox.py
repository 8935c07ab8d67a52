"""The queue for the command's stdin, and the end of that stdin."""

from __future__ import annotations

from podbot.streams.backlog import Backlog
from podbot.streams.sides import CommandSide


class Outbox(Backlog):
    """``deaf``: the command reads no more input. ``open``: its stdin has not been closed yet."""

    def __init__(self, side: CommandSide) -> None:
        super().__init__()
        self._side = side
        self._finishing = False
        self.open = True
        self.deaf = False

    def push(self, data: memoryview, *, answer: bool = False) -> None:
        """Queue ``data``; :meth:`flush` sends it."""
        if not self.deaf:
            super().push(data, answer=answer)

    def flush(self) -> None:
        """Send what fits now."""
        while self.pending:
            try:
                done = self._side.send(self.pieces())
            except BlockingIOError:
                return
            except OSError:
                # The command closed its stdin or ended; its output must still be read.
                self.deaf = True
                self.clear()
                return
            self.taken(done)
        self._shut()

    def finish(self) -> None:
        """No more will be pushed: send end of file after the queued data."""
        self._finishing = True
        self._shut()

    def _shut(self) -> None:
        if self._finishing and self.open and not self.pending:
            self.open = False
            self._side.shut_write()

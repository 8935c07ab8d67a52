"""What waits for the command's stdin, and that stdin's end."""

from __future__ import annotations

from typing import Protocol

from podbot.streams.backlog import Backlog


class Duplex(Protocol):
    """What the relay needs of an exec stream; see ``engine.port.ExecStream``."""

    leftover: bytes

    def fileno(self) -> int: ...
    def recv(self, limit: int) -> bytes: ...
    def send(self, data: bytes | memoryview) -> int: ...
    def shut_write(self) -> None: ...


class Outbox(Backlog):
    """``deaf``: the command takes no more input. ``open``: it has not been given its end yet."""

    def __init__(self, stream: Duplex) -> None:
        super().__init__()
        self._stream = stream
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
                done = self._stream.send(self.first())
            except BlockingIOError:
                return
            except OSError:
                # The command closed its stdin or ended; what it printed is still to be read.
                self.deaf = True
                self.clear()
                return
            self.taken(done)
        self._shut()

    def finish(self) -> None:
        """No more will be pushed: end of file behind what waits."""
        self._finishing = True
        self._shut()

    def _shut(self) -> None:
        if self._finishing and self.open and not self.pending:
            self.open = False
            self._stream.shut_write()

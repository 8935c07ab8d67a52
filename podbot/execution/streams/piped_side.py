"""The command's side of a relay where its stdin and stdout are named pipes."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterable, Iterator, Mapping

from podbot.execution.streams.pipes import CommandPipes
from podbot.streams.demux import Piece
from podbot.streams.sides import CHUNK, EngineSide, StreamHelperLost

DRAIN = 2.0  # seconds without a byte after which the rest of a command's output is given up


class PipedSide:
    """See ``CommandSide``. stdin and stdout go by named pipes; ``engine`` has stderr, and the end.

    ``held``: what was on stderr before the pipes were connected. ``receive`` also raises StreamHelperLost.
    """

    def __init__(self, engine: EngineSide, pipes: CommandPipes, held: bytes = b"") -> None:
        self._engine = engine
        self._pipes = pipes
        self._held = held
        self._heard = 0.0  # when something came last, once the command has ended
        self.ended = False

    @property
    def broken(self) -> bool:
        return self._engine.broken

    @property
    def truncated(self) -> bool:
        return self._engine.truncated

    @property
    def eager(self) -> bool:
        return bool(self._held) or self._engine.eager

    @property
    def interval(self) -> float | None:
        return DRAIN if self._engine.ended and not self.ended else None

    def wants(self, *, room: bool, sending: bool) -> Iterator[tuple[int, int]]:
        if self.ended:
            return
        yield from self._engine.wants(room=room, sending=False)
        if room:
            yield self._pipes.output, select.POLLIN
        if sending:
            yield self._pipes.input, select.POLLOUT

    def receive(self, ready: Mapping[int, int]) -> list[Piece]:
        pieces = []
        if self._held:
            pieces.append(Piece(2, self._held))
            self._held = b""
        if ready.get(self._pipes.output):
            pieces += self._read()
        elif self._engine.ended and time.monotonic() - self._heard >= DRAIN:
            raise StreamHelperLost
        over = self._engine.ended
        # nothing is left to read stdout of that stream.
        pieces += (piece for piece in self._engine.receive(ready) if piece.stream == 2)
        if self._engine.ended and not over:
            self._heard = time.monotonic()
            self._pipes.finish()
        return pieces

    def _read(self) -> Iterator[Piece]:
        data = os.read(self._pipes.output, CHUNK)
        self._heard = time.monotonic()
        if data:
            yield Piece(1, data)
        elif self._pipes.is_done():
            self.ended = True
        else:
            raise StreamHelperLost

    def send(self, pieces: Iterable[memoryview]) -> int:
        return os.writev(self._pipes.input, list(pieces))

    def shut_write(self) -> None:
        self._pipes.close_input()

    def hand_over(self) -> tuple[int, ...]:
        return self._pipes.hand_over()

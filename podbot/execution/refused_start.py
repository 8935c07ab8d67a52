"""The engine's connection, on which its runtime may say, in place of output, that it could not start the command.

Those are several lines in the words of programs of which the user has not heard; podbot says it in its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podbot.engine.port import StartRefusal
from podbot.streams.demux import Piece
from podbot.streams.sides import Duplex, EngineSide


class WatchedSide(EngineSide):
    """See :class:`~podbot.streams.sides.CommandSide`.

    ``read``: what the whole output says if the runtime wrote it. ``runs``: whether the command is running after all.
    ``explain``: podbot's words for a refusal, or None if the output is the command's own; it may raise.
    """

    def __init__(
        self,
        stream: Duplex,
        *,
        tty: bool,
        read: Callable[[bytes], StartRefusal | None],
        runs: Callable[[], bool],
        explain: Callable[[StartRefusal], bytes | None],
    ) -> None:
        super().__init__(stream, tty=tty)
        self._read_refusal, self._runs, self._explain = read, runs, explain
        self._error_stream = 1 if tty else 2
        self._held: list[Piece] = []
        self._settled = False

    def receive(self, ready: Mapping[int, int]) -> list[Piece]:
        """See CommandSide. The first output is held back while it reads like a refusal."""
        pieces = super().receive(ready)
        if self._settled:
            return pieces
        new = [Piece(stream, bytes(data)) for stream, data in pieces if data]
        first = bool(new) and not self._held
        self._held += new
        if not self._held:
            return []
        refusal = self._read_refusal(b"".join(bytes(data) for _, data in self._held))
        if refusal is None or (first and not self.ended and self._runs()):
            return self._release()
        if not self.ended:
            return []
        text = self._explain(refusal)
        return self._release() if text is None else [Piece(self._error_stream, text)]

    def _release(self) -> list[Piece]:
        held, self._held, self._settled = self._held, [], True
        return held

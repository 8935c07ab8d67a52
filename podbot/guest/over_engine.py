"""A guest that runs as one exec of the engine and uses its stdin and stdout, for sandboxes without a reachable socket.

podbot first sends the guest's text over that connection, so no file has to be mounted or uploaded.
"""

from __future__ import annotations

import errno
import time
from collections import deque

from podbot.engine.port import Engine, ExecStream
from podbot.errors import ChannelLost, ContainerError, ContainerNotFound, NoGuest
from podbot.exec_spec import ExecSpec
from podbot.guest.channel import Channel
from podbot.guest.link import PATIENCE, Patience
from podbot.guest.source import guest_text
from podbot.streams.demux import BadFrame, FrameDemux

_LOADER = (
    'import os,sys\nt=b""\nwhile len(t)<{size}:\n d=os.read(0,{size}-len(t))\n if not d:sys.exit(1)\n t+=d\n'
    'sys.argv=["guest","stream"]\nexec(compile(t,"guest","exec"))'
)
_STATUS = 1.0  # seconds
_MISSING = (126, 127)  # exit statuses with which engines report a program that cannot be started


class EngineLink:
    """A link over a hijacked connection, which it owns. The guest's stderr is discarded."""

    def __init__(self, stream: ExecStream, where: str) -> None:
        self._stream, self.where = stream, where
        self._demux = FrameDemux()
        self._ready: deque[bytes] = deque()
        self.ended = False  # whether the other side has ended the connection
        self._take(stream.leftover)

    def _take(self, data: bytes) -> None:
        try:
            self._ready.extend(bytes(piece.data) for piece in self._demux.feed(data) if piece.stream == 1)
        except BadFrame:
            raise OSError(errno.EPROTO, "") from None

    def fileno(self) -> int:
        """See Link."""
        return self._stream.fileno()

    def receive(self, limit: int) -> bytes:
        """See Link."""
        if not self._ready:
            try:
                data = self._stream.recv(limit)
            except ConnectionError:
                data = b""
            if not data:
                self.ended = True
                return b""
            self._take(data)
        if not self._ready:
            raise BlockingIOError
        found = b"".join(self._ready)
        self._ready.clear()
        return found

    def send(self, data: memoryview) -> int:
        """See Link."""
        try:
            return self._stream.send(data)
        except ConnectionError:
            self.ended = True
            raise

    def close(self) -> None:
        """See Link."""
        self._stream.close()


def open_over_engine(
    engine: Engine, container: str, patience: Patience = PATIENCE, *, status_seconds: float = _STATUS
) -> Channel:
    """Start another guest in ``container``, which ends with the channel.

    ``status_seconds``: within which the engine must know the status of an exec whose connection it has closed.

    Raises NoGuest when the container has no python3, ChannelLost, and ContainerError subclasses of the engine.
    """
    text = guest_text().encode()
    spec = ExecSpec(command=("python3", "-I", "-S", "-c", _LOADER.format(size=len(text))))
    exec_id = engine.exec_create(container, spec)
    stream = engine.exec_start(exec_id, tty=False, size=None)
    link = EngineLink(stream, container)
    try:
        return Channel.open(link, patience, preamble=text)
    except ChannelLost as exc:
        # The status explains a guest that ended by itself. If it was only silent, podbot's closing the connection has
        # ended it, and its status says nothing.
        raise (_explained(engine, exec_id, container, status_seconds) if link.ended else None) or exc from None


def _explained(engine: Engine, exec_id: str, container: str, seconds: float) -> NoGuest | None:
    """The cause, from the exit status, of a guest's end before it answered; None if the status does not show one.

    The engine may close the connection before it knows the status.
    """
    until = time.monotonic() + seconds
    while (code := _exit_code(engine, exec_id)) is None and time.monotonic() < until:
        time.sleep(0.02)
    if code in _MISSING:
        return NoGuest(where=container, reason="python3 cannot be started in it")
    return None if code is None else NoGuest(where=container, reason="its python3 cannot run a guest")


def _exit_code(engine: Engine, exec_id: str) -> int | None:
    try:
        return engine.exec_inspect(exec_id).exit_code
    except ContainerNotFound:
        raise
    except ContainerError:
        return None

"""Real sockets, pipes and threads for relay tests."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator

from podbot.engine.stream import SocketStream

PATIENCE = 20.0  # seconds; a bound on a hang, not a measurement


def frame(stream: int, data: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


@contextlib.contextmanager
def stream_pair(
    leftover: bytes = b"", *, send_buffer: int | None = None
) -> Iterator[tuple[SocketStream, socket.socket]]:
    """(our exec stream, the engine's end of it)."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(PATIENCE)
    if send_buffer is not None:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    stream = SocketStream(ours, leftover)
    with contextlib.closing(stream), theirs:
        yield stream, theirs


class Pipe:
    """A pipe whose ends may be closed early."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        self._open = {self.read, self.write}

    def close(self, *ends: int) -> None:
        for end in ends or tuple(self._open):
            if end in self._open:
                self._open.remove(end)
                os.close(end)

    def drain(self) -> bytes:
        """Everything that is written to the pipe until its writers are gone."""
        return b"".join(iter(lambda: os.read(self.read, 1 << 16), b""))


@contextlib.contextmanager
def pipes(count: int) -> Iterator[list[Pipe]]:
    made = [Pipe() for _ in range(count)]
    try:
        yield made
    finally:
        for pipe in made:
            pipe.close()


@contextlib.contextmanager
def in_thread(work: Callable[[], None]) -> Iterator[None]:
    """``work`` runs in parallel with the block and has ended with it; its failure is the block's."""
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as exc:  # noqa: BLE001 - handed to the test's own thread
            failed.append(exc)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    yield
    thread.join(PATIENCE)
    assert not thread.is_alive()
    if failed:
        raise failed[0]


def read_exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(size - len(data))
        assert piece, f"the stream ended after {len(data)} of {size} bytes"
        data += piece
    return bytes(data)

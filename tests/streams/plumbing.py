"""Real sockets, pipes and threads for relay tests."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

from podbot.engine.transport import SocketStream
from podbot.streams.relay import Relay
from tests.waiting import HANG, attempts, wait_until


def frame(stream: int, data: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


@contextlib.contextmanager
def stream_pair(
    leftover: bytes = b"", *, send_buffer: int | None = None
) -> Iterator[tuple[SocketStream, socket.socket]]:
    """(our exec stream, the engine's end of it)."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(HANG)
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
    try:
        yield
    finally:
        # After a failure in the block, too: the thread would go on with descriptors that the next test reuses.
        thread.join(HANG)
    assert not thread.is_alive()
    if failed:
        raise failed[0]


def run_until(relay: Relay, done: Callable[[], object]) -> None:
    """Relay until ``done`` is true; the relay itself has nothing to report until then."""
    for _ in attempts():
        if done():
            return
        assert relay.run(time.monotonic() + 0.01) == "deadline"


class Received:
    """What has arrived at a descriptor and was not taken yet. It is read without waiting."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd, self._data = fd, bytearray()

    def arrives(self, relay: Relay, wanted: bytes) -> None:
        """Relay until as much as ``wanted`` is here, which it must be, and take it."""
        run_until(relay, lambda: self._read() >= len(wanted))
        found, self._data = bytes(self._data), bytearray()
        assert found == wanted

    def _read(self) -> int:
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._fd, 1 << 16):
                self._data += piece
        return len(self._data)


@contextlib.contextmanager
def nothing_left_open() -> Iterator[None]:
    """What is opened in the block is closed soon after it.

    Files are compared, not numbers counted: threads of earlier tests may still be closing theirs, and a thread of the
    block's own may close its last one a moment after the block has ended.
    """
    before = _open_files()
    yield
    wait_until(lambda: not _open_files() - before)


def _open_files() -> Counter[str]:
    """What this process's descriptors refer to; each pipe and each socket has a number of its own in that."""
    found = Counter[str]()
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that listed the directory, and those closed meanwhile
            found[os.readlink(f"/proc/self/fd/{fd}")] += 1
    return found


def read_exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(size - len(data))
        assert piece, f"the stream ended after {len(data)} of {size} bytes"
        data += piece
    return bytes(data)

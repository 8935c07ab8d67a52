"""A guest that follows a script: a real unix socket in a directory, and what it sends is up to the test."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator

from podbot.guest import frames
from podbot.guest.link import Patience

FACTS = {
    "version": frames.VERSION, "python": "3.11.2", "uid": 0, "gid": 0, "pid": 2,
    "cwd": "/", "root": "/", "shell": "/bin/sh", "path": "/bin", "home": "/root",
}  # fmt: skip
ENDED = {
    "code": 0, "signal": None, "timed_out": False, "out_of_memory": False, "seconds": 0.1, "survivors": 0,
    "memory_kills": 0, "forks_refused": 0, "disk_full": False, "left_job": 0,
}  # fmt: skip
LONG = 60.0  # seconds for what must come
PATIENT = Patience(greeting=LONG, silence=LONG, answer=LONG)


class Peer:
    """The liar's end of a connection. The script ends when podbot closes the connection."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._decoder, self._frames = frames.Decoder(), list[tuple[int, int, bytes]]()

    def hear(self, *kinds: int) -> tuple[int, int, bytes]:
        """The next frame of one of ``kinds``, or of any."""
        while True:
            while not self._frames:
                data = self.socket.recv(1 << 16)
                if not data:
                    raise ConnectionError
                self._frames += self._decoder.feed(data)
            found = self._frames.pop(0)
            if not kinds or found[0] in kinds:
                return found

    def say(self, kind: int, ident: int, words: object = b"") -> None:
        """Send a frame. ``words`` that are not bytes are sent as JSON."""
        payload = words if isinstance(words, bytes) else json.dumps(words).encode()
        self.socket.sendall(frames.frame(kind, ident, payload))

    def greet(self) -> None:
        """Answer the greeting as a guest does."""
        _, ident, _ = self.hear(frames.HELLO)
        self.say(frames.WELCOME, ident, FACTS)

    def begin(self) -> int:
        """Greet, and report the first command as started; returns its id."""
        self.greet()
        _, ident, _ = self.hear(frames.START)
        self.say(frames.STARTED, ident, {"pid": 7, "job": 0})
        return ident

    def stay(self) -> None:
        """Read what podbot sends until it closes the connection."""
        while True:
            self.hear()

    def silence(self) -> None:
        """Neither read nor write until podbot closes the connection."""
        self.socket.settimeout(None)
        while self.socket.recv(1, socket.MSG_PEEK):
            if _LEFT.wait(0.01):
                return


_LEFT = threading.Event()


@contextlib.contextmanager
def liar(directory: str, script: Callable[[Peer], None]) -> Iterator[None]:
    """Listens in ``directory``, and follows ``script`` on the first connection."""
    holder = os.open(directory, os.O_PATH)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"/proc/self/fd/{holder}/channel")
    os.close(holder)
    listener.listen()
    wrong: list[BaseException] = []

    def follow() -> None:
        try:
            connected, _ = listener.accept()
        except OSError:
            return
        with connected, contextlib.suppress(ConnectionError):
            try:
                script(Peer(connected))
            except ConnectionError:
                raise
            except BaseException as exc:  # noqa: BLE001 - reported below
                wrong.append(exc)

    _LEFT.clear()
    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        _LEFT.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(LONG)
        listener.close()
        assert not thread.is_alive()
        assert not wrong, wrong

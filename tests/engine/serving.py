"""A small HTTP server on a unix socket that replays answers of a real Podman."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from podbot.engine.endpoint import Endpoint
from tests.waiting import pause

RECORDED = os.path.join(os.path.dirname(__file__), "recorded")
VERSIONS = sorted(name.removeprefix("podman-").removesuffix(".json") for name in os.listdir(RECORDED))
_chosen = ["4.3.1"]  # the last one counts


@contextlib.contextmanager
def recordings_of(version: str) -> Iterator[None]:
    """:func:`recorded` and :func:`replay` use this Podman while the block runs."""
    _chosen.append(version)
    try:
        yield
    finally:
        _chosen.pop()


def recorded() -> dict[str, dict[str, Any]]:
    """Answers of a Podman by name: ``request``, ``status``, ``headers``, ``body`` (reduced). See e2e/record.py."""
    with open(os.path.join(RECORDED, f"podman-{_chosen[-1]}.json"), encoding="utf-8") as file:
        found: dict[str, dict[str, Any]] = json.load(file)
    return found


@dataclass(frozen=True)
class Request:
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Request, socket.socket], None]


def http(status: int, body: bytes | str = b"", headers: dict[str, str] | None = None) -> Answer:
    """An answer with a Content-Length."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    head = "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""]).encode()
    return lambda _request, sock: sock.sendall(head + data)


def replay(name: str) -> Answer:
    """An answer of a real Podman: the one that is selected at the time of the request."""

    def answer(request: Request, sock: socket.socket) -> None:
        entry = recorded()[name]
        http(entry["status"], entry["body"], entry["headers"])(request, sock)

    return answer


def raw(data: bytes) -> Answer:
    """The bytes as they are, then the connection is closed."""

    def answer(_request: Request, sock: socket.socket) -> None:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_RDWR)

    return answer


class Drip:
    """Answers with ``start`` at once and ``data`` byte by byte, until the client disconnects, or for a minute.

    ``left``: it did disconnect.
    """

    def __init__(self, data: bytes, *, start: bytes = b"") -> None:
        self._data, self._start = data, start
        self.left = threading.Event()

    def once(self, listener: socket.socket) -> threading.Thread:
        """Answer the first connection in this way, in a thread; ``listener`` gets a limit, so that the thread ends."""
        listener.settimeout(60)

        def serve() -> None:
            try:
                sock, _ = listener.accept()
            except OSError:  # nobody has come
                return
            with sock:
                try:
                    sock.recv(65536)
                except OSError:
                    self.left.set()
                    return
                self(Request("", "", {}, b""), sock)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        return thread

    def __call__(self, _request: Request, sock: socket.socket) -> None:
        tail = itertools.chain((bytes([byte]) for byte in self._data), itertools.repeat(b"x"))
        for piece in itertools.chain((self._start,), itertools.islice(tail, 6000)):
            try:
                sock.sendall(piece)
            except OSError:
                self.left.set()
                return
            pause(0.01)


@dataclass
class Server:
    """``answers`` are used up in order, over as many connections as the client makes."""

    path: str
    answers: list[Answer]
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint("unix", "flag --engine-socket", path=self.path)

    def serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = listener.accept()
                self.connections += 1
                threading.Thread(target=self._converse, args=(sock,), daemon=True).start()

    def _converse(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            data = b""
            while self.answers:
                request, data = _read(sock, data)
                if request is None:
                    return
                self.requests.append(request)
                self.answers.pop(0)(request, sock)


def _read(sock: socket.socket, data: bytes) -> tuple[Request | None, bytes]:
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        if not piece:
            return None, b""
        data += piece
    head, _, data = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, target, _ = first.split(" ")
    headers = dict(line.split(": ", 1) for line in lines)
    size = int(headers.get("Content-Length", 0))
    while len(data) < size:
        piece = sock.recv(65536)
        if not piece:
            return None, b""
        data += piece
    return Request(method, target, headers, data[:size]), data[size:]


@contextlib.contextmanager
def serving(path: str, *answers: Answer) -> Iterator[Server]:
    """A server at ``path`` for the block."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        server = Server(path, list(answers))
        thread = threading.Thread(target=server.serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()

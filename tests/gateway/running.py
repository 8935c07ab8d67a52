"""A real gateway process with a real listening socket, and servers on loopback to reach through it."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from podbot.frozen import replace
from podbot.gateway import gateway_client
from podbot.gateway.gateway_client import GatewayProcess
from podbot.gateway.gateway_settings import GatewaySettings
from tests.waiting import HANG


class Running:
    """``port``: where the gateway listens. ``events``: what it has reported."""

    def __init__(self, process: GatewayProcess, settings: GatewaySettings, port: int, events: list[Mapping[str, Any]]):
        self.process, self.settings, self.port, self.events = process, settings, port, events

    @property
    def pid(self) -> int:
        return self.process.pid

    def connect(self) -> socket.socket:
        found = socket.create_connection(("127.0.0.1", self.port), timeout=HANG)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found

    def exchange(self, data: bytes) -> bytes:
        """What the gateway answers to ``data`` before it closes the connection."""
        with self.connect() as client:
            client.sendall(data)
            return everything(client)

    def tunnel(self, target: str) -> socket.socket:
        client = self.connect()
        client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        assert head(client).startswith(b"HTTP/1.1 200 ")
        return client


def ask(path: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """What the gateway's control socket answers."""
    return gateway_client.ask(path, request, seconds=HANG)


def head(client: socket.socket) -> bytes:
    """A head, and not a byte more."""
    found = b""
    while not found.endswith(b"\r\n\r\n"):
        more = client.recv(1)
        assert more, found
        found += more
    return found


def exactly(client: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer at the end. A socket with a timeout does not wait for all of them (MSG_WAITALL)."""
    found = bytearray()
    while len(found) < size and (more := client.recv(size - len(found))):
        found += more
    return bytes(found)


def everything(client: socket.socket) -> bytes:
    found = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while more := client.recv(1 << 16):
            found += more
    return bytes(found)


@contextlib.contextmanager
def gateway(place: Path, **settings: Any) -> Iterator[Running]:
    """A running gateway, whose files are in ``place``."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    port = listener.getsockname()[1]
    found = GatewaySettings("box", port, str(place / "net.jsonl"), str(place / "control"))
    found = replace(found, **settings)
    events: list[Mapping[str, Any]] = []
    process = GatewayProcess(found, events.append)
    process.start_reading()
    try:
        process.pass_listener(listener, seconds=HANG)
        yield Running(process, found, port, events)
    finally:
        process.close()


@contextlib.contextmanager
def server(serve: Callable[[socket.socket], object], address: str = "127.0.0.1") -> Iterator[int]:
    """The port of a server that calls ``serve`` in a thread for each connection, and closes that afterwards."""
    threads: list[threading.Thread] = []

    def handle(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(HANG)
            serve(connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=handle, args=(connection,), daemon=True))
            threads[-1].start()

    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family, backlog=300) as listener:
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield listener.getsockname()[1]
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
    accepting.join(HANG)
    for thread in threads:
        thread.join(HANG)


def echo(connection: socket.socket) -> None:
    while data := connection.recv(1 << 16):
        connection.sendall(data)


@contextlib.contextmanager
def unused_port() -> Iterator[int]:
    """A port of loopback on which nothing listens for the block: it is bound, so that nothing else gets it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def open_descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))

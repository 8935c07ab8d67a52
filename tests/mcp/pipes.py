"""A server over stdio, in a thread, and its client's side of the two descriptors."""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import Any

from podbot.mcp.serving import serve_over_stdio
from podbot.streams.wake import Wake
from tests.mcp.workspaces import Served

HELLO: dict[str, Any] = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def request(number: int, method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}


def call(number: int, name: str, arguments: Any = None) -> dict[str, Any]:
    return request(number, "tools/call", {"name": name, "arguments": arguments or {}})


def connected_descriptors() -> tuple[int, int]:
    """Two ends of a socket; the first one does not block."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return ours.detach(), theirs.detach()


class Pipes:
    """A server in a thread, on two pipes, or on two non-blocking sockets. ``client``: see serve_over_stdio."""

    def __init__(self, served: Served, *, sockets: bool = False, client: int | None = None) -> None:
        self.wake = Wake()
        stdin, self._in = connected_descriptors() if sockets else os.pipe()
        stdout, self._out = connected_descriptors() if sockets else os.pipe()[::-1]
        self._reader = os.fdopen(self._out, "rb")
        self.number: list[int | None] = []
        self._answers: dict[int, Any] = {}
        self._stdin = stdin
        self._thread = threading.Thread(target=self._serve, args=(served, stdin, stdout, client))
        self._thread.start()

    def _serve(self, served: Served, stdin: int, stdout: int, client: int | None) -> None:
        ended = serve_over_stdio(
            served.tools, stdin=stdin, stdout=stdout, wake=self.wake, emit=served.events.append, client=client
        )
        self.number.append(ended)
        os.close(stdout)

    def send(self, *messages: object) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            while line:
                line = line[os.write(self._in, line) :]

    def next(self) -> Any:
        """The next message."""
        line = self._reader.readline()
        assert line, "the server ended"
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def answer(self, number: int) -> Any:
        """The answer to a request. Answers come in any order: others' are kept for the next call."""
        while number not in self._answers:
            message = self.next()
            if "id" in message:
                self._answers[message["id"]] = message
        return self._answers.pop(number)

    def leave(self) -> None:
        os.close(self._in)
        self._in = -1

    def read_no_more(self) -> None:
        self._reader.close()

    def join(self) -> None:
        """Wait for its end without reading."""
        self._thread.join(60)
        assert not self._thread.is_alive()

    def ended(self) -> int | None:
        """Wait for its end, after which nothing follows on its output."""
        self._thread.join(60)
        assert not self._thread.is_alive()
        if not self._reader.closed:
            with self._reader:
                assert all(json.loads(line)["jsonrpc"] == "2.0" for line in self._reader)
        self.wake.close()
        os.close(self._stdin)
        if self._in >= 0:
            self.leave()
        return self.number[0]

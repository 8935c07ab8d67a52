"""The HTTP server of :class:`podbot.testing.FakeGitHub`, which can also simulate failures."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

LARGEST_REQUEST = 1 << 20


class Reply(NamedTuple):
    """A response to send."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}
    content_type: str = "application/json; charset=utf-8"


@dataclass
class Trouble:
    """A failure of the next ``times`` requests whose path contains ``path``."""

    times: int = 1
    path: str = ""
    reply: Reply | None = None
    wait: float = 0.0
    drip: float = 0.0
    drop: str = ""


def error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Reply:
    """A refusal in GitHub's form."""
    body = {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
    return Reply(status, json.dumps(body).encode(), headers or {})


Answering = Callable[[str, str, str, bytes], tuple[Reply, Trouble | None]]
"""(method, path, bearer token, body) -> the response, and the failure to simulate."""


class Served:
    """A listening server; ``close`` returns when it has stopped."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self.port = int(server.server_address[1])
        self._thread = threading.Thread(target=server.serve_forever, args=(0.005,), name="fake-github", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Refuse connections from now on."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def serve(port: int, answering: Answering, clock: Callable[[], float], tls: ssl.SSLContext | None = None) -> Served:
    """Listen on 127.0.0.1 (port 0: any), with TLS when there is a context."""

    class Handler(_Handler):
        answer = staticmethod(answering)
        now = staticmethod(clock)

    server = _Server(("127.0.0.1", port), Handler)
    if tls is not None:
        # The handshake is left to the connection's own thread, at its first read.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return Served(server)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a hundred sessions may renew at once

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that has disconnected."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    answer: Answering
    now: Callable[[], float]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Nothing on stderr."""

    def _serve(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(min(size, LARGEST_REQUEST))
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        path = self.path.partition("?")[0]
        reply, trouble = self.answer(self.command, path, token if scheme == "Bearer" else "", data)
        self.close_connection = True
        if trouble and trouble.drop == "before":
            self._reset()
            return
        head, body = self._head(reply), reply.body
        with contextlib.suppress(OSError):
            if trouble and trouble.drop:
                self.wfile.write(head + body[: len(body) // 2])
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
            elif trouble and trouble.drip:
                self.wfile.write(head)
                for byte in body:
                    self.wfile.write(bytes([byte]))
                    time.sleep(trouble.drip)
            else:
                self.wfile.write(head + body)

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = _serve  # noqa: N815 - the base class's names

    def _head(self, reply: Reply) -> bytes:
        now = self.now()
        headers = {
            "Server": "github.com",
            "Date": formatdate(now, usegmt=True),
            "Content-Type": reply.content_type,
            "Content-Length": str(len(reply.body)),
            "X-GitHub-Media-Type": "github.v3; format=json",
            "X-RateLimit-Limit": "5000",
            "X-RateLimit-Remaining": "4999",
            "X-RateLimit-Reset": str(int(now) + 3600),
            "X-RateLimit-Used": "1",
            "X-RateLimit-Resource": "core",
            "Connection": "close",
            **reply.headers,
        }
        reason = self.responses.get(reply.status, ("Unknown", ""))[0]
        lines = [f"HTTP/1.1 {reply.status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def _reset(self) -> None:
        """End the connection with a RST."""
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

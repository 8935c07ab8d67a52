"""A server on this host that a sandbox with the filtered network may reach.

It is on 127.0.0.2: programs in a sandbox use a proxy for that address, and not for 127.0.0.1.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = "127.0.0.2"
FLAGS = ("--network", "filtered")


class Site(BaseHTTPRequestHandler):
    """Answers every request with its path, its method and its headers. ``seen``: all requests."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, dict[str, str], bytes]]
    pages: dict[str, bytes]

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.seen.append((f"{self.command} {self.path}", headers, body))
        answer = self.pages.get(self.path.partition("?")[0], b"from outside")
        status = 400 if self.path.startswith(("/v1", "/v1beta")) else 200
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET  # noqa: N815 - the base class's name

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's
        del format, args


class Outside:
    """A server on this host."""

    def __init__(self, server: ThreadingHTTPServer, handler: type[Site]) -> None:
        self.port, self.seen, self.pages = server.server_port, handler.seen, handler.pages

    @property
    def url(self) -> str:
        return f"http://{HERE}:{self.port}"

    @property
    def rule(self) -> str:
        return f"{HERE}:{self.port}"


@contextlib.contextmanager
def outside(pages: dict[str, bytes] | None = None) -> Iterator[Outside]:
    handler = type("Handler", (Site,), {"seen": [], "pages": pages or {}})
    with ThreadingHTTPServer((HERE, 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Outside(server, handler)
        finally:
            server.shutdown()
            thread.join()


def allowed(*rules: str, **more: str) -> dict[str, str]:
    """Variables for podbot that allow these private hosts, and no others."""
    return {"PODBOT_NETWORK_PRIVATE": ",".join(rules), "PODBOT_NETWORK_ALLOW": "", **more}

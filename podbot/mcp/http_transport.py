"""The protocol over HTTP on loopback, for clients with a token."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

import anyio
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette

from podbot.errors import AddressUnusable
from podbot.mcp.bearer_tokens import BearerTokens
from podbot.mcp.bounded_lines import LINE_BYTES
from podbot.mcp.http_connections import BoundedConnection
from podbot.mcp.http_refusals import NamedRefusals

PATH = "/mcp"
SESSIONS = 100  # of clients of 2025-11-25
_ENDING = 1  # seconds for open requests at the end


class Address(NamedTuple):
    """Where to listen. ``port`` 0: any free one."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        """As in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """``PORT``, ``HOST:PORT`` or ``[IPV6]:PORT``. Raises AddressUnusable for what is not on loopback."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else "127.0.0.1"
    if not (port.isascii() and port.isdigit()):
        raise AddressUnusable(address=text, reason="that is neither PORT nor HOST:PORT")
    if len(port) > 5 or int(port) > 65535:
        raise AddressUnusable(address=text, reason="a port is a number from 0 to 65535")
    host = "127.0.0.1" if host == "localhost" else host
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise AddressUnusable(address=text, reason="only loopback is served: 127.0.0.1, ::1 or localhost")
    return Address(host, int(port))


def listening(address: Address) -> socket.socket:
    """A socket that listens there. Raises AddressUnusable."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(128)
    except OSError as error:
        made.close()
        raise AddressUnusable(address=address.authority, reason=error.strerror or str(error)) from error
    return made


def client_of_request() -> str:
    """The client whose token the present request has."""
    token = get_access_token()
    if token is None:
        raise RuntimeError("a request without a client")  # the SDK has answered 401 to those
    return token.client_id


def http_application(server: Server[Any], tokens: BearerTokens, address: Address) -> Starlette:
    """The ASGI application. A request needs a token and a Host header of this address; a web page's is refused.

    The one origin that is accepted is this address's. No page comes from this server, and a page that an earlier one
    served here has no token.
    """
    names = (f"{name}:{address.port}" for name in ("127.0.0.1", "localhost", "[::1]"))
    security = TransportSecuritySettings(
        allowed_hosts=sorted({*names, address.authority}), allowed_origins=[f"http://{address.authority}"]
    )
    # The issuer is part of the SDK's settings, and used only for metadata, which are not served without a resource.
    auth = AuthSettings(issuer_url=AnyHttpUrl(f"http://{address.authority}"), resource_server_url=None)
    application = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=security,
        max_request_body_size=LINE_BYTES,
        max_sessions=SESSIONS,
        auth=auth,
        token_verifier=tokens,
    )
    application.add_middleware(NamedRefusals, body_bytes=LINE_BYTES, sessions=SESSIONS)
    return application


class _Server(uvicorn.Server):
    """uvicorn without handlers of signals, which belong to podbot's command line."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing."""
        yield


async def serve_http(
    server: Server[Any],
    tokens: BearerTokens,
    listener: socket.socket,
    *,
    connection: type[BoundedConnection] = BoundedConnection,
) -> None:
    """Serve clients until cancelled. ``connection``: with its limits."""
    host, port = listener.getsockname()[:2]
    application = http_application(server, tokens, Address(host, port))
    config = uvicorn.Config(
        application, http=connection, log_config=None, access_log=False, timeout_graceful_shutdown=_ENDING,
        server_header=False, proxy_headers=False, ws="none", lifespan="on",
    )  # fmt: skip
    serving = _Server(config)
    ended = anyio.Event()

    async def serve() -> None:
        # Shielded: uvicorn ends the sessions and closes the connections itself, once it is told to.
        with anyio.CancelScope(shield=True):
            try:
                await serving.serve([listener])
            finally:
                ended.set()

    async with anyio.create_task_group() as group:
        group.start_soon(serve)
        try:
            await ended.wait()
        finally:
            serving.should_exit = True

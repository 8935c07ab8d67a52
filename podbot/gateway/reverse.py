"""Requests to reverse endpoints: passed on to the API with the real key, over connections that are used again."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections import defaultdict

import h11

from podbot.gateway.dialing import Dialer, Unreachable, os_reason
from podbot.gateway.heads import Head
from podbot.gateway.http_exchange import Exchange
from podbot.gateway.routes import Passed, Redactor, Route, answered
from podbot.gateway.streams import ByteStream, SocketStream, TlsStream

IDLE_SECONDS = 20.0  # that a connection is kept for another request
_IDLE = 4  # of one route


class Upstreams:
    """Connections to the APIs. ``ca``: a file of certificate authorities; None: the system's."""

    def __init__(self, dialer: Dialer, ca: str | None) -> None:
        self._dialer, self._ca = dialer, ca
        self._context: ssl.SSLContext | None = None
        self._idle: defaultdict[str, list[tuple[float, ByteStream]]] = defaultdict(list)

    async def exchange(self, route: Route, client: SocketStream, incoming: h11.Connection) -> Exchange:
        """An exchange with the API over a connection that is open. Raises Refused and Unreachable."""
        upstream = self._kept(route) or await self._opened(route)
        return Exchange(client, incoming, upstream, Redactor(route.key), lambda headers: answered(headers, route))

    def done(self, route: Route, exchange: Exchange) -> None:
        """Keep the connection of an exchange for another request, or close it."""
        kept = self._idle[route.name]
        if exchange.upstream_reusable and len(kept) < _IDLE:
            kept.append((time.monotonic(), exchange.upstream))
        else:
            exchange.upstream.close()

    def close(self) -> None:
        """Close idle connections."""
        for kept in self._idle.values():
            for _, stream in kept:
                stream.close()
        self._idle.clear()

    def _kept(self, route: Route) -> ByteStream | None:
        """An idle connection that is still open, the newest one."""
        kept = self._idle[route.name]
        while kept:
            since, stream = kept.pop()
            if time.monotonic() - since < IDLE_SECONDS and stream.is_quiet():
                return stream
            stream.close()
        return None

    async def _opened(self, route: Route) -> ByteStream:
        target = route.target
        connection = await self._dialer.connect(target, private=route.private, tunnel=True)
        if not route.tls:
            return SocketStream(connection)
        try:
            return await TlsStream.opened(connection, self._tls(), target.host.text)
        except ssl.SSLCertVerificationError as exc:
            raise Unreachable(f"the certificate of {target} is not valid: {exc.verify_message}") from None
        except (OSError, asyncio.IncompleteReadError) as exc:
            connection.close()
            raise Unreachable(f"TLS with {target} failed: {os_reason(exc)}") from None

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = ssl.create_default_context()
            if self._ca is not None:
                with contextlib.suppress(OSError):  # then the certificate is not valid, which is reported
                    self._context.load_verify_locations(self._ca)
        return self._context


def request_for(asked: Passed, head: Head) -> h11.Request:
    """The request as it is sent to the API."""
    headers = [*asked.headers, *(("content-length", value) for value in head.values("content-length"))]
    headers += [("transfer-encoding", "chunked")] if head.values("transfer-encoding") else []
    return h11.Request(method=asked.method, target=asked.path, headers=headers)

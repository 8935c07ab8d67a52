"""The gateway's connections from its sandbox: each request is judged, and then refused, passed on, or answered."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterable
from typing import NamedTuple

import h11

from podbot.gateway import heads
from podbot.gateway.dialing import Dialer, Refused, Unreachable
from podbot.gateway.gateway_settings import GatewaySettings
from podbot.gateway.heads import BadRequest, Connect, Direct, Forward, Head
from podbot.gateway.host_rules import Policy, judge, policy_from
from podbot.gateway.hosts import Address, Host, Target
from podbot.gateway.http_exchange import ClientLeft, Exchange, reason
from podbot.gateway.network_log import NetworkLog
from podbot.gateway.reverse import Upstreams, request_for
from podbot.gateway.routes import NotPassed, passed, route_of, routes_from
from podbot.gateway.streams import SocketStream
from podbot.gateway.tunnel import Tunnel

CONNECTIONS = 256  # at once; further ones get an error at once
HEAD_SECONDS = 30.0  # for a head, from the first byte of the connection or the end of the request before it
_LINGER = 1.0  # seconds in which a client that was refused may read the answer while it still sends


class _Use(NamedTuple):
    """What a connection is used for. ``private``: as a private host; ``addresses``: of the target, once resolved."""

    target: Target
    private: bool
    addresses: list[Address]


class Gateway:
    """``policy`` may be replaced at any moment: it counts for new connections, and a denial ends open ones."""

    def __init__(
        self, settings: GatewaySettings, log: NetworkLog, dialer: Dialer, *, head_seconds: float = HEAD_SECONDS
    ) -> None:
        """Raises host_rules.BadRule."""
        self.settings, self.log, self.dialer = settings, log, dialer
        self._head_seconds = head_seconds
        self.policy = policy_from(settings.allow, settings.deny, settings.private)
        self._routes = routes_from(settings.endpoints)
        self._upstreams = Upstreams(dialer, settings.ca)
        self._connections: dict[asyncio.Task[None], _Use | None] = {}
        self._accepting: asyncio.Task[None] | None = None

    def listen(self, listener: socket.socket) -> None:
        """From now on accept the connections of this listening socket, in place of an earlier one's."""
        if self._accepting is not None:
            self._accepting.cancel()
        listener.setblocking(False)
        self._accepting = asyncio.ensure_future(self._accept(listener))

    @property
    def listening(self) -> bool:
        """Whether it has a listening socket."""
        return self._accepting is not None

    def replace(self, policy: Policy) -> None:
        """Set the policy, and end connections that it does not allow, also those that are being made."""
        self.policy = policy
        self.log.changed(self.described())
        for task, use in list(self._connections.items()):
            if use is not None and not self._allows(use):
                task.cancel()

    def described(self) -> dict[str, list[str]]:
        """The policy in texts."""
        policy = self.policy
        parts: dict[str, Iterable[object]] = {"allow": policy.allow, "deny": policy.deny, "private": policy.private}
        return {name: [str(rule) for rule in rules] for name, rules in parts.items()}

    async def close(self) -> None:
        """End all connections."""
        tasks = [*self._connections, *([self._accepting] if self._accepting is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._upstreams.close()
        self.log.close()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                try:
                    connection, _ = await loop.sock_accept(listener)
                except OSError:  # no descriptors are left, or the connection is gone
                    await asyncio.sleep(0.05)
                    continue
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                task = asyncio.ensure_future(self._serve(connection))
                self._connections[task] = None
                task.add_done_callback(lambda ended: self._connections.pop(ended, None))

    async def _serve(self, connection: socket.socket) -> None:
        """Serve one connection. No error of it may end the gateway, and it is closed in any case."""
        try:
            client = SocketStream(connection)
            if len(self._connections) > CONNECTIONS:
                await self._refuse(client, 503, f"this sandbox has {CONNECTIONS} connections open already")
                return
            buffer = b""
            while (head := await self._head(client, buffer)) is not None:
                left = await self._request(client, *head)
                self._connections[_task()] = None  # a rule about the host of a request that is over ends nothing
                if left is None:
                    return
                buffer = left
        except (ClientLeft, OSError, h11.ProtocolError, asyncio.CancelledError):
            pass  # it is closed below, in the middle of an answer without its end
        finally:
            connection.close()

    async def _head(self, client: SocketStream, buffer: bytes) -> tuple[bytes, bytes] | None:
        """The next head and the bytes behind it; None at the connection's end, or after a refusal."""
        try:
            async with asyncio.timeout(self._head_seconds):
                while heads.END not in buffer:
                    if len(buffer) > heads.LIMIT:
                        await self._refuse(client, 431, f"the head of the request is longer than {heads.LIMIT} bytes")
                        return None
                    more = await client.receive()
                    if not more:
                        return None
                    buffer += more
        except TimeoutError:
            if buffer:
                await self._refuse(
                    client, 408, f"the head of the request did not end within {self._head_seconds:.0f} s"
                )
            return None
        end = buffer.index(heads.END) + len(heads.END)
        return buffer[:end], buffer[end:]

    async def _request(self, client: SocketStream, data: bytes, rest: bytes) -> bytes | None:
        """Serve one request: what follows it on the connection, or None if that cannot be used any more."""
        incoming = h11.Connection(h11.SERVER, max_incomplete_event_size=heads.LIMIT)
        try:
            head = _parsed(incoming, data + rest)
            asked = heads.request_in(head, self.settings.port)
        except BadRequest as exc:
            await self._refuse(client, exc.status, f"the request was refused: {exc}")
            return None
        if isinstance(asked, Connect):
            await self._tunnel(client, asked.target, rest)
            return None
        if isinstance(asked, Direct):
            kept = await self._reverse(client, incoming, head, asked)
        else:
            kept = await self._forward(client, incoming, head, asked)
        return incoming.trailing_data[0] if kept else None

    async def _tunnel(self, client: SocketStream, target: Target, early: bytes) -> None:
        connection = await self._dialled(client, target, "connect", tunnel=True)
        if connection is None:
            return
        tunnel, since = Tunnel(client, connection, target), time.monotonic()
        try:
            await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await tunnel.run(early)
        except Refused as exc:
            self.log.refused(target.host.text, target.port, "tls", str(exc))
        finally:
            connection.close()
            self.log.closed(target, "connect", sent=tunnel.sent, received=tunnel.received, since=since)

    async def _forward(self, client: SocketStream, incoming: h11.Connection, head: Head, asked: Forward) -> bool:
        connection = await self._dialled(client, asked.target, "http", tunnel=False)
        if connection is None:
            return False
        exchange, since = Exchange(client, incoming, SocketStream(connection)), time.monotonic()
        try:
            proxy = self.dialer.proxy_for(asked.target, "http")
            await exchange.run(outgoing(head, asked, proxy.authorization if proxy is not None else None))
        except Unreachable as exc:
            self.log.failed(asked.target, "http", str(exc))
            await self._refuse(client, exc.status, str(exc))
            return False
        finally:
            connection.close()
            self.log.closed(asked.target, "http", sent=exchange.sent, received=exchange.received, since=since)
        return exchange.reusable

    async def _reverse(self, client: SocketStream, incoming: h11.Connection, head: Head, asked: Direct) -> bool:
        """Pass on a request to an API, with its key. Returns whether the connection can be used again."""
        route = route_of(asked, self._routes)
        if route is None:
            await self._refuse(client, 404, "there is nothing at this path of the gateway")
            return False
        target, exchange, since = route.target, None, time.monotonic()
        try:
            wanted = passed(asked, route)
            exchange = await self._upstreams.exchange(route, client, incoming)
            await exchange.run(request_for(wanted, head))
        except NotPassed as exc:
            self.log.refused(target.host.text, target.port, route.name, str(exc))
            await self._refuse(client, exc.status, str(exc))
        except (Refused, Unreachable) as exc:
            self.log.failed(target, route.name, str(exc))
            await self._refuse(client, getattr(exc, "status", 403), str(exc))
        finally:
            if exchange is not None:
                self._upstreams.done(route, exchange)
                self.log.closed(target, route.name, sent=exchange.sent, received=exchange.received, since=since)
        return exchange is not None and exchange.reusable

    async def _dialled(self, client: SocketStream, target: Target, how: str, *, tunnel: bool) -> socket.socket | None:
        """A connection to the target; None after an answer that says why there is none."""
        verdict = judge(target, self.policy)
        use = _Use(target, verdict.private, [])

        def denied(address: Address) -> bool:
            use.addresses.append(address)
            return self._denies(address, target.port)

        self._connections[_task()] = use
        try:
            if not verdict.allowed:
                raise Refused(verdict.reason, "" if verdict.denied else "allow")  # noqa: TRY301
            return await self.dialer.connect(target, private=verdict.private, tunnel=tunnel, denied=denied)
        except Refused as exc:
            self.log.refused(target.host.text, target.port, how, str(exc))
            await self._refuse(client, 403, refusal(target, exc, self.settings.session))
        except Unreachable as exc:
            self.log.failed(target, how, str(exc))
            await self._refuse(client, exc.status, str(exc))
        return None

    def _allows(self, use: _Use) -> bool:
        verdict = judge(use.target, self.policy)
        if not verdict.allowed or (use.private and not verdict.private):
            return False
        return not any(self._denies(address, use.target.port) for address in use.addresses)

    def _denies(self, address: Address, port: int) -> bool:
        target = Target(Host(str(address), is_address=True), port)
        return judge(target, Policy(deny=self.policy.deny)).denied

    async def _refuse(self, client: SocketStream, status: int, text: str) -> None:
        """Answer with an error, and let the client read it: closing with unread input would reset the connection."""
        await client.send(error(status, f"podbot: {text}\n"))
        with contextlib.suppress(OSError, TimeoutError):
            client.socket.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(_LINGER):
                while await client.receive():
                    pass


def _task() -> asyncio.Task[None]:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - the caller is a coroutine
    return task


def outgoing(head: Head, asked: Forward, authorization: str | None) -> h11.Request:
    """The request as it is passed on. ``authorization``: for the operator's proxy, empty for none; None: no proxy."""
    address = str(asked.target).removesuffix(":80")
    headers = [("host", address), *asked.headers]
    headers += [("content-length", value) for value in head.values("content-length")]
    headers += [("transfer-encoding", "chunked")] if head.values("transfer-encoding") else []
    headers += [("proxy-authorization", authorization)] if authorization else []
    headers.append(("connection", "close"))
    target = asked.path if authorization is None else f"http://{address}{asked.path}"
    return h11.Request(method=asked.method, target=target, headers=headers)


def refusal(target: Target, refused: Refused, session: str) -> str:
    """The text of a refusal, with the remedy if there is one that helps."""
    remedy = {
        "allow": f". On the host: podbot net allow {session} {target}",
        "private": f". In podbot's configuration, network.private may name {target} for later sessions",
    }.get(refused.cure, "")
    return f"{target} is not allowed for this sandbox: {refused}{remedy}"


def error(status: int, text: str) -> bytes:
    """An answer with an error, after which the connection is closed."""
    body = text.encode()
    head = f"HTTP/1.1 {status} {reason(status)}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def _parsed(incoming: h11.Connection, data: bytes) -> Head:
    end = data.index(heads.END) + len(heads.END)
    heads.check_lines(data[:end])
    incoming.receive_data(data)
    try:
        event = incoming.next_event()
    except h11.RemoteProtocolError as exc:
        raise BadRequest(str(exc), exc.error_status_hint) from None
    if not isinstance(event, h11.Request):
        raise BadRequest("it is no request")
    return heads.head_of(event)

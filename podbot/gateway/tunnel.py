"""A tunnel that CONNECT opened: the server's name in its ClientHello is checked, and then the kernel copies."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from podbot.gateway.client_hello import HANDSHAKE, BadHello, HelloReader
from podbot.gateway.dialing import Refused
from podbot.gateway.hosts import Target
from podbot.gateway.streams import SocketStream, Splice

HELLO_SECONDS = 30.0
IDLE_SECONDS = 3600.0  # without a byte in either direction; a client that vanished is not noticed otherwise
_TLS_PORT = 443
_UNRECOGNIZED_NAME = b"\x15\x03\x03\x00\x02\x02\x70"  # a fatal alert, which TLS clients show


class Tunnel:
    """``sent``, ``received``: bytes so far, from the sandbox's side. ``idle``, ``hello``: limits in seconds."""

    def __init__(
        self,
        client: SocketStream,
        upstream: socket.socket,
        target: Target,
        *,
        idle: float = IDLE_SECONDS,
        hello: float = HELLO_SECONDS,
    ) -> None:
        self._idle_seconds, self._hello_seconds = idle, hello
        self._client, self._upstream, self._target = client, SocketStream(upstream), target
        self._up = Splice(client.socket, upstream)
        self._down = Splice(upstream, client.socket)
        self._begun = 0

    @property
    def sent(self) -> int:
        return self._begun + self._up.count

    @property
    def received(self) -> int:
        return self._down.count

    async def run(self, early: bytes) -> None:
        """Copy until both sides have ended, one has failed, or nothing came for long. ``early``: came with the request.

        Raises Refused if the client does not speak TLS to the host that it asked for, and OSError.
        """
        up, down = asyncio.ensure_future(self._upload(early)), asyncio.ensure_future(self._down.run())
        both = asyncio.gather(up, down)
        before = -1
        try:
            while not both.done() and before != (before := self.sent + self.received):
                await asyncio.wait({both}, timeout=self._idle_seconds)
            if both.done():
                both.result()
        finally:
            up.cancel()
            down.cancel()
            await asyncio.gather(up, down, both, return_exceptions=True)

    async def _upload(self, early: bytes) -> None:
        tls = self._target.port == _TLS_PORT
        data = early if early or tls else await self._client.receive()
        if tls or data[:1] == bytes([HANDSHAKE]):
            try:
                async with asyncio.timeout(self._hello_seconds):
                    data = await self._checked(data or await self._client.receive())
            except TimeoutError:
                raise Refused("no ClientHello came") from None
            except (BadHello, Refused) as exc:
                with contextlib.suppress(OSError):
                    await self._client.send(_UNRECOGNIZED_NAME)
                raise Refused(str(exc)) from None
        await self._upstream.send(data)
        self._begun = len(data)
        await self._up.run()

    async def _checked(self, data: bytes) -> bytes:
        """The bytes of the whole ClientHello, which names the target. Raises BadHello and Refused."""
        reader = HelloReader()
        while (hello := reader.feed(data)) is None:
            data = await self._client.receive()
            if not data:
                raise BadHello("the connection ended within the ClientHello")
        if hello.name != self._target.host and not (hello.name is None and self._target.host.is_address):
            named = f"the server {hello.name.text}" if hello.name is not None else "no server"
            raise Refused(f"the tunnel is for {self._target.host.text}, but the ClientHello names {named}")
        return bytes(reader.data)

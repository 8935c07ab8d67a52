"""One exchange in HTTP: a sandbox's request to a server, and the server's answer back, as their bytes arrive."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol

import h11

from podbot.gateway.dialing import Unreachable
from podbot.gateway.heads import Headers, passed_on
from podbot.gateway.streams import ByteStream, SocketStream

_SWITCHING = 101
_SWITCHED = frozenset(
    {b"upgrade", b"connection", b"sec-websocket-accept", b"sec-websocket-protocol", b"sec-websocket-extensions"}
)


class ClientLeft(Exception):
    """The sandbox's program has closed its connection."""


class Change(Protocol):
    """Changes the body of an answer without changing its length."""

    def feed(self, data: bytes) -> bytes: ...
    def end(self) -> bytes: ...


class Exchange:
    """``incoming``: the sandbox's side, whose request was read to the end of its head. ``body``, ``headers``: change
    the answer. ``sent``, ``received``: bytes of bodies, from the sandbox's side. ``answered``: a part of the answer has
    been passed on.
    """

    def __init__(
        self,
        client: SocketStream,
        incoming: h11.Connection,
        upstream: ByteStream,
        body: Change | None = None,
        headers: Callable[[Headers], Headers] = passed_on,
    ) -> None:
        self.client, self.incoming, self.upstream = client, incoming, upstream
        self.outgoing = h11.Connection(h11.CLIENT)
        self._body, self._headers = body, headers
        self.sent = self.received = 0
        self.answered = False

    @property
    def reusable(self) -> bool:
        """Whether the sandbox's connection can be used for another request."""
        return self.incoming.our_state is h11.DONE and self.incoming.their_state is h11.DONE

    @property
    def upstream_reusable(self) -> bool:
        """Whether the server's connection can."""
        return self.outgoing.our_state is h11.DONE and self.outgoing.their_state is h11.DONE

    async def run(self, request: h11.Request) -> None:
        """Pass on ``request`` with the body that follows, and the answer.

        Raises ClientLeft, Unreachable for a server that fails before its answer, and OSError or h11.ProtocolError after
        it has begun.
        """
        upload = asyncio.ensure_future(self._upload(request))
        download = asyncio.ensure_future(self._download())
        left = asyncio.ensure_future(self._left(upload))
        tasks = (upload, download, left)
        try:
            await asyncio.wait({download, left}, return_when=asyncio.FIRST_COMPLETED)
            if not download.done():
                raise left.exception() or ClientLeft
            download.result()
        except (OSError, h11.ProtocolError) as exc:
            if self.answered:
                raise
            raise Unreachable(f"the server ended the connection: {_reason(exc)}") from None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _left(self, upload: asyncio.Future[None]) -> None:
        """Wait until the sandbox's program closes its connection, during the upload or after it."""
        await upload
        await self.client.left()

    async def _upload(self, request: h11.Request) -> None:
        """Ends early if the server takes no more: then its answer says why."""
        with contextlib.suppress(OSError):
            await self._uploaded(request)

    async def _uploaded(self, request: h11.Request) -> None:
        await self.upstream.send(_bytes(self.outgoing.send(request)))
        while True:
            event = self.incoming.next_event()
            if event is h11.NEED_DATA:
                if self.incoming.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    await self.client.send(_bytes(self.incoming.send(go_on)))
                self.incoming.receive_data(await self._from_client())
            elif isinstance(event, h11.Data):
                self.sent += len(event.data)
                await self.upstream.send(_bytes(self.outgoing.send(event)))
            else:  # the end; trailers are not passed on
                await self.upstream.send(_bytes(self.outgoing.send(h11.EndOfMessage())))
                return

    async def _from_client(self) -> bytes:
        try:
            data = await self.client.receive()
        except OSError:
            raise ClientLeft from None
        if not data:
            raise ClientLeft
        return data

    async def _download(self) -> None:
        while True:
            event = self.outgoing.next_event()
            if event is h11.NEED_DATA:
                self.outgoing.receive_data(await self.upstream.receive())
            elif isinstance(event, h11.InformationalResponse):
                if event.status_code == _SWITCHING:
                    await self._switched(event)
                    return  # 100 was given by the gateway itself
            elif isinstance(event, h11.Response):
                await self._to_client(self.incoming.send(self._answer(event)))
            elif isinstance(event, h11.Data):
                await self._data(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                if self._body is not None and (rest := self._body.end()):
                    await self._to_client(self.incoming.send(h11.Data(data=rest)))
                await self._to_client(self.incoming.send(h11.EndOfMessage()))
                return
            else:
                raise ConnectionResetError(0, "it answered nothing")

    async def _data(self, data: bytes) -> None:
        self.received += len(data)
        if self._body is not None:
            data = self._body.feed(data)
        if data:
            await self._to_client(self.incoming.send(h11.Data(data=data)))

    def _answer(self, event: h11.Response) -> h11.Response:
        decoded = tuple((name.decode(), value.decode("latin-1")) for name, value in event.headers)
        lengths = tuple((name, value) for name, value in decoded if name == "content-length")
        headers = [(name.encode(), value.encode("latin-1")) for name, value in (*self._headers(decoded), *lengths)]
        # The server's own reason could contain anything.
        return h11.Response(status_code=event.status_code, headers=headers, reason=reason(event.status_code))

    async def _switched(self, event: h11.InformationalResponse) -> None:
        """A WebSocket: pass on the answer, and then copy what both sides send until one of them ends."""
        headers = [(name, value) for name, value in event.headers if name in _SWITCHED]
        answer = h11.InformationalResponse(status_code=_SWITCHING, headers=headers)
        await self._to_client(self.incoming.send(answer))
        await self._data_of_socket(self.outgoing.trailing_data[0])
        up = asyncio.ensure_future(self._copy_up(self.incoming.trailing_data[0]))
        down = asyncio.ensure_future(self._copy_down())
        try:
            await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            up.cancel()
            down.cancel()
            await asyncio.gather(up, down, return_exceptions=True)

    async def _copy_down(self) -> None:
        while data := await self.upstream.receive():
            await self._data_of_socket(data)

    async def _copy_up(self, data: bytes) -> None:
        while True:
            if data:
                self.sent += len(data)
                await self.upstream.send(data)
            data = await self._from_client()

    async def _data_of_socket(self, data: bytes) -> None:
        self.received += len(data)
        if self._body is not None:
            data = self._body.feed(data) + self._body.end()  # a message must not wait for the next one
        await self._to_client(data)

    async def _to_client(self, data: bytes | None) -> None:
        self.answered = True
        if data:
            try:
                await self.client.send(data)
            except OSError:
                raise ClientLeft from None


def reason(status: int) -> str:
    """The usual words for a status."""
    with contextlib.suppress(ValueError):
        return HTTPStatus(status).phrase
    return ""


def _bytes(data: bytes | None) -> bytes:
    return data or b""


def _reason(exc: Exception) -> str:
    return (getattr(exc, "strerror", None) or str(exc) or type(exc).__name__)[:200]

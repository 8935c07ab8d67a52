"""Byte streams of the gateway: a socket, or TLS on one; and copying between two sockets without a buffer of ours."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import ssl

CHUNK = 1 << 16  # bytes
_PIPE = 1 << 19  # bytes that a pipe between two sockets holds, if the user's limit for pipes allows it; measured


class ByteStream(Protocol):
    """One connection. ``receive`` returns nothing at its end; errors are OSError."""

    async def receive(self) -> bytes: ...
    async def send(self, data: bytes) -> None: ...
    def is_quiet(self) -> bool: ...
    def close(self) -> None: ...


class SocketStream:
    """A connected socket that does not block."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._loop = asyncio.get_running_loop()

    async def receive(self) -> bytes:
        """See ByteStream."""
        return await self._loop.sock_recv(self.socket, CHUNK)

    async def send(self, data: bytes) -> None:
        """See ByteStream."""
        await self._loop.sock_sendall(self.socket, data)

    def is_quiet(self) -> bool:
        """Whether it is open and nothing has arrived."""
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def close(self) -> None:
        """See ByteStream."""
        self.socket.close()

    async def left(self) -> None:
        """Wait until the peer has closed its side without sending anything more; if it does send, wait for ever."""
        while True:
            await ready(self.socket, writing=False)
            try:
                if not self.socket.recv(1, socket.MSG_PEEK):
                    return
            except BlockingIOError:
                continue
            except OSError:
                return
            await self._loop.create_future()


class TlsStream:
    """TLS on a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def opened(cls, connection: socket.socket, context: ssl.SSLContext, name: str) -> TlsStream:
        """TLS to the server ``name``, whose certificate is checked. Raises OSError, of which ssl.SSLError is one."""
        return cls(*await asyncio.open_connection(sock=connection, ssl=context, server_hostname=name))

    async def receive(self) -> bytes:
        """See ByteStream."""
        return await self._reader.read(CHUNK)

    async def send(self, data: bytes) -> None:
        """See ByteStream."""
        self._writer.write(data)
        await self._writer.drain()

    def is_quiet(self) -> bool:
        """Whether it is open and the server has not ended it."""
        return not self._reader.at_eof() and not self._writer.is_closing() and self._reader.exception() is None

    def close(self) -> None:
        """See ByteStream."""
        self._writer.close()


class Splice:
    """Copies from one socket to another inside the kernel. ``count``: bytes copied so far."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source, self.target, self.count = source, target, 0

    async def run(self) -> None:
        """Copy until the source's end, and end the target's input then. Raises OSError."""
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            with contextlib.suppress(OSError):
                fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIPE)
            while await self._filled(writer):
                await self._emptied(reader)
        finally:
            os.close(reader)
            os.close(writer)
        with contextlib.suppress(OSError):
            self.target.shutdown(socket.SHUT_WR)

    async def _filled(self, writer: int) -> int:
        while True:
            try:
                self._held = os.splice(self.source.fileno(), writer, _PIPE)
            except BlockingIOError:  # the pipe is empty, so the socket is
                await ready(self.source, writing=False)
            else:
                return self._held

    async def _emptied(self, reader: int) -> None:
        while self._held:
            try:
                moved = os.splice(reader, self.target.fileno(), self._held)
            except BlockingIOError:
                await ready(self.target, writing=True)
            else:
                self._held -= moved
                self.count += moved


async def ready(connection: socket.socket, *, writing: bool) -> None:
    """Wait until the socket can be written or read."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[None] = loop.create_future()
    add, remove = (loop.add_writer, loop.remove_writer) if writing else (loop.add_reader, loop.remove_reader)

    def arrived() -> None:
        if not found.done():
            found.set_result(None)

    add(connection, arrived)
    try:
        await found
    finally:
        remove(connection)

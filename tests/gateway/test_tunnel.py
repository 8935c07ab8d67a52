"""Tunnels between real sockets: how they end."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from podbot.gateway.dialing import Refused
from podbot.gateway.hosts import Target, parse_host
from podbot.gateway.streams import SocketStream
from podbot.gateway.tunnel import Tunnel
from tests.waiting import HANG


def connected() -> tuple[socket.socket, socket.socket]:
    """Both ends of a TCP connection on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    near.setblocking(False)
    far.setblocking(False)
    return near, far


def reset(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def target(port: int) -> Target:
    return Target(parse_host("example.com"), port)


async def finished(tunnel: Tunnel) -> None:
    async with asyncio.timeout(HANG):
        await tunnel.run(b"")


@pytest.mark.parametrize("side", ["server", "client"])
def test_a_reset_of_one_side_ends_the_tunnel_while_the_other_waits(side: str) -> None:
    async def scenario() -> None:
        program, client = connected()
        server, upstream = connected()
        with program, client, server, upstream:
            running = asyncio.ensure_future(finished(Tunnel(SocketStream(client), upstream, target(9))))
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(program, b"x")
            assert await loop.sock_recv(server, 1) == b"x"
            reset(server if side == "server" else program)
            with pytest.raises(ConnectionResetError):
                await running

    asyncio.run(scenario())


def test_one_side_can_end_its_input_and_read_on() -> None:
    async def scenario() -> None:
        program, client = connected()
        server, upstream = connected()
        with program, client, server, upstream:
            tunnel = Tunnel(SocketStream(client), upstream, target(9))
            running = asyncio.ensure_future(finished(tunnel))
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(program, b"question")
            program.shutdown(socket.SHUT_WR)
            assert await loop.sock_recv(server, 100) == b"question"
            assert await loop.sock_recv(server, 100) == b""
            await loop.sock_sendall(server, b"answer")
            server.close()
            assert await loop.sock_recv(program, 100) == b"answer"
            await running
            assert (tunnel.sent, tunnel.received) == (8, 6)

    asyncio.run(scenario())


def test_a_tunnel_without_a_byte_ends() -> None:
    async def scenario() -> None:
        program, client = connected()
        server, upstream = connected()
        with program, client, server, upstream:
            await finished(Tunnel(SocketStream(client), upstream, target(9), idle=0.01))

    asyncio.run(scenario())


def test_a_client_that_sends_no_hello_is_refused() -> None:
    async def scenario() -> None:
        program, client = connected()
        server, upstream = connected()
        with program, client, server, upstream, pytest.raises(Refused, match="no ClientHello came"):
            await finished(Tunnel(SocketStream(client), upstream, target(443), hello=0.01))

    asyncio.run(scenario())

"""A policy that is replaced while connections are made or open: real sockets, and a name server of the test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from podbot.gateway.dialing import Dialer
from podbot.gateway.gateway_server import Gateway
from podbot.gateway.gateway_settings import GatewaySettings
from podbot.gateway.host_rules import policy_from
from podbot.gateway.network_log import NetworkLog
from tests.waiting import HANG

Act = Callable[[Gateway, str, asyncio.Event], Awaitable[None]]


def answered(tmp_path: Path, before_the_answer: Act, after_it: Act | None = None) -> bytes:
    """All that the gateway sends to a client that asks for a tunnel to a private name, whose server sends nothing.

    The acts get the gateway, the rule and an event that lets the name be resolved. The tunnel ends with the second.
    """

    async def scenario() -> bytes:
        resolved, asked = asyncio.Event(), asyncio.Event()

        async def resolve(_name: str, _port: int) -> list[str]:
            asked.set()
            await resolved.wait()
            return ["127.0.0.1"]

        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(hold, "127.0.0.1", 0)
        rule = f"db.example:{server.sockets[0].getsockname()[1]}"
        settings = GatewaySettings("box", 1, "", "", private=(rule,))
        gateway = Gateway(settings, NetworkLog(str(tmp_path / "log")), Dialer({}, resolve))
        listener = socket.create_server(("127.0.0.1", 0))
        gateway.listen(listener)
        async with asyncio.timeout(HANG):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(f"CONNECT {rule} HTTP/1.1\r\nHost: {rule}\r\n\r\n".encode())
            await asked.wait()
            await before_the_answer(gateway, rule, resolved)
            found = b""
            if after_it is not None:
                found = await reader.readuntil(b"\r\n\r\n")
                await after_it(gateway, rule, resolved)
            found += await reader.read()
        writer.close()
        await gateway.close()
        server.close()
        return found

    return asyncio.run(scenario())


async def resolve_it(_gateway: Gateway, _rule: str, resolved: asyncio.Event) -> None:
    resolved.set()


async def make_it_public(gateway: Gateway, rule: str, resolved: asyncio.Event) -> None:
    gateway.replace(policy_from([rule]))
    resolved.set()


async def deny_its_address(gateway: Gateway, rule: str, resolved: asyncio.Event) -> None:
    gateway.replace(policy_from([], ["127.0.0.1"], [rule]))
    resolved.set()


def test_a_private_rule_that_is_withdrawn_before_the_name_is_resolved(tmp_path: Path) -> None:
    assert b" 200 " not in answered(tmp_path, make_it_public)


def test_a_private_rule_that_is_withdrawn_ends_a_tunnel(tmp_path: Path) -> None:
    assert b" 200 " in answered(tmp_path, resolve_it, make_it_public)


def test_an_address_that_is_denied_before_the_name_is_resolved(tmp_path: Path) -> None:
    assert b" 403 " in answered(tmp_path, deny_its_address)


def test_an_address_that_is_denied_ends_a_tunnel(tmp_path: Path) -> None:
    assert b" 200 " in answered(tmp_path, resolve_it, deny_its_address)

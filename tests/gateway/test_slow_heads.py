"""A client that sends its head too slowly: real sockets, and a short limit."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from podbot.gateway.dialing import Dialer
from podbot.gateway.gateway_server import Gateway
from podbot.gateway.gateway_settings import GatewaySettings
from podbot.gateway.network_log import NetworkLog
from tests.waiting import HANG


@pytest.mark.parametrize(
    ("data", "answer"),
    [(b"GET / HTTP/1.1\r\nHost: 127.", b"HTTP/1.1 408 Request Timeout\r\n"), (b"", b"")],
    ids=["a part of a head", "nothing"],
)
def test_a_head_that_does_not_end_is_not_waited_for(tmp_path: Path, data: bytes, answer: bytes) -> None:
    async def scenario() -> bytes:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        log = NetworkLog(str(tmp_path / "log"))
        gateway = Gateway(GatewaySettings("box", port, "", ""), log, Dialer({}), head_seconds=0.05)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)  # it is there before the limit begins, which is at the accept
        gateway.listen(listener)
        async with asyncio.timeout(HANG):
            found = await reader.read()
        writer.close()
        await gateway.close()
        return found

    assert asyncio.run(scenario()).startswith(answer)

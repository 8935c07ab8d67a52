"""The server on descriptors and on a socket: what reaches the client, and how it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import anyio.abc
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.extension import ClaimContext
from mcp.client.streamable_http import streamable_http_client

from podbot.errors import AddressUnusable
from podbot.mcp.bearer_tokens import BearerTokens
from podbot.mcp.http_connections import BoundedConnection
from podbot.mcp.http_transport import Address, client_of_request, listening, parse_address, serve_http
from podbot.streams.wake import Signal
from tests.mcp.pipes import HELLO, READY, Pipes, call, request
from tests.mcp.test_server import text_of, value_of
from tests.mcp.test_tasks import IDENTIFIER, LONG, TakesTasks, TaskResult, ended
from tests.mcp.workspaces import Served
from tests.waiting import HANG


def test_the_end_of_the_input_ends_commands_and_removes_sandboxes(served: Served, pipes: Pipes) -> None:
    pipes.send(HELLO, READY, call(2, "ls"))
    assert not pipes.answer(2)["result"]["isError"]
    pipes.send(call(3, "shell_execute", {"command": ["sleep", "3600"], "timeout_seconds": 120}))
    pipes.leave()
    assert pipes.ended() is None
    assert [made.closed for made in served.making.made] == [1]


def test_a_signal_ends_it_while_the_client_stays(served: Served, pipes: Pipes) -> None:
    pipes.send(HELLO, READY, call(2, "ls"))
    pipes.answer(2)
    pipes.wake.post(Signal(signal.SIGTERM))
    assert pipes.ended() == signal.SIGTERM
    assert [made.closed for made in served.making.made] == [1]


def test_the_end_of_the_input_ends_it_while_the_client_does_not_read(served: Served, pipes: Pipes) -> None:
    pipes.send(HELLO, READY, *(request(number, "tools/list") for number in range(2, 40)))
    pipes.leave()
    pipes.join()
    assert pipes.number == [None]
    pipes.read_no_more()


def test_a_client_that_dies_during_a_call_has_left(served: Served, pipes: Pipes) -> None:
    pipes.send(HELLO, READY, call(2, "ls"))
    pipes.answer(2)
    pipes.read_no_more()
    pipes.send(call(3, "ls"))  # its input stays open, for example in a child of the client
    assert pipes.ended() is None
    assert [made.closed for made in served.making.made] == [1]


def test_the_end_of_the_clients_process_ends_it_while_the_input_stays_open(served: Served) -> None:
    alive, killed = os.pipe()
    made = Pipes(served, client=alive)
    made.send(HELLO, READY, call(2, "ls"))
    assert not made.answer(2)["result"]["isError"]
    made.send(call(3, "shell_execute", {"command": ["sleep", "3600"], "timeout_seconds": 120}))
    os.close(killed)
    assert made.ended() is None
    os.close(alive)
    assert [workspace.closed for workspace in served.making.made] == [1]
    assert [event.kind for event in served.events] == ["mcp.client_ended"]


def leave(pipes: Pipes) -> None:
    pipes.leave()


def read_no_more(pipes: Pipes) -> None:
    pipes.read_no_more()
    pipes.send(request(9, "ping"))


def terminate(pipes: Pipes) -> None:
    pipes.wake.post(Signal(signal.SIGTERM))


@pytest.mark.parametrize("end", [leave, read_no_more, terminate])
def test_at_the_end_no_sandbox_waits_for_a_call(served: Served, pipes: Pipes, end: Callable[[Pipes], None]) -> None:
    pipes.send(HELLO, READY, call(2, "ls"))
    pipes.answer(2)
    called, removed, in_time = threading.Event(), threading.Event(), []

    def hold() -> None:
        called.set()
        in_time.append(removed.wait(HANG))

    served.making.before, served.making.made[0].ending = hold, removed.set
    pipes.send(call(3, "sandbox_create"))
    assert called.wait(HANG)
    end(pipes)
    pipes.ended()
    assert in_time == [True]


def test_descriptors_that_do_not_block(served: Served) -> None:
    made = Pipes(served, sockets=True)
    made.send(HELLO, READY, *(request(number, "tools/list") for number in range(2, 40)))
    assert [made.answer(number)["id"] for number in (1, 39)] == [1, 39]
    made.leave()
    assert made.ended() is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8000", ("127.0.0.1", 8000)),
        ("localhost:0", ("127.0.0.1", 0)),
        ("127.1.2.3:9", ("127.1.2.3", 9)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text", ["", "x", "0.0.0.0:80", "[::]:80", "192.168.1.1:80", "example.org:80", ":80", "65536", "-1", "²"]
)
def test_addresses_that_are_refused(text: str) -> None:
    with pytest.raises(AddressUnusable):
        parse_address(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("80000", "a port is a number from 0 to 65535"),
        ("localhost:65536", "a port is a number from 0 to 65535"),
        ("x", "that is neither PORT nor HOST:PORT"),
    ],
)
def test_what_is_wrong_with_an_address(text: str, reason: str) -> None:
    with pytest.raises(AddressUnusable) as caught:
        parse_address(text)
    assert caught.value.reason == reason


def test_an_address_in_use() -> None:
    with listening(Address("127.0.0.1", 0)) as found, pytest.raises(AddressUnusable, match="in use"):
        listening(Address("127.0.0.1", found.getsockname()[1]))


A, B = "a" * 40, "b" * 40


@contextlib.asynccontextmanager
async def web(
    served: Served, connection: type[BoundedConnection] = BoundedConnection, **times: float
) -> AsyncIterator[str]:
    """The URL of a server for the clients with the tokens A and B."""
    listener: socket.socket = listening(Address("127.0.0.1", 0))
    server, tokens = served.server(client_of_request, **times), BearerTokens([A, B])
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: serve_http(server, tokens, listener, connection=connection))
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        group.cancel_scope.cancel()
    listener.close()


@contextlib.asynccontextmanager
async def connected(url: str, token: str, mode: str, **options: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, **options) as client,
    ):
        yield client


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_clients_over_http_have_their_own_sandboxes(served: Served, era: str) -> None:
    async with web(served) as url, connected(url, A, era) as a, connected(url, B, era) as b:
        value_of(await a.call_tool("write_file", {"file_path": "x", "content": "1"}))
        (mine,) = value_of(await a.call_tool("sandbox_list"))["sandboxes"]
        assert value_of(await b.call_tool("sandbox_list"))["sandboxes"] == []
        refused = await b.call_tool("ls", {"sandbox": mine["sandbox"]})
        assert refused.is_error
        assert "no such sandbox" in text_of(refused)
        async with connected(url, A, era) as again:
            assert value_of(await again.call_tool("read_file", {"file_path": "x"}))["content"] == "1"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer " + "c" * 40}, 401),
        ({"authorization": f"Basic {A}"}, 401),
        ({"authorization": f"Bearer {A}", "host": "evil.example"}, 421),
        ({"authorization": f"Bearer {A}", "host": "127.0.0.1:1"}, 421),
        ({"authorization": f"Bearer {A}", "origin": "http://evil.example"}, 403),
        ({"authorization": f"Bearer {A}", "origin": "http://localhost:3000"}, 403),
        ({"authorization": f"Bearer {A}", "origin": "null"}, 403),
        ({"authorization": f"Bearer {A}"}, 200),
    ],
)
async def test_who_is_served_over_http(served: Served, headers: dict[str, str], status: int) -> None:
    given_always = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    async with web(served) as url, httpx2.AsyncClient(timeout=120) as http:
        answer = await http.post(url, json=HELLO, headers={**given_always, **headers})
        assert answer.status_code == status
        in_query = await http.post(f"{url}?access_token={A}", json=HELLO, headers=given_always)
        assert in_query.status_code == 401


@pytest.mark.anyio
async def test_a_body_that_is_too_large_or_malformed(served: Served) -> None:
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json",
               "authorization": f"Bearer {A}", "mcp-protocol-version": "2026-07-28"}  # fmt: skip
    async with web(served) as url, httpx2.AsyncClient(headers=headers, timeout=120) as http:
        assert (await http.post(url, content=b"x" * (5 << 20))).status_code == 413
        for body in (b"{", b"[]", b"1", b"[" * 100_000):
            assert (await http.post(url, content=body)).status_code == 400
    assert served.making.made == []


class Few(BoundedConnection):
    most = 3


HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"


async def connection(url: str, data: bytes) -> anyio.abc.SocketStream:
    made = await anyio.connect_tcp("127.0.0.1", httpx2.URL(url).port or 0)
    await made.send(data)
    return made


async def is_ended(stream: anyio.abc.SocketStream) -> bool:
    """Whether the server ends it; what it answers before is read."""
    with anyio.move_on_after(60):
        try:
            while await stream.receive():
                pass
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return True
    return False


@pytest.mark.anyio
@pytest.mark.parametrize("data", [b"", HEAD, HEAD + b"Content-Length: 9\r\n\r\nx"], ids=["none", "head", "body"])
async def test_a_request_that_does_not_arrive_ends_its_connection(served: Served, data: bytes) -> None:
    class Hasty(BoundedConnection):
        seconds = 0.3

    async with web(served, Hasty) as url:
        async with await connection(url, data) as half:
            assert await is_ended(half)
        Hasty.seconds = 60.0  # the requests of the next client do arrive, even if that takes time
        async with connected(url, A, "auto") as client:
            assert value_of(await client.call_tool("sandbox_list"))["sandboxes"] == []


@pytest.mark.anyio
async def test_a_call_may_last_longer_than_a_request_may_take_to_arrive(served: Served) -> None:
    class Lenient(BoundedConnection):
        """Ends only those that are being answered: the requests themselves may arrive late on a slow machine."""

        seconds = 0.3

        def abort(self) -> None:
            if not self.is_waiting:
                super().abort()

    async with web(served, Lenient) as url, connected(url, A, "auto") as client:
        ran = await client.call_tool("shell_execute", {"command": ["sh", "-c", "sleep 1; echo 1"]})
        assert value_of(ran)["stdout"] == "1\n"


@pytest.mark.anyio
async def test_connections_without_a_request_keep_no_client_out(served: Served) -> None:
    async with web(served, Few) as url:
        half = [await connection(url, HEAD) for _ in range(8)]
        async with connected(url, A, "auto") as client:
            assert value_of(await client.call_tool("sandbox_list"))["sandboxes"] == []
        for stream in half[:5]:
            assert await is_ended(stream)
        for stream in half:
            await stream.aclose()


def modern(method: str, **more: str) -> dict[str, str]:
    """The headers of a request of 2026-07-28."""
    return {"accept": "application/json, text/event-stream", "content-type": "application/json",
            "authorization": f"Bearer {A}", "mcp-protocol-version": "2026-07-28", "mcp-method": method,
            **more}  # fmt: skip


def meta(**capabilities: Any) -> dict[str, Any]:
    """What each request of 2026-07-28 says of its client."""
    about = {"protocolVersion": "2026-07-28", "clientInfo": {"name": "t", "version": "1"}}
    given = {**about, "clientCapabilities": capabilities}
    return {"_meta": {f"io.modelcontextprotocol/{name}": value for name, value in given.items()}}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("header", "value", "status"),
    [("host", "evil.example", 421), ("origin", "http://evil.example", 403), ("x-other", "1", 200)],
)
async def test_web_pages_are_refused_with_2026_07_28_as_well(
    served: Served, header: str, value: str, status: int
) -> None:
    headers = modern("tools/list")
    async with web(served) as url, httpx2.AsyncClient(headers=headers, timeout=120) as http:
        answer = await http.post(url, json=request(1, "tools/list", meta()), headers={header: value})
        assert answer.status_code == status, answer.text


@pytest.mark.anyio
async def test_the_origin_of_the_server_itself_is_no_other_pages(served: Served) -> None:
    async with web(served) as url, httpx2.AsyncClient(headers=modern("tools/list"), timeout=120) as http:
        port = httpx2.URL(url).port
        for origin, status in ((f"http://127.0.0.1:{port}", 200), (f"http://[::1]:{port}", 403),
                               (f"https://127.0.0.1:{port}", 403), (f"http://127.0.0.1:{port}0", 403),
                               (f"http://127.0.0.1:{port}.evil.example", 403)):  # fmt: skip
            answer = await http.post(url, json=request(1, "tools/list", meta()), headers={"origin": origin})
            assert answer.status_code == status, origin


@pytest.mark.anyio
async def test_a_header_that_names_another_task_is_refused(served: Served) -> None:
    tasks: dict[str, Any] = {"extensions": {IDENTIFIER: {}}}
    served.registry.find("client-1", None)

    async def code(method: str, ident: str, **headers: str) -> int | None:
        body = request(2, method, {"taskId": ident, **meta(**tasks)})
        answer = (await http.post(url, json=body, headers=modern(method, **headers))).json()
        found: int | None = answer.get("error", {}).get("code")
        return found

    async with web(served, patience=0.05) as url, httpx2.AsyncClient(timeout=120) as http:
        body = request(1, "tools/call", {"name": "shell_execute", "arguments": LONG, **meta(**tasks)})
        made = await http.post(url, json=body, headers=modern("tools/call", **{"mcp-name": "shell_execute"}))
        ident = made.json()["result"]["taskId"]
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            assert await code(method, ident, **{"mcp-name": "0" * 32}) == types.HEADER_MISMATCH
        assert await code("tasks/get", ident, **{"mcp-name": ident}) is None
        assert await code("tasks/get", ident) is None
        assert await code("tasks/cancel", ident) is None


@pytest.mark.anyio
async def test_a_task_over_http_is_polled_with_other_requests(served: Served) -> None:
    async def then(task: TaskResult, context: ClaimContext) -> types.CallToolResult:
        (served.making.made[0].path / "go").touch()
        state = await ended(context.session, task.task_id)
        return types.CallToolResult.model_validate(state.result)

    served.registry.find("client-1", None)
    async with (
        web(served, patience=0.05) as url,
        connected(url, A, "auto", extensions=[TakesTasks(then)]) as client,
    ):
        assert value_of(await client.call_tool("shell_execute", LONG))["stdout"] == "late\n"

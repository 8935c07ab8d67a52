"""What a client sends over HTTP that is refused, or that cancels nothing: it is answered, and harms nothing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx2
import pytest

from podbot.mcp.bounded_lines import LINE_BYTES
from podbot.mcp.http_transport import SESSIONS
from tests.mcp.pipes import HELLO, READY, call, request
from tests.mcp.test_tasks import LONG
from tests.mcp.test_transports import A, B, web
from tests.mcp.workspaces import Served
from tests.waiting import async_wait_until

pytestmark = pytest.mark.anyio
INVALID_REQUEST, INVALID_PARAMS, CANCELLED = -32600, -32602, "Request cancelled"


class Session:
    """A session of 2025-11-25: what a client of it sends, message by message."""

    def __init__(self, http: httpx2.AsyncClient, url: str, headers: dict[str, str]) -> None:
        self._http, self._url, self._headers = http, url, headers

    async def post(self, message: Any, token: str = A) -> httpx2.Response:
        return await self._http.post(
            self._url, json=message, headers={**self._headers, "authorization": f"Bearer {token}"}
        )

    async def answer(self, message: Any) -> Any:
        """The answer to a request; what is reported before it is left out."""
        response = await self.post(message)
        assert response.status_code == 200, response.text
        lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
        return json.loads(lines[-1])

    async def delete(self, token: str) -> httpx2.Response:
        return await self._http.delete(self._url, headers={**self._headers, "authorization": f"Bearer {token}"})


@contextlib.asynccontextmanager
async def client(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with the token A."""
    headers = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {A}"}
    async with httpx2.AsyncClient(headers=headers, timeout=120) as http:
        yield http


@contextlib.asynccontextmanager
async def session(served: Served) -> AsyncIterator[Session]:
    """A session of the client with the token A."""
    async with web(served) as url, client(url) as http:
        opened = await http.post(url, json=HELLO)
        made = Session(http, url, {"mcp-session-id": opened.headers["mcp-session-id"]})
        assert (await made.post(READY)).status_code == 202
        yield made


def error_of(response: httpx2.Response) -> Any:
    assert response.headers["content-type"] == "application/json"
    answer = response.json()
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", None)
    return answer["error"]


def cancelling(number: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_refusal_of_a_body_that_is_too_large_names_its_size_and_the_limit(
    served: Served, revision: str
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b"x" * (1 << 20)

    async with web(served) as url, client(url) as http:
        http.headers["mcp-protocol-version"] = revision
        whole = await http.post(url, content=b"x" * (LINE_BYTES + 1))
        assert whole.status_code == 413
        assert error_of(whole) == {
            "code": INVALID_REQUEST,
            "message": "The body has 4,194,305 bytes, the limit is 4,194,304.",
        }
        undeclared = await http.post(url, content=pieces())
        assert undeclared.status_code == 413
        assert error_of(undeclared)["message"] == "The body has more than 4,194,304 bytes, the limit is 4,194,304."


async def test_the_refusal_of_one_session_too_many_names_the_limit(served: Served) -> None:
    async with web(served) as url, client(url) as http:
        opened = [await http.post(url, json=HELLO) for _ in range(SESSIONS)]
        assert {response.status_code for response in opened} == {200}
        refused = await http.post(url, json=HELLO)
        assert refused.status_code == 503
        assert error_of(refused)["message"] == f"{SESSIONS} sessions are open, the most there may be."
        left = await http.delete(url, headers={"mcp-session-id": opened[0].headers["mcp-session-id"]})
        assert left.status_code == 200
        assert (await http.post(url, json=HELLO)).status_code == 200


@pytest.mark.parametrize("number", [None, 1.5, [], True])
async def test_a_request_whose_id_is_none_is_refused_as_over_stdio(served: Served, number: Any) -> None:
    async with session(served) as mine:
        refused = await mine.post({**request(2, "ping"), "id": number})
        assert refused.status_code == 400
        assert error_of(refused)["code"] == INVALID_REQUEST
        assert "id is neither text nor an integer" in error_of(refused)["message"]
        assert (await mine.post({"jsonrpc": "2.0", "id": 7, "result": {}})).status_code == 202  # an answer
        assert (await mine.answer(request(3, "ping")))["result"] == {}


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"name": 7}, "params.name is 7, not a string"),
        ({"name": "ls", "arguments": []}, "params.arguments is a list, not an object"),
        ({}, "params.name is missing"),
    ],
)
async def test_the_error_for_wrong_parameters_names_the_parameter(
    served: Served, params: dict[str, Any], text: str
) -> None:
    async with session(served) as mine:
        answer = await mine.answer(request(2, "tools/call", params))
        assert answer["error"] == {"code": INVALID_PARAMS, "message": text}


async def test_the_error_for_wrong_parameters_is_the_same_with_2026_07_28(served: Served) -> None:
    about = {"protocolVersion": "2026-07-28", "clientInfo": {"name": "t", "version": "1"}, "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{name}": given for name, given in about.items()}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "ls"}
    async with web(served) as url, client(url) as http:
        message = request(2, "tools/call", {"name": "ls", "arguments": [], "_meta": meta})
        answer = await http.post(url, json=message, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"] == {"code": INVALID_PARAMS, "message": "params.arguments is a list, not an object"}


async def test_a_call_that_is_cancelled_twice_and_after_its_end_harms_nothing(served: Served) -> None:
    script = "trap 'touch ended; exit 1' TERM; touch begun; while :; do sleep 0.01; done"
    async with session(served) as mine:
        assert not (await mine.answer(call(2, "ls")))["result"]["isError"]
        root = served.making.made[0].path
        answers: list[Any] = []

        async def long() -> None:
            arguments = {"command": ["sh", "-c", script], "timeout_seconds": 120}
            answers.append(await mine.answer(call(3, "shell_execute", arguments)))

        async with anyio.create_task_group() as group:
            group.start_soon(long)
            await async_wait_until((root / "begun").exists)
            for number in (3, 3, 2, 77):
                assert (await mine.post(cancelling(number))).status_code == 202
        assert [answer["error"]["message"] for answer in answers] == [CANCELLED]
        await async_wait_until((root / "ended").exists)
        assert (await mine.post(cancelling(3))).status_code == 202
        assert not (await mine.answer(call(3, "ls")))["result"]["isError"]  # its number is free again


async def test_a_session_is_unknown_to_the_client_with_another_token(served: Served) -> None:
    async with session(served) as mine:
        assert not (await mine.answer(call(2, "ls")))["result"]["isError"]
        root = served.making.made[0].path
        answers: list[Any] = []

        async def long() -> None:
            answers.append(await mine.answer(call(3, "shell_execute", LONG)))

        async with anyio.create_task_group() as group:
            group.start_soon(long)
            await async_wait_until((root / "begun").exists)
            foreign = [await mine.post(call(4, "ls"), B), await mine.post(cancelling(3), B), await mine.delete(B)]
            assert [response.status_code for response in foreign] == [404, 404, 404]
            (root / "go").touch()
        assert answers[0]["result"]["structuredContent"]["stdout"] == "late\n"
        assert not (await mine.answer(call(5, "ls")))["result"]["isError"]
        assert len(served.making.made) == 1

"""Long calls as tasks, for clients that declare the extension."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

import anyio
import anyio.lowlevel
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim, advertise

from podbot.mcp.tasks_extension import TASKS
from tests.mcp.test_server import links_of, text_of, value_of
from tests.mcp.workspaces import Served
from tests.waiting import async_wait_until, attempts

pytestmark = pytest.mark.anyio
IDENTIFIER = "io.modelcontextprotocol/tasks"
LONG = {"command": ["sh", "-c", "touch begun; until [ -e go ]; do sleep 0.01; done; echo late"], "timeout_seconds": 60}


class TaskResult(types.Result):
    """What a client gets instead of a result."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    ttl_ms: int | None = None
    poll_interval_ms: int | None = None


class State(types.Result):
    """Of ``tasks/get``, ``tasks/update`` and ``tasks/cancel``."""

    task_id: str = ""
    status: str = ""
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class Params(types.RequestParams):
    task_id: str


class TaskRequest(types.Request[Params, str]):
    name_param = "taskId"
    method: str
    params: Params


class TakesTasks(ClientExtension):
    """A client that takes tasks, and does ``then`` with each."""

    identifier = IDENTIFIER

    def __init__(self, then: Callable[[TaskResult, ClaimContext], Awaitable[types.CallToolResult]]) -> None:
        self._then = then

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskResult, resolve=self._then)]


async def ask(session: Any, method: str, ident: str) -> State:
    found = await session.send_request(TaskRequest(method=method, params=Params(task_id=ident)), State)
    assert isinstance(found, State)
    return found


async def ended(session: Any, ident: str) -> State:
    """The state of a task that has ended."""
    for _ in attempts("the task's end"):
        state = await ask(session, "tasks/get", ident)
        if state.status != "working":
            break
        await anyio.lowlevel.checkpoint()
    return state


async def test_a_long_call_becomes_a_task_whose_result_is_polled(served: Served) -> None:
    seen: list[TaskResult] = []

    async def then(task: TaskResult, context: ClaimContext) -> types.CallToolResult:
        seen.append(task)
        working = await ask(context.session, "tasks/get", task.task_id)
        assert working.status == "working"
        assert working.result is None
        (served.making.made[0].path / "go").touch()
        await ask(context.session, "tasks/update", task.task_id)
        state = await ended(context.session, task.task_id)
        assert state.status == "completed"
        return types.CallToolResult.model_validate(state.result)

    served.registry.find("a", None)
    async with Client(served.server(patience=0.05), extensions=[TakesTasks(then)]) as client:
        result = await client.call_tool("shell_execute", LONG)
    assert value_of(result)["stdout"] == "late\n"
    assert links_of(result) == []
    assert [task.status for task in seen] == ["working"]


async def test_a_short_call_is_no_task(served: Served) -> None:
    async with Client(served.server(patience=60), extensions=[advertise(IDENTIFIER)]) as client:
        assert text_of(await client.call_tool("sandbox_list"))
        with pytest.raises(MCPError):
            await client.session.call_tool("nonsense", {})


async def test_a_cancelled_task_ends_its_command(served: Served) -> None:
    async def then(task: TaskResult, context: ClaimContext) -> types.CallToolResult:
        await ask(context.session, "tasks/cancel", task.task_id)
        state = await ended(context.session, task.task_id)
        return types.CallToolResult(content=[types.TextContent(text=state.status)], is_error=True)

    served.registry.find("a", None)
    async with Client(served.server(patience=0.05), extensions=[TakesTasks(then)]) as client:
        assert text_of(await client.call_tool("shell_execute", LONG)) == "cancelled"


@pytest.mark.parametrize("extensions", [[], [advertise(IDENTIFIER)]])
async def test_unknown_tasks_and_clients_without_tasks_are_refused(served: Served, extensions: list[Any]) -> None:
    async with Client(served.server(), extensions=extensions) as client:
        with pytest.raises(MCPError) as caught:
            await ask(client.session, "tasks/get", "0" * 32)
    expected = types.INVALID_PARAMS if extensions else types.MISSING_REQUIRED_CLIENT_CAPABILITY
    assert caught.value.error.code == expected


async def test_a_client_without_the_extension_waits(served: Served) -> None:
    async with Client(served.server(patience=0.0)) as client:
        results: list[types.CallToolResult] = []

        async def call() -> None:
            results.append(await client.call_tool("shell_execute", LONG))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await async_wait_until(lambda: bool(served.making.made) and (served.making.made[0].path / "begun").exists())
            (served.making.made[0].path / "go").touch()
    assert value_of(results[0])["stdout"] == "late\n"


async def test_a_task_of_another_client_is_unknown(served: Served) -> None:
    server = served.server(patience=0.05)

    async def then(task: TaskResult, context: ClaimContext) -> types.CallToolResult:
        served.owner = "b"
        with pytest.raises(MCPError):
            await ask(context.session, "tasks/get", task.task_id)
        served.owner = "a"
        (served.making.made[0].path / "go").touch()
        return types.CallToolResult(content=[types.TextContent(text="refused")], is_error=True)

    served.registry.find("a", None)
    async with Client(server, extensions=[TakesTasks(then)]) as client:
        assert text_of(await client.call_tool("shell_execute", LONG)) == "refused"


async def test_calls_at_once_become_no_more_tasks_than_are_allowed(served: Served) -> None:
    tasks: list[str] = []
    results: list[types.CallToolResult] = []
    done = anyio.Event()

    async def then(task: TaskResult, context: ClaimContext) -> types.CallToolResult:
        tasks.append(task.task_id)
        if len(tasks) == TASKS:
            (served.making.made[0].path / "go").touch()
        await done.wait()
        return types.CallToolResult(content=[types.TextContent(text="a task")], is_error=True)

    served.registry.find("a", None)
    job = {"command": ["sh", "-c", "until [ -e go ]; do sleep 0.05; done"]}
    async with Client(served.server()) as client:  # it takes no tasks: the start would be one on a slow machine
        wait = {"job": value_of(await client.call_tool("job_start", job))["job"], "wait_seconds": 60}
    async with Client(served.server(patience=0.5), extensions=[TakesTasks(then)]) as client:

        async def call() -> None:
            found = await client.call_tool("job_output", wait)
            if text_of(found) != "a task":
                results.append(found)

        async with anyio.create_task_group() as group:
            for _ in range(TASKS + 10):
                group.start_soon(call)
            await async_wait_until(lambda: len(tasks) >= TASKS and len(results) + len(tasks) == TASKS + 10)
            done.set()
    assert len(tasks) == TASKS
    assert len(results) == 10


async def test_a_result_is_forgotten_after_its_time(served: Served) -> None:
    async def then(task: TaskResult, context: ClaimContext) -> types.CallToolResult:
        (served.making.made[0].path / "go").touch()
        with pytest.raises(MCPError) as caught:
            await ended(context.session, task.task_id)
        return types.CallToolResult(content=[types.TextContent(text=str(caught.value))], is_error=True)

    served.registry.find("a", None)
    async with Client(served.server(patience=0.05, kept=0.0), extensions=[TakesTasks(then)]) as client:
        assert "no longer kept" in text_of(await client.call_tool("shell_execute", LONG))

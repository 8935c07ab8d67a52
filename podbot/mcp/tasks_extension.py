"""The extension ``io.modelcontextprotocol/tasks`` (SEP-2663): a long call returns a task, whose result is polled.

Only clients of 2026-07-28 that declare it get tasks; for all others a call lasts as long as it takes. It is made of
what the SDK offers for extensions: methods of its own, and a result type of its own.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

import anyio
import anyio.abc
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    RequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

IDENTIFIER = "io.modelcontextprotocol/tasks"
PATIENCE = 2.0  # seconds of a call, after which it becomes a task
KEPT_SECONDS = 600.0  # a result that nobody fetched
TASKS = 64  # of one client, with its calls that may still become one; a call beyond is no task
POLL_SECONDS = 1.0

_LOG = logging.getLogger(__name__)
Call = Callable[[], Awaitable[CallToolResult]]
OwnerOf = Callable[[], str]


class TaskParams(RequestParams):
    """Of ``tasks/get`` and ``tasks/cancel``; ``tasks/update`` has more, which no task of podbot's asks for."""

    name_param: ClassVar[str] = "taskId"
    task_id: str = Field(alias="taskId", max_length=100)


@dataclass(slots=True)
class _Task:
    owner: str
    kept: float
    ident: str = field(default_factory=lambda: secrets.token_hex(16))
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    updated: datetime = field(default_factory=lambda: datetime.now(UTC))
    result: CallToolResult | None = None
    error: MCPError | None = None
    ended_at: float = 0.0

    def state(self) -> dict[str, Any]:
        """The fields of a task, as the extension's schema has them."""
        status = "working" if not self.done.is_set() else "completed" if self.result else "failed"
        if self.done.is_set() and self.result is None and self.error is None:
            status = "cancelled"
        return {
            "taskId": self.ident,
            "status": status,
            "createdAt": _time(self.created),
            "lastUpdatedAt": _time(self.updated),
            "ttlMs": None if status == "working" else round(self.kept * 1000),
            "pollIntervalMs": round(POLL_SECONDS * 1000),
        }

    def detailed(self) -> dict[str, Any]:
        """The state with the result or the error."""
        state = self.state()
        if self.result is not None:
            state["result"] = self.result.model_dump(by_alias=True, mode="json", exclude_none=True)
        if self.error is not None:
            state["error"] = self.error.error.model_dump(mode="json", exclude_none=True)
        return state


class Tasks:
    """The tasks of a server. ``patience``: seconds of a call before it becomes one. ``kept``: of its result."""

    def __init__(self, owner_of: OwnerOf, *, patience: float = PATIENCE, kept: float = KEPT_SECONDS) -> None:
        self._owner_of, self._patience, self._kept = owner_of, patience, kept
        self._tasks: dict[str, _Task] = {}
        self._group: anyio.abc.TaskGroup | None = None

    def offer(self, server: Server[Any]) -> None:
        """Declare the extension and serve its methods."""
        server.extensions[IDENTIFIER] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", TaskParams, self._update)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Tasks run during the block; what still runs at its end is cancelled."""
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                group.cancel_scope.cancel()

    def takes(self, ctx: ServerRequestContext[Any, Any]) -> bool:
        """Whether this request's client takes tasks."""
        return self._group is not None and _declared(ctx) and self._has_room(self._owner_of())

    async def result_or_task(self, call: Call) -> CallToolResult | dict[str, Any]:
        """The call's result if it comes soon, otherwise a task. Cancelled before that, it ends the call."""
        if self._group is None:
            return await call()
        task = _Task(self._owner_of(), self._kept)
        self._tasks[task.ident] = task  # from now on: calls at once must not all find room
        self._group.start_soon(self._run, task, call)
        try:
            with anyio.move_on_after(self._patience):
                await task.done.wait()
        except anyio.get_cancelled_exc_class():
            task.scope.cancel()
            self._tasks.pop(task.ident, None)
            raise
        if not task.done.is_set():
            return {"resultType": "task", **task.state()}
        self._tasks.pop(task.ident, None)
        if task.result is None:
            raise task.error or MCPError(INTERNAL_ERROR, "the call was cancelled")
        return task.result

    async def _run(self, task: _Task, call: Call) -> None:
        try:
            with task.scope:
                task.result = await call()
        except MCPError as error:
            task.error = error
        except Exception:  # noqa: BLE001 - one task must not end the others, and its message tells no internals
            _LOG.exception("a call that became a task failed")
            task.error = MCPError(INTERNAL_ERROR, "Internal server error")
        finally:
            task.updated, task.ended_at = datetime.now(UTC), anyio.current_time()
            task.done.set()

    async def _get(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        return self._found(ctx, params).detailed()

    async def _update(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        self._found(ctx, params)
        return {}

    async def _cancel(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        self._found(ctx, params).scope.cancel()
        return {}

    def _found(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> _Task:
        _compare_header(ctx, params)
        if not _declared(ctx):
            needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {IDENTIFIER: {}}}}
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", needed)
        self._forget_old()
        task = self._tasks.get(params.task_id)
        if task is None or task.owner != self._owner_of():
            raise MCPError(INVALID_PARAMS, f"there is no task {params.task_id!a}, or it is no longer kept")
        return task

    def _has_room(self, owner: str) -> bool:
        self._forget_old()
        return sum(task.owner == owner for task in self._tasks.values()) < TASKS

    def _forget_old(self) -> None:
        before = anyio.current_time() - self._kept
        for task in list(self._tasks.values()):
            if task.done.is_set() and task.ended_at < before:
                del self._tasks[task.ident]


def _declared(ctx: ServerRequestContext[Any, Any]) -> bool:
    capabilities = ctx.session.client_capabilities
    extensions = capabilities.extensions if capabilities is not None else None
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and extensions is not None and IDENTIFIER in extensions


def _compare_header(ctx: ServerRequestContext[Any, Any], params: TaskParams) -> None:
    """Raises MCPError if the request's header names another task: the SDK compares it for its own methods only.

    A proxy that reads only the header must not let a request through for a task that it would not allow.
    """
    headers = getattr(ctx.request, "headers", None)  # None over stdio
    named = None if headers is None else headers.get(MCP_NAME_HEADER)
    if named is not None and decode_header_value(named) != params.task_id:
        text = f"{MCP_NAME_HEADER} header does not match the request body's 'taskId' parameter"
        raise MCPError(HEADER_MISMATCH, text)


def _time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

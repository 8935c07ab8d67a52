"""Runs a server until its client leaves or a signal comes, and removes its sandboxes."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.server.lowlevel import Server

from podbot.events import Emit, Event
from podbot.mcp.bearer_tokens import BearerTokens
from podbot.mcp.http_transport import client_of_request, serve_http
from podbot.mcp.protocol_server import protocol_server
from podbot.mcp.resource_reader import ResourceReader
from podbot.mcp.sandbox_registry import SandboxRegistry
from podbot.mcp.stdio_transport import serve_stdio
from podbot.mcp.tool_calls import ToolCalls
from podbot.mcp.workspace_port import ExportPatch
from podbot.streams.wake import Signal, Wake

_STDIO_CLIENT = "stdio"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTools:
    """What is served. ``sandboxed``: for the instructions; the others: see SandboxRegistry and ToolCalls."""

    registry: SandboxRegistry
    export: ExportPatch | None = None
    read_only: bool = False
    code_chars: int | None = None
    sandboxed: bool = True

    def server(self, owner_of: Callable[[], str], **times: float) -> Server[Any]:
        """The protocol's server. ``times``: see :func:`~podbot.mcp.protocol_server.protocol_server`."""
        calls = ToolCalls(self.registry, self.export, read_only=self.read_only, code_chars=self.code_chars)
        resources = ResourceReader(self.registry)
        return protocol_server(calls, resources, owner_of, sandboxed=self.sandboxed, read_only=self.read_only, **times)


def serve_over_stdio(tools: ServedTools, *, stdin: int, stdout: int, wake: Wake, emit: Emit) -> int | None:
    """Serve the client on these descriptors. Returns the signal that ended it; None at the end of the input."""
    server = tools.server(lambda: _STDIO_CLIENT)
    return _served(tools, lambda: serve_stdio(server, stdin, stdout, emit), wake, emit)


def serve_over_http(
    tools: ServedTools, *, tokens: BearerTokens, listener: socket.socket, wake: Wake, emit: Emit
) -> int | None:
    """Serve clients on this socket. Returns the signal that ended it."""
    server = tools.server(client_of_request)
    return _served(tools, lambda: serve_http(server, tokens, listener), wake, emit)


def _served(tools: ServedTools, serve: Callable[[], Awaitable[None]], wake: Wake, emit: Emit) -> int | None:
    handler = _Log(emit)
    logging.getLogger().addHandler(handler)
    try:
        with wake.listening():  # a signal ends the loop below, and interrupts neither it nor the clean-up
            try:
                return anyio.run(_until_signal, serve, wake)
            finally:
                tools.registry.close_all()
    finally:
        logging.getLogger().removeHandler(handler)


async def _until_signal(serve: Callable[[], Awaitable[None]], wake: Wake) -> int | None:
    numbers: list[int] = []

    async def watch(group: anyio.abc.TaskGroup) -> None:
        while not numbers:
            await anyio.wait_readable(wake.fileno())
            numbers.extend(message.number for message in wake.take() if isinstance(message, Signal))
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch, group)
        await serve()
        group.cancel_scope.cancel()
    return numbers[0] if numbers else None


class _Log(logging.Handler):
    """Reports what the SDK and the HTTP server log, from warnings on."""

    def __init__(self, emit: Emit) -> None:
        super().__init__(logging.WARNING)
        self._emit = emit

    def emit(self, record: logging.LogRecord) -> None:
        """Report one record."""
        error = record.exc_info[1] if record.exc_info else None
        cause = "" if error is None else f": {type(error).__name__}: {error}"
        self._emit(Event("warning", "mcp.log", f"{record.name}: {record.getMessage()}{cause}"))

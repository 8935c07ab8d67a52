"""Runs a server until its client leaves or a signal comes, and removes its sandboxes."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
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


def serve_over_stdio(
    tools: ServedTools, *, stdin: int, stdout: int, wake: Wake, emit: Emit, client: int | None = None
) -> int | None:
    """Serve the client on these descriptors. Returns the signal that ended it; None if the client has left.

    ``client``: a descriptor that is readable once the client has ended; None: the end of the input tells.
    """
    server = tools.server(lambda: _STDIO_CLIENT)

    async def serve(ending: _Ending) -> None:
        await serve_stdio(server, stdin, stdout, emit, ending.begin)

    return _served(tools, serve, wake, emit, client)


def serve_over_http(
    tools: ServedTools, *, tokens: BearerTokens, listener: socket.socket, wake: Wake, emit: Emit
) -> int | None:
    """Serve clients on this socket. Returns the signal that ended it."""
    server = tools.server(client_of_request)
    return _served(tools, lambda _: serve_http(server, tokens, listener), wake, emit)


class _Ending:
    """How a server ends. ``registry``: its sandboxes; ``signal``: what began its end, if that was one."""

    def __init__(self, registry: SandboxRegistry) -> None:
        self.signal: int | None = None
        self._registry = registry
        self._begun = anyio.Event()

    def begin(self) -> None:
        """No client is left."""
        self._begun.set()

    async def remove_sandboxes(self) -> None:
        """Once the end begins, or this is cancelled.

        Not once the calls have returned: a cancelled one waits for its command, which may ignore TERM and would live
        for seconds more.
        """
        try:
            await self._begun.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._registry.close_all, limiter=anyio.CapacityLimiter(1))

    async def on_signal(self, wake: Wake, group: TaskGroup) -> None:
        """End the group at the first signal."""
        while self.signal is None:
            await anyio.wait_readable(wake.fileno())
            numbers = [message.number for message in wake.take() if isinstance(message, Signal)]
            self.signal = numbers[0] if numbers else None
        group.cancel_scope.cancel()


async def _on_end_of(client: int, emit: Emit, group: TaskGroup) -> None:
    """End the group when the client's process has ended, whether or not its input has."""
    await anyio.wait_readable(client)
    emit(Event("notice", "mcp.client_ended", "the client has ended"))
    group.cancel_scope.cancel()


def _served(
    tools: ServedTools, serve: Callable[[_Ending], Awaitable[None]], wake: Wake, emit: Emit, client: int | None = None
) -> int | None:
    async def until_over() -> int | None:
        ending = _Ending(tools.registry)
        async with anyio.create_task_group() as group:
            group.start_soon(ending.remove_sandboxes)
            group.start_soon(ending.on_signal, wake, group)
            if client is not None:
                group.start_soon(_on_end_of, client, emit, group)
            await serve(ending)
            group.cancel_scope.cancel()
        return ending.signal

    handler = _Log(emit)
    logging.getLogger().addHandler(handler)
    try:
        with wake.listening():  # a signal ends the loop, and interrupts neither it nor the clean-up
            return anyio.run(until_over)
    finally:
        logging.getLogger().removeHandler(handler)


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

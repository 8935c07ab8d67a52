"""The protocol over two descriptors. Lines are bounded, and no blocked reader or writer delays the end.

A line that is no message of JSON-RPC is answered by an error, because its sender may wait for an answer.
"""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from podbot.events import Emit, Event
from podbot.mcp.bounded_lines import BoundedLines, LongLine
from podbot.mcp.refused_messages import error_text, refusal

_PIECE = 1 << 16
_GONE = (BrokenPipeError, ConnectionResetError)  # the client has ended
_REFUSALS = 64  # errors that wait for a client to read them
_ENDING = 1.0  # seconds for the last answers, when the input has ended and the client does not read


class LineReader:
    """The messages of a descriptor, as the SDK iterates over the lines of a file. An incomplete last one is dropped.

    ``refuse`` gets the error for each line that is no message. The SDK would drop it silently, and its sender waits.
    ``at_end`` is called at the end of the input.
    """

    def __init__(
        self,
        descriptor: int,
        refuse: Callable[[types.JSONRPCError], object],
        at_end: Callable[[], object] = lambda: None,
    ) -> None:
        self._descriptor, self._refuse, self._at_end = descriptor, refuse, at_end
        self._lines = BoundedLines()
        self._taken: deque[str] = deque()

    def __aiter__(self) -> LineReader:
        return self

    async def __anext__(self) -> str:
        """The next line."""
        while not self._taken:
            # Abandoned when cancelled: a read of a pipe ends only with input.
            data = await anyio.to_thread.run_sync(self._read, abandon_on_cancel=True)
            if not data:
                self._at_end()
                raise StopAsyncIteration
            self._taken += filter(None, map(self._message, self._lines.take(data)))
        return self._taken.popleft()

    def _read(self) -> bytes:
        while True:
            try:
                return os.read(self._descriptor, _PIECE)
            except BlockingIOError:
                _wait(self._descriptor, select.POLLIN)
            except _GONE:
                return b""

    def _message(self, line: str | LongLine) -> str | None:
        """The line; None for one that is no message, which is refused unless it is blank."""
        if isinstance(line, str) and not line.strip():
            return None
        error = refusal(line)
        if error is None:
            return cast("str", line)
        self._refuse(error)
        return None


class LineWriter:
    """Writes to a descriptor, as the SDK writes to a file. ``gone``: is called when nobody can read it any more."""

    def __init__(self, descriptor: int, gone: Callable[[], object]) -> None:
        self._descriptor, self._gone = descriptor, gone
        self._lock = anyio.Lock()

    async def write(self, text: str) -> None:
        """Write all of it, in a thread: a client that does not read must not stop other calls."""
        data = text.encode("utf-8", "replace")
        try:
            async with self._lock:
                await anyio.to_thread.run_sync(self._write, data, abandon_on_cancel=True)
        except _GONE:
            self._gone()

    async def flush(self) -> None:
        """Nothing is held back."""

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:
                _wait(self._descriptor, select.POLLOUT)


class Refusals:
    """Errors for lines that are no messages, on their way to the client. ``emit``: reports each of them."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._send, self._receive = anyio.create_memory_object_stream[types.JSONRPCError](_REFUSALS)

    def add(self, error: types.JSONRPCError) -> None:
        """Send the error; not if too many wait already, because their client does not read."""
        what = error.error.message
        try:
            self._send.send_nowait(error)
        except anyio.WouldBlock:
            what += " It has no answer, because the client does not read."
        self._emit(Event("warning", "mcp.line_refused", f"the client sent a line that was refused: {what}"))

    async def write_to(self, writer: LineWriter) -> None:
        """Write them until :meth:`close`, and then the rest."""
        async with self._receive:
            async for error in self._receive:
                await writer.write(error_text(error) + "\n")

    def close(self) -> None:
        """No more follow."""
        self._send.close()


async def serve_stdio(
    server: Server[Any], stdin: int, stdout: int, emit: Emit, left: Callable[[], object] = lambda: None
) -> None:
    """Serve one client until its input ends, or its end is found by writing to it.

    The descriptors may be non-blocking. What the client does not read within a second after its input is dropped.
    ``left``: is called as soon as either is so; calls that still run end later.
    """
    with anyio.CancelScope() as scope:

        def gone() -> None:
            left()
            scope.cancel()

        writer, refusals = LineWriter(stdout, gone), Refusals(emit)
        reader = LineReader(stdin, refusals.add, left)
        async with anyio.create_task_group() as group:
            group.start_soon(refusals.write_to, writer)
            try:
                # Of a file the SDK uses only what these have.
                async with stdio_server(cast("Any", reader), cast("Any", writer)) as (read_stream, write_stream):
                    await server.run(read_stream, write_stream, server.create_initialization_options())
                    scope.deadline = anyio.current_time() + _ENDING
            finally:
                refusals.close()


def _wait(descriptor: int, event: int) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    poll.poll()

"""The protocol over two descriptors. Lines are bounded, and no blocked reader or writer delays the end."""

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

LINE_BYTES = 4 << 20  # as of a request over HTTP
_PIECE = 1 << 16
_GONE = (BrokenPipeError, ConnectionResetError)  # the client has ended
_ENDING = 1.0  # seconds for the last answers, when the input has ended and the client does not read


class BoundedLines:
    """Splits bytes into lines of text. One of more than ``most`` bytes becomes None."""

    def __init__(self, most: int = LINE_BYTES) -> None:
        self._most = most
        self._rest = bytearray()  # the beginning of a line
        self._dropping = False  # the rest of a line that is too long

    def take(self, data: bytes) -> list[str | None]:
        """The lines that end in ``data``."""
        lines: list[str | None] = []
        *whole, rest = data.split(b"\n")
        for part in whole:
            if not self._dropping:
                lines.append(self._line(part))
            self._rest.clear()
            self._dropping = False
        if not self._dropping:
            self._rest += rest
            if len(self._rest) > self._most:
                lines.append(None)
                self._rest.clear()
                self._dropping = True
        return lines

    def _line(self, part: bytes) -> str | None:
        line = bytes(self._rest) + part
        return line.decode("utf-8", "replace") if len(line) <= self._most else None


class LineReader:
    """The messages of a descriptor, as the SDK iterates over the lines of a file. An incomplete last one is dropped.

    A line that is no message is reported: the SDK would drop it silently, and its sender waits.
    """

    def __init__(self, descriptor: int, emit: Emit) -> None:
        self._descriptor, self._emit = descriptor, emit
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

    def _message(self, line: str | None) -> str | None:
        """The line; None for one that is no message, which is reported unless it is blank."""
        if line is None:
            self._report(f"more than {LINE_BYTES:,} bytes")
            return None
        try:
            types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:  # never reported itself: it has what was sent
            if line.strip():
                self._report(f"{len(line.encode()):,} bytes")
            return None
        return line

    def _report(self, size: str) -> None:
        message = f"the client sent a line of {size} that is no message of JSON-RPC; it was dropped without an answer"
        self._emit(Event("warning", "mcp.line_dropped", message))


class LineWriter:
    """Writes to a descriptor, as the SDK writes to a file. ``gone``: is called when nobody can read it any more."""

    def __init__(self, descriptor: int, gone: Callable[[], object]) -> None:
        self._descriptor, self._gone = descriptor, gone

    async def write(self, text: str) -> None:
        """Write all of it, in a thread: a client that does not read must not stop other calls."""
        try:
            await anyio.to_thread.run_sync(self._write, text.encode("utf-8", "replace"), abandon_on_cancel=True)
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


async def serve_stdio(server: Server[Any], stdin: int, stdout: int, emit: Emit) -> None:
    """Serve one client until its input ends, or its end is found by writing to it.

    The descriptors may be non-blocking. What the client does not read within a second after its input is dropped.
    """
    with anyio.CancelScope() as scope:
        reader, writer = LineReader(stdin, emit), LineWriter(stdout, scope.cancel)
        # Of a file the SDK uses only what these have.
        async with stdio_server(cast("Any", reader), cast("Any", writer)) as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())
            scope.deadline = anyio.current_time() + _ENDING


def _wait(descriptor: int, event: int) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    poll.poll()

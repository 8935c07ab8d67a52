"""A shell for asyncio: each call waits in a thread, and cancelling a call terminates its command."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Self

from podbot.shell.async_calls import AsyncCalls
from podbot.shell.async_commands import AsyncJob, AsyncStream, AsyncTerminal
from podbot.shell.command_shell import CommandShell
from podbot.shell.jobs import ShellJob
from podbot.shell.live import Live
from podbot.shell.types import Command


class AsyncShell:
    """A shell's calls as coroutines, with the same arguments, results and errors: :class:`CommandShell`.

    ``concurrency``: how many calls run at the same time; further calls are queued. A cancelled call returns when its
    command has ended. ``close``, and leaving the ``async with`` block, ends the threads; the shell itself stays open.
    """

    def __init__(self, shell: CommandShell, *, concurrency: int = 64) -> None:
        self._calls = calls = AsyncCalls(concurrency)
        self.execute = calls.asynchronous(shell.execute)
        self.execute_bytes = calls.asynchronous(shell.execute_bytes)
        self.execute_script = calls.asynchronous(shell.execute_script)
        self.which = calls.asynchronous(shell.which)
        self.env = calls.asynchronous(shell.env)
        self.jobs = calls.asynchronous(shell.jobs)
        self._start = calls.asynchronous(shell.start, discard=ShellJob.kill)
        self._job = calls.asynchronous(shell.job)
        self._stream = calls.asynchronous(shell.stream, discard=Live.close)
        self._terminal = calls.asynchronous(shell.terminal, discard=Live.close)

    async def start(self, command: Command, **options: Any) -> AsyncJob:
        """See :meth:`JobShell.start`. A job whose start is cancelled is terminated."""
        return AsyncJob(self._calls, await self._start(command, **options))

    async def job(self, ident: str) -> AsyncJob:
        """See :meth:`JobShell.job`. Raises InvalidCommand."""
        return AsyncJob(self._calls, await self._job(ident))

    @contextlib.asynccontextmanager
    async def stream(self, command: Command, **options: Any) -> AsyncIterator[AsyncStream]:
        """See :meth:`JobShell.stream`; leaving the block terminates the command."""
        stream = await self._stream(command, **options)
        try:
            yield AsyncStream(self._calls, stream)
        finally:
            await self._closed(stream)

    @contextlib.asynccontextmanager
    async def terminal(self, command: Command, **options: Any) -> AsyncIterator[AsyncTerminal]:
        """See :meth:`JobShell.terminal`; leaving the block terminates the command."""
        terminal = await self._terminal(command, **options)
        try:
            yield AsyncTerminal(self._calls, terminal)
        finally:
            await self._closed(terminal)

    @property
    def closed(self) -> bool:
        """Whether its threads have ended, or end."""
        return self._calls.closed

    def close(self) -> None:
        """End the threads when their calls have returned."""
        self._calls.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    async def _closed(self, live: Live) -> None:
        await asyncio.shield(self._calls.call(live.close))

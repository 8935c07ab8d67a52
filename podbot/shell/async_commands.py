"""Streams, terminals and jobs for asyncio."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator

from podbot.shell.async_calls import AsyncCalls
from podbot.shell.jobs import ShellJob
from podbot.shell.output_stream import Stream, Terminal
from podbot.shell.requests import wait_of
from podbot.shell.types import BytesResult, Chunk, JobOutput, JobState, StreamName

_READ_SECONDS = 0.25  # within which a cancelled read of a terminal returns
_FIRST_POLL, _LAST_POLL = 0.01, 0.25  # seconds between two looks at a job


class AsyncStream:
    """A running command; ``async for`` yields its output as :class:`Chunk`. ``result``: see CommandStream.

    Cancelling the iteration terminates the command.
    """

    def __init__(self, calls: AsyncCalls, stream: Stream) -> None:
        self._calls, self._stream = calls, stream

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        chunks = iter(self._stream)
        end = self._stream.running.terminate
        while (chunk := await self._calls.call(lambda: next(chunks, None), end=end)) is not None:
            yield chunk

    @property
    def result(self) -> BytesResult:
        """The command's result, with empty streams. Raises ValueError while the command runs, and CommandSurvived."""
        return self._stream.result

    async def signal(self, number: int) -> None:
        """See :meth:`CommandStream.signal`."""
        await self._calls.call(functools.partial(self._stream.signal, number))

    async def terminate(self) -> None:
        """See :meth:`CommandStream.terminate`."""
        await self._calls.call(self._stream.terminate)


class AsyncTerminal:
    """A command on its own terminal: see :class:`TerminalSession`. One task reads; others may write and resize."""

    def __init__(self, calls: AsyncCalls, terminal: Terminal) -> None:
        self._calls, self._terminal = calls, terminal

    async def read(self, timeout_seconds: float | None = None) -> bytes:
        """See :meth:`TerminalSession.read`. A cancelled read takes no output."""
        await self._await_output(wait_of(timeout_seconds))
        piece = self._terminal.taken()
        return b"" if piece is None else piece[1]

    async def write(self, data: bytes) -> None:
        """See :meth:`TerminalSession.write`. When cancelled, the command is terminated if it accepts no data."""
        await self._calls.call(functools.partial(self._terminal.write, data), end=self._terminal.running.terminate)

    async def resize(self, columns: int, rows: int) -> None:
        """See :meth:`TerminalSession.resize`. Raises InvalidCommand."""
        await self._calls.call(functools.partial(self._terminal.resize, columns, rows))

    async def signal(self, number: int) -> None:
        """See :meth:`TerminalSession.signal`. Raises InvalidCommand."""
        await self._calls.call(functools.partial(self._terminal.signal, number))

    async def wait(self, timeout_seconds: float | None = None) -> BytesResult | None:
        """See :meth:`TerminalSession.wait`. Output that a cancelled call has dropped is lost."""
        end = _end(timeout_seconds)
        while self._terminal.ended is None:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return None
            await self._await_output(left)
            while self._terminal.taken() is not None:
                pass
        return self._terminal.wait(0)

    async def _await_output(self, seconds: float | None) -> None:
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            left = _READ_SECONDS if end is None else min(_READ_SECONDS, max(0.0, end - time.monotonic()))
            if await self._calls.call(functools.partial(self._terminal.await_output, left)):
                return
            if end is not None and time.monotonic() >= end:
                return


class AsyncJob:
    """A command in the background: see :class:`Job`. Cancelling a call does not end the job."""

    def __init__(self, calls: AsyncCalls, job: ShellJob) -> None:
        self._calls, self._job = calls, job

    @property
    def id(self) -> str:
        """The job's id, an argument of :meth:`AsyncShell.job`."""
        return self._job.id

    async def poll(self) -> JobState:
        """See :meth:`Job.poll`."""
        return await self._calls.call(self._job.poll)

    async def output(self, offset: int = 0, *, stream: StreamName = "stdout", limit: int = 65536) -> JobOutput:
        """See :meth:`Job.output`."""
        return await self._calls.call(functools.partial(self._job.output, offset, stream=stream, limit=limit))

    async def wait(self, timeout_seconds: float | None = None) -> JobState:
        """See :meth:`Job.wait`. It looks at the job every 0.25 s and so keeps no thread busy."""
        end = _end(timeout_seconds)
        pause = _FIRST_POLL
        while (state := await self.poll()).running:
            left = pause if end is None else min(pause, end - time.monotonic())
            if left <= 0:
                break
            await asyncio.sleep(left)
            pause = min(2 * pause, _LAST_POLL)
        return state

    async def kill(self, number: int | None = None) -> None:
        """See :meth:`Job.kill`. Raises InvalidCommand."""
        await self._calls.call(functools.partial(self._job.kill, number))


def _end(timeout_seconds: float | None) -> float | None:
    """The time of the monotonic clock at which a wait is over. Raises InvalidCommand."""
    seconds = wait_of(timeout_seconds)
    return None if seconds is None else time.monotonic() + seconds

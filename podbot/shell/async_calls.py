"""Runs blocking calls in threads, for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from podbot.errors import PodbotError
from podbot.shell.cancellation import CALL, Cancellation

_P = ParamSpec("_P")
_T = TypeVar("_T")


class AsyncCalls:
    """At most ``concurrency`` calls run at the same time; further ones wait for a free thread."""

    def __init__(self, concurrency: int) -> None:
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="podbot-shell")
        self.closed = False

    async def call(
        self,
        function: Callable[[], _T],
        *,
        end: Callable[[], object] = lambda: None,
        discard: Callable[[_T], object] = lambda _result: None,
    ) -> _T:
        """The result of ``function``.

        When cancelled, the call returns once ``function`` has. The command that it waits for is terminated, and ``end``
        is called, which must make ``function`` return if it waits for anything else. ``discard`` then gets the result,
        which no caller will see.
        """
        cancellation = Cancellation()
        context = contextvars.copy_context()
        context.run(CALL.set, cancellation)
        future = self._threads.submit(context.run, function)
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not future.cancel():
                # In a thread of asyncio's own: these may all be in use. A second cancellation leaves it running.
                await asyncio.shield(asyncio.to_thread(_cancelled, future, cancellation, end, discard))
            raise
        finally:
            waiting.add_done_callback(_retrieve)

    def asynchronous(
        self, function: Callable[_P, _T], *, discard: Callable[[_T], object] = lambda _result: None
    ) -> Callable[_P, Coroutine[Any, Any, _T]]:
        """``function`` as a coroutine function. ``discard``: see :meth:`call`."""

        @functools.wraps(function)
        async def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            return await self.call(functools.partial(function, *args, **kwargs), discard=discard)

        return called

    def close(self) -> None:
        """End the threads when their calls have returned."""
        self.closed = True
        self._threads.shutdown()


async def whole(function: Callable[[], object]) -> None:
    """Run ``function`` in a thread to its end. A cancellation does not cut this short: it is raised afterwards."""
    running = asyncio.get_running_loop().run_in_executor(None, function)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        raise cancelled
    running.result()


def _cancelled(
    future: Future[_T], cancellation: Cancellation, end: Callable[[], object], discard: Callable[[_T], object]
) -> None:
    cancellation.cancel()
    with contextlib.suppress(PodbotError, OSError):
        end()
    if future.exception() is None:
        with contextlib.suppress(PodbotError, OSError):
            discard(future.result())


def _retrieve(waiting: asyncio.Future[Any]) -> None:
    """Mark the error of a cancelled call as seen: asyncio reports errors that were never retrieved."""
    if not waiting.cancelled():
        waiting.exception()

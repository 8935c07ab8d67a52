"""Runs blocking calls in threads, under either event loop of anyio (asyncio, trio). Needs anyio, which extras bring."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from podbot.shell.cancellation import CALL, Cancellation

_T = TypeVar("_T")
_THREADS = 256  # calls at once of one event loop; each waits for one command
_LIMITER: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("podbot_anyio_calls")


class _Call(Generic[_T]):
    """A call that can be ended from another thread, also before its own thread has begun it."""

    def __init__(self, function: Callable[[], _T]) -> None:
        self._function = function
        self._cancellation = Cancellation()
        self._context = contextvars.copy_context()
        self._context.run(CALL.set, self._cancellation)
        self._lock = threading.Lock()
        self._begun = self._dropped = False
        self._returned = threading.Event()

    def run(self) -> _T:
        """The function's result. Raises RuntimeError when the call was ended before: nobody sees that."""
        with self._lock:
            if self._dropped:
                raise RuntimeError("the call was cancelled")
            self._begun = True
        try:
            return self._context.run(self._function)
        finally:
            self._returned.set()

    def end(self) -> None:
        """Terminate the command that it waits for, and wait for its return; prevent it if it has not begun."""
        with self._lock:
            self._dropped = True
            if not self._begun:
                return
        self._cancellation.cancel()
        self._returned.wait()


async def in_thread(function: Callable[[], _T]) -> _T:
    """The result of ``function``, which may run commands of a shell.

    When cancelled, the command that it waits for is terminated, and the call returns once ``function`` has.
    """
    call = _Call(function)
    try:
        return await anyio.to_thread.run_sync(call.run, abandon_on_cancel=True, limiter=_limiter())
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(call.end, limiter=anyio.CapacityLimiter(1))
        raise


async def whole(function: Callable[[], _T]) -> _T:
    """The result of ``function``, for which a cancellation waits."""
    return await anyio.to_thread.run_sync(function, limiter=_limiter())


def _limiter() -> anyio.CapacityLimiter:
    try:
        return _LIMITER.get()
    except LookupError:
        made = anyio.CapacityLimiter(_THREADS)
        _LIMITER.set(made)
        return made

"""A hosted session in a separate thread, for a Python program that is the client."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from podbot.execution.runner import ExecIO
from podbot.hosting.host import HostResult
from podbot.streams.protocol_channel import Channel, Counts
from podbot.streams.wake import Signal, Wake


class HasFileno(Protocol):
    """An object with a descriptor, such as a socket or a pipe's file object."""

    def fileno(self) -> int: ...


class HostedSession:
    """A running session. Use it as a context manager: leaving the block cancels it and waits for its end.

    Every method may be called from any thread. The descriptors that the caller passed are duplicated at once,
    so the caller may close its own, and podbot never does.
    """

    def __init__(
        self,
        work: Callable[[ExecIO, Wake], HostResult],
        channel: Channel,
        *,
        stdin: int | HasFileno,
        stdout: int | HasFileno,
        stderr: int | HasFileno | None,
    ) -> None:
        self._work = work
        self._channel = channel
        self._wake = Wake()
        self._lock = threading.RLock()  # a signal handler may cancel in the middle of a cancel
        self._over = False  # no more posts: the wake pipe's descriptor numbers may have been reused
        self._reported = False  # ``wait`` has returned the result or raised the error
        self._result: HostResult | None = None
        self._error: BaseException | None = None
        self._owned: list[int] = []
        try:
            io = ExecIO(self._own(stdin), self._own(stdout), None if stderr is None else self._own(stderr))
            self._thread = threading.Thread(target=self._run, args=(io,), name="podbot-host", daemon=True)
            self._thread.start()
        except BaseException:
            self._release()
            raise

    def wait(self, timeout: float | None = None) -> HostResult:
        """The result, once the agent has ended and everything is cleaned up; ``timeout`` in seconds.

        Raises TimeoutError, and the error that ended the session: ContainerError, SessionError, FilesystemError
        and StreamError subclasses, or an exception of ``emit``.
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError("the session has not ended yet")
        self._reported = True
        if self._error is not None:
            raise self._error
        assert self._result is not None  # noqa: S101 - one of the two is set before the thread ends
        return self._result

    def cancel(self) -> None:
        """End the session: the agent's input ends, 10 s later it gets TERM, 2 s later KILL.

        A second call skips to the next step. Returns at once; no effect after the session has ended.
        """
        with self._lock:
            if not self._over:
                self._wake.post(Signal(signal.SIGTERM))

    @property
    def done(self) -> bool:
        """Whether the session is over, so that ``wait`` returns or raises at once."""
        return not self._thread.is_alive()

    @property
    def statistics(self) -> Counts:
        """The traffic so far: frames and bytes each way, refusals."""
        return self._channel.counts

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Cancel and wait. Raises the error that ended the session, unless ``wait`` or the block raised already."""
        self.cancel()
        self._thread.join()
        if kind is None and not self._reported:
            self.wait()

    def _run(self, io: ExecIO) -> None:
        try:
            self._result = self._work(io, self._wake)
        except BaseException as exc:  # noqa: BLE001 - raised again by ``wait``
            self._error = exc
        finally:
            self._release()

    def _own(self, given: int | HasFileno) -> int:
        fd = os.dup(given if isinstance(given, int) else given.fileno())
        self._owned.append(fd)
        return fd

    def _release(self) -> None:
        with self._lock:
            self._over = True
            self._wake.close()
        for fd in self._owned:
            os.close(fd)

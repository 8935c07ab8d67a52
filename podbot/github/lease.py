"""File locks that decide who writes a session's token; the kernel releases them when the holder dies.

All are in the session's own directory, which is not mounted into the sandbox: root inside could lock them.

- ``token.lock``, the lease: its holder is the only writer of the session's token.
- ``token.claim``: held by a token-daemon that wants the session; the session's own podbot then releases the lease.
- ``token.write``: held for the milliseconds of a write or of the token's removal, so that a late writer cannot
  restore a removed token.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from podbot.errors import PathError
from podbot.locks import is_held, same_file

LEASE = "token.lock"
CLAIM = "token.claim"
GUARD = "token.write"
_OPEN = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW  # a child process must not inherit a lock


class FileLock:
    """An exclusive lock on a file that is created when missing and never removed. Not to be shared between threads.

    ``sleep``: what waits between two attempts.
    """

    def __init__(self, path: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.path = path
        self._sleep = sleep
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether we hold it and the path still names it: a session's directory may be removed and made again."""
        if self._descriptor is None:
            return False
        if same_file(self._descriptor, self.path):
            return True
        self.release()
        return False

    def try_acquire(self) -> bool:
        """Take it if it is free; False also when its directory is gone. Raises PathError when it is not a lock file.

        :func:`is_held` takes it shared for a moment; that is waited for, 8 ms at most.
        """
        for attempt in range(5):
            if attempt:
                self._sleep(0.002)
            if self.held or self._taken():
                return True
            if is_held(self.path):
                return False
        return False

    def acquire(self, seconds: float) -> bool:
        """:meth:`try_acquire` for up to ``seconds``, or until there is no directory for it."""
        end = time.monotonic() + seconds
        while not self.try_acquire():
            if time.monotonic() >= end or not os.path.isdir(os.path.dirname(self.path)):
                return False
            self._sleep(0.005)
        return True

    def release(self) -> None:
        """Release it; nothing happens when it is not held."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.release()

    def _taken(self) -> bool:
        try:
            descriptor = os.open(self.path, _OPEN | os.O_CREAT, 0o600)
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise PathError(path=self.path, operation="lock", reason=exc.strerror or str(exc)) from exc
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self.held

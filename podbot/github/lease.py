"""Who writes a session's token: locks that the kernel frees when their holder dies, however it dies.

All lie in the session's own directory, which the sandbox does not see: root inside could lock what is mounted.

- ``token.lock``, the lease: its holder is the session's one writer.
- ``token.claim``: held by a token-daemon that wants the session; a ``run`` that sees it lets go of the lease.
- ``token.write``: held for the milliseconds of a write or of the token's removal, so that a writer that is late
  cannot bring a removed token back.
"""

from __future__ import annotations

import fcntl
import os
import time
from types import TracebackType
from typing import Self

from podbot.errors import PathError
from podbot.locks import is_held, same_file

LEASE = "token.lock"
CLAIM = "token.claim"
GUARD = "token.write"
_OPEN = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW  # children that podbot starts must not keep a lock of ours


class FileLock:
    """An exclusive lock on a file, which is made when missing and never removed. Not for sharing between threads."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """It is ours, and still the lock of that name: a session's directory may be removed and made again."""
        if self._descriptor is None:
            return False
        if same_file(self._descriptor, self.path):
            return True
        self.release()
        return False

    def try_acquire(self) -> bool:
        """Take it when nobody has it; False also when its directory is gone. Raises PathError when it is no lock file.

        Somebody who only looks (:func:`is_held`) has it for a moment, shared; that one is waited for, 8 ms at most.
        """
        for attempt in range(5):
            if attempt:
                time.sleep(0.002)
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
            time.sleep(0.005)
        return True

    def release(self) -> None:
        """Let go; nothing happens when it is not ours."""
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

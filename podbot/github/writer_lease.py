"""Elects the one process that writes a session's token."""

from __future__ import annotations

import os
from typing import Literal

from podbot.errors import PathError, PodbotError
from podbot.github.grant import Grant, grant_path
from podbot.github.lease import CLAIM, GUARD, LEASE, FileLock
from podbot.github.status import Kind
from podbot.locks import is_held

GUARD_WAIT = 2.0  # seconds; a write takes milliseconds

LeaseState = Literal["held", "acquired", "waiting", "other", "withdrawn"]


class TokenWriterLease:
    """One process's side of the election; not to be shared between threads.

    ``kind``: ``session`` (the session's own podbot) gives the lease up while a daemon claims the session, ``daemon``
    claims the session and waits for the lease, ``once`` tries the lease only.
    """

    def __init__(self, session_dir: str, grant: Grant, kind: Kind) -> None:
        self._dir, self._grant, self._kind = session_dir, grant, kind
        self._lease, self._claim, self._guard = (FileLock(os.path.join(session_dir, n)) for n in (LEASE, CLAIM, GUARD))
        self._seen: tuple[int, int, int] | None = None  # the grant file's identity when it last held our grant

    @property
    def held(self) -> bool:
        """This process holds the lease."""
        return self._lease.held

    def update(self) -> LeaseState:
        """Acquire or release the locks as the rules say, and return the state afterwards.

        ``acquired``: this process holds the lease since this call. ``waiting``: the holder is about to release it.
        ``other``: another process writes. ``withdrawn``: the grant was removed or replaced; nothing is held.
        Raises PathError when a lock file is not a regular file.
        """
        state = self._update() if self.grant_is_current() else "withdrawn"
        if state == "withdrawn":
            self.release()
        return state

    def _update(self) -> LeaseState:
        if self._kind == "session" and is_held(self._claim.path):
            self._lease.release()
            return "other"
        if self._kind == "daemon" and not self._claim.try_acquire():
            return "other"
        if self._lease.held:
            return "held"
        if self._lease.try_acquire():
            return "acquired"
        return "waiting" if self._kind == "daemon" else "other"

    def acquire(self) -> bool:
        """Try to take the lease alone, regardless of claims and of whether there is a grant yet."""
        return self._lease.try_acquire()

    def grant_is_current(self) -> bool:
        """Whether the session's grant is still ours. The file is read again only when it was replaced."""
        try:
            found = os.lstat(grant_path(self._dir))
        except OSError:
            return False
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            try:
                same = Grant.load(self._dir) == self._grant
            except PodbotError:
                same = False
            self._seen = seen if same else None
        return self._seen is not None

    def guarded(self) -> FileLock:
        """Hold the lock under which the token is written or removed: ``with lease.guarded(): ...``."""
        if not self._guard.acquire(GUARD_WAIT):
            raise PathError(path=self._guard.path, operation="lock", reason="another process has held it for too long")
        return self._guard

    def release(self) -> None:
        """Release every lock."""
        self._lease.release()
        self._claim.release()

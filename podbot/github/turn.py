"""Whose turn it is to write a session's token: this process's, another's, or nobody's any more."""

from __future__ import annotations

import os
from typing import Literal

from podbot.errors import PathError, PodbotError
from podbot.github.grant import Grant, grant_path
from podbot.github.lease import CLAIM, GUARD, LEASE, FileLock
from podbot.github.status import Kind
from podbot.locks import is_held

GUARD_WAIT = 2.0  # seconds; a write takes milliseconds

Answer = Literal["ours", "taken", "waiting", "theirs", "over"]


class Turn:
    """One process's part in who writes; not for sharing between threads.

    ``session`` (its own podbot) stands by while a daemon claims the session, ``daemon`` claims it and waits for the
    lease, ``once`` asks for the lease only.
    """

    def __init__(self, session_dir: str, grant: Grant, kind: Kind) -> None:
        self._dir, self._grant, self._kind = session_dir, grant, kind
        self._lease, self._claim, self._guard = (FileLock(os.path.join(session_dir, n)) for n in (LEASE, CLAIM, GUARD))
        self._seen: tuple[int, int, int] | None = None  # of the grant's file, when it was last found to be ours

    @property
    def held(self) -> bool:
        """The lease is ours."""
        return self._lease.held

    def look(self) -> Answer:
        """Take what may be taken, let go of what must be.

        ``taken``: the lease has just become ours. ``waiting``: it soon will. ``over``: the grant is withdrawn or
        another one; nothing is held. Raises PathError when a lock cannot be one.
        """
        answer = self._look() if self.stands() else "over"
        if answer == "over":
            self.release()
        return answer

    def _look(self) -> Answer:
        if self._kind == "session" and is_held(self._claim.path):
            self._lease.release()
            return "theirs"
        if self._kind == "daemon" and not self._claim.try_acquire():
            return "theirs"
        if self._lease.held:
            return "ours"
        if self._lease.try_acquire():
            return "taken"
        return "waiting" if self._kind == "daemon" else "theirs"

    def take(self) -> bool:
        """The lease alone, whatever is claimed and whether there is a grant yet or not."""
        return self._lease.try_acquire()

    def stands(self) -> bool:
        """The session's grant is the one that we have. It is read again only when the file is another one."""
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
        """The lock under which the token is written or removed, held: ``with turn.guarded(): ...``."""
        if not self._guard.acquire(GUARD_WAIT):
            raise PathError(path=self._guard.path, operation="lock", reason="another process has held it for too long")
        return self._guard

    def release(self) -> None:
        """Let go of everything."""
        self._lease.release()
        self._claim.release()

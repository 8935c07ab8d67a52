"""Locks on files in a session's directory, which show what podbot processes are doing with the session.

The kernel releases a lock when its holder ends. ``lock`` means that a podbot process owns the session; the other
locks are held in addition to it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator

from podbot.errors import PathError
from podbot.events import Emit, Event
from podbot.locks import ATTEMPTS, is_held, locked_in
from podbot.places import is_own_directory

LOCK = "lock"
STOPPING = "stopping"
ENDING = "ending"  # held in addition to the lock by a process that is only ending the session
ORPHANED = "orphaned"  # held by a process that ends a session whose podbot was killed
LEAVING = "leaving"  # held by the process that removes or stops the sandbox at its session's own end
USED = "used"  # shared by every `podbot exec` in the session
WANTED = "wanted"  # held by a podbot that waits for the session to end
ENDING_SECONDS = 30.0  # for ending the previous session of a name: TERM, KILL, search for unsaved work


@contextlib.contextmanager
def in_use(path: str, *, sleep: Callable[[float], object] = time.sleep) -> Iterator[None]:
    """Make :func:`is_in_use` true while the block runs. Any number of processes may do so at once."""
    if not is_own_directory(path):  # not a session of this host, or a directory that another user made
        yield
        return
    lock = None
    with contextlib.suppress(PathError, OSError):
        lock = locked_in(path, USED, fcntl.LOCK_SH, sleep=sleep, make=lambda _: None)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def is_in_use(path: str) -> bool:
    """Whether a `podbot exec` is running in the session."""
    try:
        lock = os.open(os.path.join(path, USED), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def is_live(path: str, name: str = LOCK) -> bool:
    """Whether a podbot process holds the session's lock (or the lock on another file in that directory)."""
    return is_held(os.path.join(path, name))


def stopping(path: str) -> contextlib.AbstractContextManager[int]:
    """While the block runs, the session's own podbot leaves its container to us. No effect without a directory."""
    return flagged(path, STOPPING)


@contextlib.contextmanager
def flagged(path: str, name: str, *, sleep: Callable[[float], object] = time.sleep) -> Iterator[int]:
    """Make :func:`is_live` true of that file in the session's directory while the block runs.

    Yields its descriptor; a process that inherits the descriptor holds the lock too. Yields -1 without a directory.
    """
    flag = os.path.join(path, name)
    try:
        lock = os.open(flag, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield -1
        return
    try:
        with contextlib.suppress(OSError):
            _raise_flag(lock, flag, sleep)
        yield lock
    finally:
        os.close(lock)


def _raise_flag(lock: int, path: str, sleep: Callable[[float], object]) -> None:
    """Take the lock unless another process holds it as a flag too. Retried for 70 ms: is_held takes it briefly."""
    for attempt in range(ATTEMPTS):
        if attempt:
            sleep(0.01)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if is_held(path):
                return
        else:
            return


def await_ending(path: str, emit: Emit, seconds: float = ENDING_SECONDS) -> None:
    """Ask a process that is ending the session of that name to skip the grace, and wait for it; ``seconds`` at most."""
    if not is_live(path, ENDING):
        return
    session = os.path.basename(path)
    text = f"waiting for the previous session {session} to end"
    emit(Event("info", "session.ending", text, {"session": session}))
    end = time.monotonic() + seconds
    with flagged(path, WANTED):
        while is_live(path, ENDING) and time.monotonic() < end:
            time.sleep(0.02)


def is_passing(path: str) -> bool:
    """Whether the process that held the session's lock is only ending that session, or has released it since."""
    return is_live(path, ENDING) or not is_live(path)


def await_release(path: str, seconds: float) -> bool:
    """Wait until no podbot holds the session's lock; returns false if one still does."""
    end = time.monotonic() + seconds
    while is_live(path):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True

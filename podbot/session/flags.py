"""What other podbot processes do with a session, as locks on files in its directory.

The kernel releases each with its holder. ``lock``: a podbot process has the session. The others are held beside it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator

from podbot.events import Emit, Event
from podbot.locks import is_held
from podbot.places import is_own_directory

LOCK = "lock"
STOPPING = "stopping"
ENDING = "ending"  # held beside the lock: whoever has the session only ends it
USED = "used"  # shared by every `podbot exec` in the session
WANTED = "wanted"  # held by a podbot that waits for that end
ENDING_SECONDS = 30.0  # for whoever ends the previous session of a name: TERM, KILL, a look for unsaved work
ATTEMPTS = 8  # to take a lock that :func:`is_live` holds for a moment, 10 ms apart


@contextlib.contextmanager
def in_use(path: str) -> Iterator[None]:
    """While the block runs, :func:`is_in_use` is true of the session's directory. Any number of processes at once."""
    if not is_own_directory(path):  # no session of this host, or a directory that another user made in its place
        yield
        return
    try:
        lock = os.open(os.path.join(path, USED), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):  # another podbot looks at this moment
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)


def is_in_use(path: str) -> bool:
    """A `podbot exec` is at work in the session."""
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
    """A podbot process holds the session's lock (or another file of that directory)."""
    return is_held(os.path.join(path, name))


def stopping(path: str) -> contextlib.AbstractContextManager[int]:
    """While the block runs, the podbot of a live session leaves its container to us. Nothing without a directory."""
    return flagged(path, STOPPING)


@contextlib.contextmanager
def flagged(path: str, name: str) -> Iterator[int]:
    """While the block runs, :func:`is_live` is true of that file in the session's directory.

    Yields its descriptor, whose holders hold the flag as well; -1 without a directory.
    """
    flag = os.path.join(path, name)
    try:
        lock = os.open(flag, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield -1
        return
    try:
        with contextlib.suppress(OSError):
            _raise_flag(lock, flag)
        yield lock
    finally:
        os.close(lock)


def _raise_flag(lock: int, path: str) -> None:
    """Hold the lock, unless another process does for the same reason. Tried for 70 ms: is_held has it for a moment."""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(0.01)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if is_held(path):
                return
        else:
            return


def await_ending(path: str, emit: Emit) -> None:
    """Wait until nobody is still ending the session of that name, which is hurried up; for ENDING_SECONDS at most."""
    if not is_live(path, ENDING):
        return
    session = os.path.basename(path)
    text = f"waiting for the previous session {session} to end"
    emit(Event("info", "session.ending", text, {"session": session}))
    end = time.monotonic() + ENDING_SECONDS
    with flagged(path, WANTED):
        while is_live(path, ENDING) and time.monotonic() < end:
            time.sleep(0.02)


def is_passing(path: str) -> bool:
    """Whoever had the session's lock a moment ago only ends that session, or has let go of it since."""
    return is_live(path, ENDING) or not is_live(path)


def await_release(path: str, seconds: float) -> bool:
    """Wait until no podbot holds the session; false when one still does."""
    end = time.monotonic() + seconds
    while is_live(path):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True

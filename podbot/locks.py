"""Locks on files, which the kernel releases when their holder ends for any reason."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable

from podbot.errors import PathError
from podbot.places import private_dir

ATTEMPTS = 8  # to take a lock, 10 ms apart: :func:`is_held` holds it briefly
_WAIT = 10.0  # seconds for a lock that is held for milliseconds


def locked_in(
    directory: str,
    name: str,
    kind: int,
    *,
    sleep: Callable[[float], object] = time.sleep,
    make: Callable[[str], object] = private_dir,
) -> int | None:
    """Lock a file in a directory of podbot's own, and make what is missing of both. Returns its descriptor.

    ``kind``: LOCK_SH or LOCK_EX. None while another process holds a lock that excludes this one. Retried for 70 ms,
    because the directory may be removed meanwhile. Raises PathError and UnsafeDirectory.
    """
    path = os.path.join(directory, name)
    for attempt in range(ATTEMPTS):
        if attempt:
            sleep(0.01)
        try:
            make(directory)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            continue
        except PathError as exc:
            if not isinstance(exc.__cause__, FileNotFoundError):  # removed after we made it
                raise
            continue
        except OSError as exc:
            raise PathError(path=path, operation="open", reason=exc.strerror or str(exc)) from exc
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        if same_file(lock, path):
            return lock
        os.close(lock)
    return None


def wait_for_lock(descriptor: int, path: str) -> None:
    """Wait for the lock, but not for a process that was stopped while it had it. ``path`` is for PathError."""
    end = time.monotonic() + _WAIT
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                reason = "another process has held it for too long"
                raise PathError(path=path, operation="lock", reason=reason) from None
            time.sleep(0.005)
        else:
            return


def is_held(path: str) -> bool:
    """Whether a process holds the lock at ``path``. Checking creates no file, and two checks do not conflict."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def same_file(descriptor: int, path: str) -> bool:
    """Whether ``path`` still leads to the file that ``descriptor`` was opened for."""
    try:
        there = os.lstat(path)
    except OSError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)

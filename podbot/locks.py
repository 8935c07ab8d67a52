"""Checks of locks that another process may hold; the kernel releases a lock when its holder ends for any reason."""

from __future__ import annotations

import fcntl
import os


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

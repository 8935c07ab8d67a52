"""Looking at a lock that another process may hold; the kernel frees it when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os


def is_held(path: str) -> bool:
    """Some process holds the lock at ``path``. Looking makes no file, and two who look do not see each other."""
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
    """``path`` still leads to the file that ``descriptor`` was opened for."""
    try:
        there = os.lstat(path)
    except OSError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)

"""Reads files in directories that an agent can write to, and locks what podbot's processes share beside them."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator

from podbot.credentials.own_login import LARGEST

FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Mark = tuple[int, int, int]  # identity, time of the last change, and size of a file


def read_login(directory: str, name: str) -> bytes | None:
    """The file ``name`` in a directory that an agent could write; None if there is none that can be read."""
    try:
        with opened(directory) as handle:
            found = read_file(handle, name)
    except OSError:
        return None
    return found[0] if found is not None else None


def read_file(directory: int, name: str) -> tuple[bytes, int] | None:
    """The content of a regular file, cut off above the limit, and the time of its last change; None if there is none.

    An agent controls the directory: no link is followed, and no pipe or lease of another process is waited for.
    """
    try:
        handle = os.open(name, FLAGS, dir_fd=directory)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return None
        return _content(handle), found.st_ctime_ns
    except OSError:
        return None
    finally:
        os.close(handle)


def is_foreign(directory: int, name: str) -> bool:
    """Whether the entry is another user's, as what root in a sandbox of a rootful engine writes is."""
    try:
        return os.lstat(name, dir_fd=directory).st_uid != os.geteuid()
    except OSError:
        return False


def _content(handle: int) -> bytes:
    parts = []
    left = LARGEST + 1
    while left > 0 and (part := os.read(handle, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def is_directory_held(directory: str) -> bool:
    """Whether a process holds the lock of a directory. Raises OSError."""
    with opened(directory) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def digest(data: bytes) -> str:
    """A text that differs for other bytes."""
    return hashlib.sha256(data).hexdigest()


def mark(path: str) -> Mark | None:
    """What changes with a file's content; None if there is no file."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns, found.st_size


@contextlib.contextmanager
def opened(directory: str) -> Iterator[int]:
    """A descriptor of a directory that is no link, open while the block runs. Raises OSError."""
    handle = os.open(directory, DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)

"""Replaces a small file atomically: a reader sees either the old bytes or the new ones.

A killed writer leaves a temporary file ``.NAME.<16 hex digits>.tmp`` beside the target, which a later writer removes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from podbot.errors import DiskFull, PathError

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_RANDOM = 8  # bytes of a temporary file's name


def replace_file(path: str, data: bytes, *, operation: str, mode: int = 0o600) -> None:
    """Make ``path`` a file of ``data`` with exactly ``mode``, regardless of the umask and of an existing file.

    On return the bytes are on the disk. After an error the old file is unchanged. A link at ``path`` is replaced, never
    followed. ``operation`` is for the message. Raises DiskFull, PathError.
    """
    directory, name = os.path.split(path)
    with file_errors(path, operation):
        descriptor = os.open(directory or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            replace_at(descriptor, name, data, mode=mode)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def file_errors(path: str, operation: str) -> Iterator[None]:
    """Convert an OSError in the block to DiskFull or PathError."""
    try:
        yield
    except OSError as exc:
        if exc.errno in NO_SPACE:
            raise DiskFull(path=path, operation=operation) from exc
        raise PathError(path=path, operation=operation, reason=exc.strerror or str(exc)) from exc


def replace_at(directory: int, name: str, data: bytes, *, mode: int) -> None:
    """Like :func:`replace_file`, in a directory that the caller has opened and checked. Raises OSError."""
    temporary = f".{name}.{os.urandom(_RANDOM).hex()}.tmp"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=directory)
    try:
        try:
            _fill(descriptor, data, mode)
        finally:
            os.close(descriptor)
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    os.fsync(directory)


def sweep_at(directory: int, name: str) -> None:
    """Remove temporary files of killed writers. Only for the single writer: a live one would lose its file."""
    for found in os.listdir(directory):
        if _is_temporary(found, name):
            with contextlib.suppress(OSError):
                os.unlink(found, dir_fd=directory)


def _fill(descriptor: int, data: bytes, mode: int) -> None:
    """Write and read back, so that a file system that loses bytes or modes is noticed before the rename."""
    os.fchmod(descriptor, mode)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]  # may be short: a signal, or the last block of the disk
    os.fsync(descriptor)
    found = os.fstat(descriptor)
    if stat.S_IMODE(found.st_mode) != mode or found.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "the file system does not keep modes and owners")
    if os.pread(descriptor, len(data) + 1, 0) != data:
        raise OSError(errno.EIO, "what was written reads back differently")


def _is_temporary(found: str, name: str) -> bool:
    middle = found.removeprefix(f".{name}.").removesuffix(".tmp")
    return found == f".{name}.{middle}.tmp" and len(middle) == 2 * _RANDOM and set(middle) <= set("0123456789abcdef")


def opened_to_append(path: str, operation: str) -> int:
    """Open a file of this user's for appending, with mode 0600; it is created if missing, and a link is not followed.

    Raises PathError, with ``operation`` in its message.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        fd = os.open(path, flags, 0o600)
    except (OSError, ValueError) as exc:
        reason = exc.strerror or str(exc) if isinstance(exc, OSError) else str(exc)
        raise PathError(path=path, operation=operation, reason=reason) from exc
    found = os.fstat(fd)
    reason = ""
    if not stat.S_ISREG(found.st_mode):
        reason = "it is not a regular file"
    elif found.st_uid != os.geteuid() or found.st_nlink != 1:
        reason = "it is owned by another user, or hard-linked"
    if reason:
        os.close(fd)
        raise PathError(path=path, operation=operation, reason=reason)
    os.fchmod(fd, 0o600)
    return fd

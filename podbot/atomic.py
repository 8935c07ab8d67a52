"""Replacing a small file whole: a reader sees the old bytes or the new ones, never a part of either.

A writer that is killed leaves a temporary file beside the target, called ``.NAME.<16 hex digits>.tmp``;
whoever may write the target sweeps those.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from podbot.errors import DiskFull, PathError

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_RANDOM = 8  # bytes of a temporary file's name


def replace_file(path: str, data: bytes, *, operation: str, mode: int = 0o600) -> None:
    """Make ``path`` a file of ``data`` with exactly ``mode``, whatever the umask and whatever was there.

    On return the bytes are on the disk. On an error the old file is as it was. A link at ``path`` is
    replaced, never followed. ``operation`` is for the message. Raises DiskFull, PathError.
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
    """An OSError within becomes DiskFull or PathError."""
    try:
        yield
    except OSError as exc:
        if exc.errno in _NO_SPACE:
            raise DiskFull(path=path, operation=operation) from exc
        raise PathError(path=path, operation=operation, reason=exc.strerror or str(exc)) from exc


def replace_at(directory: int, name: str, data: bytes, *, mode: int) -> None:
    """:func:`replace_file` in a directory that the caller has opened, and judged. Raises OSError."""
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
    """Remove what killed writers of ``name`` left. Only for who is its one writer: a live one loses its file, too."""
    for found in os.listdir(directory):
        if _is_temporary(found, name):
            with contextlib.suppress(OSError):
                os.unlink(found, dir_fd=directory)


def _fill(descriptor: int, data: bytes, mode: int) -> None:
    """Write, and read back: a file system that drops bytes or modes must not get as far as the rename."""
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

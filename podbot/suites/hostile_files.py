"""Opens and reads the files of a workspace to which hostile processes may be writing.

Each path is opened segment by segment, relative to the directory above it and through no link. Only regular files are
opened, by descriptors that do not wait, read up to a limit, and used only if they are the same after it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from typing import Self

LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PIECE = 1 << 20


class Skip(Exception):
    """Something is left out, for the reason that is given."""


class Opened:
    """A file, which is closed at the end of the block. ``fd``: -1 if there is none; ``size``: -1 then."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._found = os.fstat(fd) if fd >= 0 else None
        self.size = self._found.st_size if self._found else -1
        self.mtime_ns = self._found.st_mtime_ns if self._found else 0
        self.ctime_ns = self._found.st_ctime_ns if self._found else 0
        self.executable = bool(self._found and self._found.st_mode & stat.S_IXUSR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def has_content_of(self, other: Opened, check: Callable[[], None]) -> bool:
        """Whether both have the same content, whatever its size. ``check``: called often. Raises Skip."""
        if self.size != other.size:
            return False
        at = 0
        while at < self.size:
            check()
            data = self._read(at, self.size - at)
            if not data or data != other._read(at, len(data)):
                return False
            at += len(data)
        return True

    def content(self, most: int, check: Callable[[], None]) -> bytes:
        """All of it. Raises Skip if that is more than ``most`` bytes, or changes while it is read."""
        if self.size > most:
            raise Skip(f"it has more than {most:,} bytes")
        data = bytearray()
        while len(data) <= self.size and (more := self._read(len(data), self.size + 1 - len(data))):
            check()
            data += more
        if len(data) != self.size or not self._is_as_it_was():
            raise Skip("it was changed while it was read")
        return bytes(data)

    def _read(self, at: int, most: int) -> bytes:
        try:
            return os.pread(self.fd, min(most, _PIECE), at)
        except OSError as error:
            raise Skip(f"it cannot be read: {error.strerror}") from error

    def _is_as_it_was(self) -> bool:
        now, before = os.fstat(self.fd), self._found
        return before is not None and all(
            getattr(now, name) == getattr(before, name) for name in ("st_size", "st_mtime_ns", "st_ctime_ns", "st_mode")
        )


def opened_file(top: int, path: bytes, *, one_device: bool) -> Opened:
    """The regular file at ``path`` below the open directory; one with ``fd`` -1 where there is none.

    ``one_device``: take nothing from another file system than ``top``'s. Raises Skip if something else is in its place,
    or in that of a directory that it is in, and if it cannot be opened.
    """
    words = path.split(b"/")
    try:
        above = directory(top, words[:-1])
    except FileNotFoundError:
        return Opened(-1)
    try:
        fd = _leaf(above, words[-1])
    finally:
        os.close(above)
    if fd >= 0 and one_device and os.fstat(fd).st_dev != os.fstat(top).st_dev:
        os.close(fd)
        raise Skip("it is on another file system")
    return Opened(fd)


def directory(top: int, words: Sequence[bytes]) -> int:
    """A descriptor of the directory. Raises FileNotFoundError where there is none, also where a file is in the place of
    one, and Skip if anything else is, or if it cannot be opened.
    """
    fd = os.dup(top)
    try:
        for name in words:
            try:
                below = os.open(name, LIST, dir_fd=fd)
            except FileNotFoundError:
                raise
            except OSError as error:
                if stat.S_ISREG(_looked(fd, name)):
                    raise FileNotFoundError from error
                raise Skip(f"a directory that it is in cannot be opened: {_why(fd, name, error)}") from error
            os.close(fd)
            fd = below
    except BaseException:
        os.close(fd)
        raise
    return fd


def is_at(path: bytes, fd: int) -> bool:
    """Whether the open directory still has this path, which leads through no link at its end."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(found, os.fstat(fd))


def _leaf(above: int, name: bytes) -> int:
    kind = _looked(above, name)
    if not kind or stat.S_ISDIR(kind):
        return -1
    if not stat.S_ISREG(kind):
        raise Skip(f"it is {_named(kind)}")
    try:
        fd = os.open(name, _FILE, dir_fd=above)
    except FileNotFoundError:
        return -1
    except OSError as error:
        raise Skip(f"it cannot be opened: {_why(above, name, error)}") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Skip("it was exchanged while it was opened")
    return fd


def _looked(fd: int, name: bytes) -> int:
    """The mode of what is there, 0 for nothing. Raises Skip."""
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise Skip(f"it cannot be looked at: {error.strerror}") from error


def _why(fd: int, name: bytes, error: OSError) -> str:
    """A link, for which the kernel says "Not a directory" or "Too many levels", by its name."""
    kind = _looked(fd, name)
    plain = not kind or stat.S_ISREG(kind) or stat.S_ISDIR(kind)
    return f"{error.strerror}" if plain else f"it is {_named(kind)}"


def _named(kind: int) -> str:
    return "a symbolic link" if stat.S_ISLNK(kind) else "a FIFO, a socket or a device"

"""Reading an agent's files through descriptors: without following links, without blocking, with a size limit."""

from __future__ import annotations

import os
import stat

from podbot.guard.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from podbot.guard.marks import Stamp

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
LONGEST_LINK = 4096


class Read(NamedTuple):
    """``data``: the beginning of a regular file, up to the requested size; ``whole``: whether that is all of it."""

    data: bytes
    found: os.stat_result

    @property
    def whole(self) -> bool:
        return self.found.st_size <= len(self.data)


def stamp_of(found: os.stat_result) -> Stamp:
    """A value that changes whenever the content does."""
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def changed(found: os.stat_result) -> int:
    """When the file was last changed, in nanoseconds."""
    return max(found.st_ctime_ns, found.st_mtime_ns)


def look(directory: int, name: str) -> os.stat_result | None:
    """``lstat``; None when it fails."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except (OSError, ValueError):
        return None


def read(directory: int, name: str, most: int) -> Read | None:
    """At most ``most`` bytes of a regular file; None for anything else, or if it cannot be read."""
    found = look(directory, name)
    if found is None or not stat.S_ISREG(found.st_mode):
        return None  # opening a device can have effects
    try:
        handle = os.open(name, _FILE, dir_fd=directory)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return None
        data = b""
        while len(data) < most and (more := os.read(handle, most - len(data))):
            data += more
        return Read(data, found)
    except OSError:
        return None
    finally:
        os.close(handle)


def link(directory: int, name: str) -> str | None:
    """The text of a link; None for anything else."""
    try:
        return os.readlink(name, dir_fd=directory)[:LONGEST_LINK]
    except (OSError, ValueError):
        return None


def open_directory(path: str, directory: int | None = None) -> int:
    """Open a directory, but not through a link. Raises OSError."""
    return os.open(path, DIRECTORY, dir_fd=directory)


def open_beneath(directory: int, path: str) -> int:
    """Open the directory at a relative ``path``, of which no part may be a link or ``..``. Raises OSError."""
    if ".." in path.split("/"):
        raise OSError(f"{path!r} contains ..")
    handle = os.dup(directory)
    try:
        for part in path.split("/"):
            if part in ("", "."):
                continue
            below = open_directory(part, handle)
            os.close(handle)
            handle = below
    except BaseException:
        os.close(handle)
        raise
    return handle


def read_beneath(directory: int, path: str, most: int) -> Read | None:
    """Like :func:`read`, for a relative ``path`` of several parts."""
    place, _, name = path.rpartition("/")
    try:
        handle = open_beneath(directory, place)
    except (OSError, ValueError):
        return None
    try:
        return read(handle, name, most)
    finally:
        os.close(handle)

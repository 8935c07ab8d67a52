"""``write`` and ``edit``. A new content is written to a temporary file beside its place, and then takes that place."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time

from podbot.tools import worker_frames as limits
from podbot.tools.inside import beneath
from podbot.tools.inside.edits import replaced
from podbot.tools.inside.refusals import Clock, Refused, close_quietly, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
TEMPORARY = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def umask() -> int:
    """This process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Create a file; an existing one is refused. No reader sees a part of it."""
    del clock
    path = beneath.segments(args["path"])
    data = _encoded(args["content"])
    with beneath.parent(root, path, make=True) as (fd, name):
        if beneath.kind_of(fd, name) != "missing":
            raise Refused("exists", at=len(path))
        try:
            with temporary_file(fd) as (temporary, file):
                write_all(file, data)
                os.fchmod(file, 0o644 & ~umask())
                take_free_place(fd, temporary, name)
                return {"facts": beneath.facts(os.fstat(file))}
        except OSError as error:
            raise refused(error, at=len(path)) from None


def _encoded(content: Any) -> bytes:
    try:
        return str(content).encode("utf-8")
    except UnicodeEncodeError:
        raise Refused("not_text") from None


def write_all(file: int, data: bytes | memoryview) -> None:
    """Write all of ``data``. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


@contextlib.contextmanager
def temporary_file(fd: int) -> Iterator[tuple[bytes, int]]:
    """A new file in the directory ``fd``: its name and a descriptor. Afterwards the name is gone."""
    name = b".podbot-" + os.urandom(8).hex().encode("ascii")
    file = os.open(name, TEMPORARY, 0o600, dir_fd=fd)
    try:
        yield name, file
    finally:
        close_quietly(file)
        with contextlib.suppress(OSError):  # it has its final name
            os.unlink(name, dir_fd=fd)


def take_free_place(fd: int, temporary: bytes, name: bytes) -> None:
    """Give the file its name, which must be free. Raises OSError.

    A file system without hard links has no call for that here: there an empty file takes the place first.
    """
    try:
        os.link(temporary, name, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(name, TEMPORARY, 0o600, dir_fd=fd))
        os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)


def edit(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Replace text in a file. Its mode, owner and extended attributes stay; other hard links keep the old content."""
    path = beneath.segments(args["path"])
    with beneath.parent(root, path) as (fd, name), locked(fd, clock, len(path) - 1):
        try:
            old = beneath.opened(fd, name, os.O_RDWR)  # for the kernel to check that it may be written
        except OSError as error:
            raise refused(error, at=len(path)) from None
        try:
            before = os.fstat(old)
            data = _whole(old, before.st_size, clock)
            text, count = replaced(data, args["old"], args["new"], limits.EDIT_BYTES, every=args["every"])
            with temporary_file(fd) as (temporary, file):
                write_all(file, text)
                keep_attributes(old, before, file)
                _take_place(fd, temporary, name, before)
                return {"facts": beneath.facts(os.fstat(file)), "count": count}
        except OSError as error:
            raise refused(error, at=len(path)) from None
        finally:
            os.close(old)


@contextlib.contextmanager
def locked(fd: int, clock: Clock, at: int) -> Iterator[None]:
    """The lock of a directory, which every worker's edits in it take. Any other process can hold it, but not for ever.

    The lock is the directory's and not the file's, because an edit puts another file in its place.
    """
    try:
        lock = beneath.listable(fd)
    except OSError as error:
        raise refused(error, at=at) from None
    try:
        pause = 0.0005
        while not _lock(lock):
            if clock.left() <= pause:
                raise Refused("busy", at=at)
            time.sleep(pause)
            pause = min(0.01, pause * 2)
        yield
    finally:
        os.close(lock)


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _whole(file: int, size: int, clock: Clock) -> bytes:
    data = bytearray()
    while True:
        clock.check()
        if max(size, len(data)) > limits.EDIT_BYTES:
            raise Refused("too_large", what="file", limit=limits.EDIT_BYTES)
        part = os.read(file, 1 << 20)
        if not part:
            return bytes(data)
        data += part


def keep_attributes(old: int, before: os.stat_result, file: int) -> None:
    """Give ``file`` the owner, the extended attributes, the mode and a later time. Raises OSError if it must not."""
    made = os.fstat(file)
    if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
        os.fchown(file, before.st_uid, before.st_gid)
    with contextlib.suppress(OSError):  # a file system without them
        for attribute in os.listxattr(old):
            with contextlib.suppress(OSError):  # one that only the kernel sets
                os.setxattr(file, attribute, os.getxattr(old, attribute))
    os.fchmod(file, before.st_mode & 0o7777)  # after the owner, whose change removes bits of it
    later = before.st_mtime_ns + 1000
    if os.fstat(file).st_mtime_ns < later:  # the kernel's clock has not moved on
        os.utime(file, ns=(later, later))


def _take_place(fd: int, temporary: bytes, name: bytes, before: os.stat_result) -> None:
    """Replace ``name``, if it is still the file that was read. Raises Refused and OSError."""
    now = beneath.look(fd, name)
    if _identity(now) != _identity(before):
        raise Refused("changed")
    os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

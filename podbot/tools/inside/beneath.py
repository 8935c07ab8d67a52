"""Opens what lies beneath the root, one segment after another, and follows no link.

Each segment is opened relative to the descriptor of the directory before it, with O_NOFOLLOW. No joined path is ever
given to the kernel, so a directory that is replaced by a link in between cannot lead out of the root: either the old
directory is used, which was in the root, or the operation is refused. ``..`` is refused, so it cannot lead out either.

A directory that another process moves out of the root while it is open is still used. That process could write to both
places before.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from podbot.tools import worker_frames as limits
from podbot.tools.inside.refusals import Refused, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# A directory that may be entered but not listed (0711) is enough for a path that leads through it.
THROUGH = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A terminal does not become the worker's own, and a FIFO or device that takes a file's place is not waited for.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NUMBER = (1 << 53) - 1  # the largest that JSON carries exactly


def segments(path: Any) -> list[bytes]:
    """The segments of a path in a request; none for the root. Raises Refused."""
    if not isinstance(path, list) or len(path) > limits.SEGMENTS:
        raise Refused("bad_path")
    return [_segment(name) for name in path]


def _segment(name: Any) -> bytes:
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\0" in name:
        raise Refused("bad_path")
    try:
        raw = name.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused("bad_path") from None
    if len(raw) > limits.NAME_BYTES:
        raise Refused("bad_path")
    return raw


@contextlib.contextmanager
def directory(root: int, path: list[bytes], *, make: bool = False) -> Iterator[int]:
    """A descriptor of a directory, to open, rename and remove relative to it. ``make``: create what is missing.

    Raises Refused.
    """
    fd = os.dup(root)
    try:
        for at, name in enumerate(path):
            below = enter(fd, name, at + 1, make=make)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def enter(fd: int, name: bytes, at: int, *, make: bool = False) -> int:
    """A descriptor of the directory ``name`` in ``fd``. ``at``: its place in the path, for the refusal."""
    for _ in range(100):  # another process may remove what was just made
        try:
            return os.open(name, THROUGH, dir_fd=fd)
        except FileNotFoundError as error:
            if not make:
                raise refused(error, at=at) from None
            make_directory(fd, name, at)
        except OSError as error:
            raise _not_a_directory(fd, name, error, at) from None
    raise Refused("busy", at=at)


def make_directory(fd: int, name: bytes, at: int) -> None:
    """Create a directory; it may exist. Raises Refused."""
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o777, dir_fd=fd)
    except OSError as error:
        raise refused(error, at=at) from None


def _not_a_directory(fd: int, name: bytes, error: OSError, at: int) -> Refused:
    """A link answers ENOTDIR here, because O_DIRECTORY is asked of the link itself."""
    if error.errno in (errno.ENOTDIR, errno.ELOOP) and kind_of(fd, name) == "link":
        return Refused("link", at=at)
    return refused(error, at=at)


def listable(fd: int) -> int:
    """A second descriptor of the directory ``fd``, by which it can be listed or locked. Raises OSError."""
    return os.open(".", _LIST, dir_fd=fd)


def listable_child(fd: int, name: bytes | str) -> int:
    """A descriptor of the directory ``name`` in ``fd``, by which it can be listed. Raises OSError."""
    return os.open(name, _LIST, dir_fd=fd)


@contextlib.contextmanager
def parent(root: int, path: list[bytes], *, make: bool = False) -> Iterator[tuple[int, bytes]]:
    """A descriptor of the directory that holds the last segment of ``path``, and that segment. Raises Refused."""
    if not path:
        raise Refused("is_root")
    with directory(root, path[:-1], make=make) as fd:
        yield fd, path[-1]


def look(fd: int, name: bytes | str) -> os.stat_result:
    """The facts of an entry of the directory ``fd``; of a link, not of its target. Raises OSError."""
    return os.stat(name, dir_fd=fd, follow_symlinks=False)


def looked(fd: int, name: bytes, at: int) -> os.stat_result:
    """As :func:`look`. Raises Refused."""
    try:
        return look(fd, name)
    except OSError as error:
        raise refused(error, at=at) from None


def kind_of(fd: int, name: bytes) -> str:
    """The kind of an entry, or "missing"."""
    try:
        return kind(look(fd, name))
    except OSError:
        return "missing"


def kind(found: os.stat_result) -> str:
    """See FileInfo."""
    if stat.S_ISREG(found.st_mode):
        return "file"
    if stat.S_ISDIR(found.st_mode):
        return "directory"
    return "link" if stat.S_ISLNK(found.st_mode) else "other"


def facts(found: os.stat_result) -> list[Any]:
    """What an answer says of an entry: kind, size, version. A time outside of what JSON can carry is moved to it."""
    of_kind = kind(found)
    size = min(found.st_size, _NUMBER) if of_kind == "file" else 0
    return [of_kind, size, max(0, min(found.st_mtime_ns // 1000, _NUMBER))]


def opened(fd: int, name: bytes | str, flags: int = os.O_RDONLY) -> int:
    """A descriptor of the regular file ``name`` in ``fd``. Raises Refused and OSError.

    It is looked at before it is opened, because opening alone does something to a FIFO and to some devices. One that
    takes its place in between is opened without waiting, and closed again.
    """
    _only_regular(look(fd, name))
    return opened_unseen(fd, name, flags)[0]


@contextlib.contextmanager
def regular_file(root: int, path: list[bytes]) -> Iterator[int]:
    """A descriptor of the regular file at ``path``, to read it. Raises Refused, also for an OSError of the block."""
    with parent(root, path) as (fd, name):
        try:
            file = opened(fd, name)
        except OSError as error:
            raise refused(error, at=len(path)) from None
    try:
        yield file
    except OSError as error:
        raise refused(error, at=len(path)) from None
    finally:
        os.close(file)


def opened_unseen(fd: int, name: bytes | str, flags: int = os.O_RDONLY) -> tuple[int, os.stat_result]:
    """As :func:`opened`, for an entry that a listing has just called a regular file; and its facts."""
    file = os.open(name, flags | _FILE, dir_fd=fd)
    try:
        found = os.fstat(file)
        _only_regular(found)
    except BaseException:
        os.close(file)
        raise
    return file, found


def _only_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Refused("link" if stat.S_ISLNK(found.st_mode) else "not_a_file")


def shown(name: str) -> str:
    """A name as an answer shows it: bytes that are not UTF-8 as ``\\xNN``."""
    if name.isascii():
        return name
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

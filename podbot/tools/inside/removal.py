"""``rm``: recursively, and never through a link."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from podbot.tools.inside import beneath
from podbot.tools.inside.refusals import Clock, Refused, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BATCH = 1000  # names that are held of one directory
_DEPTH = 64  # directories that are open at once; deeper ones are moved up first


def rm(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Remove an entry. When that fails in the middle, a part of a directory is already gone.

    ``unlock``: also from directories that deny this to their owner, who can change that. ``recursive``: false for a
    directory that must be empty.
    """
    path = beneath.segments(args["path"])
    with beneath.parent(root, path) as (fd, name):
        kind = beneath.kind(beneath.looked(fd, name, len(path)))
        removal = _Removal(clock, unlock=bool(args.get("unlock")))
        try:
            if kind == "directory" and not args.get("recursive", True):
                removal.empty_directory(fd, os.fsdecode(name))
            else:
                removal.entry(fd, os.fsdecode(name))
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise Refused("not_empty", at=len(path)) from None
            raise refused(error, at=len(path)) from None
    return {"kind": kind, "count": removal.count}


def remove_entry(fd: int, name: str, clock: Clock) -> None:
    """Remove the entry ``name`` of the directory ``fd``, whatever it is. Raises OSError and Refused."""
    _Removal(clock, unlock=True).entry(fd, name)


class _Removal:
    """``count``: the entries that were removed."""

    def __init__(self, clock: Clock, *, unlock: bool) -> None:
        self.count = 0
        self._clock, self._unlock = clock, unlock
        self._open: list[int] = []  # the directories on the way from the top one

    def entry(self, fd: int, name: str) -> None:
        """Remove the entry ``name`` of ``fd``. Raises OSError and Refused."""
        try:
            os.unlink(name, dir_fd=fd)
            self.count += 1
        except FileNotFoundError:
            pass
        except OSError as error:
            # POSIX has EPERM for a directory, Linux EISDIR.
            if error.errno not in (errno.EISDIR, errno.EPERM):
                raise
            while not self._is_gone(fd, name, error):
                self._clock.check()  # another process may fill it as fast as it is emptied
                self._empty(fd, name)

    def empty_directory(self, fd: int, name: str) -> None:
        """Remove the directory ``name`` of ``fd``, which must be empty. Raises OSError."""
        os.rmdir(name, dir_fd=fd)
        self.count += 1

    def _is_gone(self, fd: int, name: str, error: OSError) -> bool:
        """Remove a directory if it is empty. ``error``: what a call said that removes anything else."""
        try:
            os.rmdir(name, dir_fd=fd)
        except FileNotFoundError:
            return True
        except NotADirectoryError:  # it may not be removed, or was replaced since
            raise error from None
        except OSError as why:
            if why.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
        self.count += 1
        return True

    def _empty(self, fd: int, name: str) -> None:
        """Remove what is in a directory, at most a batch: it is read again before the next one."""
        if self._unlock:
            allow(fd, name)
        if len(self._open) >= _DEPTH:
            # A tree of any depth needs few descriptors: its lower part becomes an entry of the top directory, where
            # another round finds it.
            os.rename(name, ".podbot-" + os.urandom(8).hex(), src_dir_fd=fd, dst_dir_fd=self._open[0])
            return
        below = beneath.listable_child(fd, name)
        self._open.append(below)
        try:
            while True:
                self._clock.check()
                names = _some(below)
                for one in names:
                    self.entry(below, one)
                if len(names) < _BATCH:
                    return
        finally:
            self._open.pop()
            os.close(below)


def allow(fd: int, name: str) -> None:
    """Allow this user all that its owner may do in a directory; nothing if that is refused. Never through a link."""
    with contextlib.suppress(OSError):
        if stat.S_IMODE(beneath.look(fd, name).st_mode) & 0o700 == 0o700:
            return
        directory = os.open(name, beneath.THROUGH, dir_fd=fd)
        try:
            os.chmod(f"/proc/self/fd/{directory}", 0o700)  # such a descriptor has no fchmod
        finally:
            os.close(directory)


def allow_root(root: int) -> None:
    """Allow this user all that its owner may do in the root, of which an entry's permissions say nothing."""
    bits = stat.S_IMODE(os.fstat(root).st_mode)
    if bits & 0o700 != 0o700:
        with contextlib.suppress(OSError):
            os.chmod(f"/proc/self/fd/{root}", bits | 0o700)


def _some(fd: int) -> list[str]:
    names: list[str] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            names.append(entry.name)
            if len(names) == _BATCH:
                break
    return names

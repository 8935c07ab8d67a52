"""Finds the files of a workspace that were not copied into it, within limits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from podbot.suites.git_patch import is_refused
from podbot.suites.hostile_files import Skip, directory
from podbot.suites.patch_job import PatchLimits

_PATH_BYTES = 4095  # git opens files by their path, and the kernel takes no longer one
_LINK = "it is a symbolic link"
_SPECIAL = "it is a FIFO, a socket or a device"


class NewFiles:
    """``known``: the paths of files that were copied. ``leave_out``: takes a path in the workspace and a reason.

    ``is_late``: whether the time for the search is up.
    """

    def __init__(
        self,
        known: set[bytes],
        limits: PatchLimits,
        leave_out: Callable[[bytes, str], None],
        is_late: Callable[[], bool],
    ) -> None:
        self._known, self._limits, self._leave_out, self._is_late = known, limits, leave_out, is_late
        self._left = limits.entries
        self._stopped = ""  # why nothing else is listed

    def below(self, top: int, start: bytes) -> list[bytes]:
        """Regular files below the directory ``start``: those in directories that were copied first, then the less deep.

        So an agent's own files come before those that a package manager puts into new directories. Raises Skip and
        FileNotFoundError where ``start`` is no directory.
        """
        fd = directory(top, start.split(b"/") if start else [])
        found = list(self._walk(fd, start, os.fstat(top).st_dev))
        copied = {path.rpartition(b"/")[0] for path in self._known}

        def order(path: bytes) -> tuple[bool, int, bytes]:
            return path.rpartition(b"/")[0] not in copied, path.count(b"/"), path

        return sorted(found, key=order)

    def _walk(self, fd: int, path: bytes, device: int) -> Iterator[bytes]:
        """The files below an open directory, which is closed after it."""
        prefix = path + b"/" if path else b""
        below = []
        try:
            if os.fstat(fd).st_dev != device:
                self._leave_out(path, "another file system is mounted there")
                return
            for name, kind in self._listed(fd, path):
                target = prefix + name
                if target in self._known and kind != "directory":
                    continue
                reason = self._reason_not_to(name, target, kind)
                if reason:
                    self._leave_out(target, reason)
                elif kind == "file":
                    yield target
                else:
                    below.append(name)
            for name in below:
                yield from self._enter(fd, name, prefix + name, device)
        finally:
            os.close(fd)

    def _enter(self, fd: int, name: bytes, target: bytes, device: int) -> Iterator[bytes]:
        if self._stopped:
            self._leave_out(target, f"it was not searched: {self._stopped}")
            return
        try:
            inner = directory(fd, [name])
        except FileNotFoundError:
            return  # removed meanwhile
        except Skip as skip:
            self._leave_out(target, str(skip))
            return
        yield from self._walk(inner, target, device)

    def _listed(self, fd: int, path: bytes) -> list[tuple[bytes, str]]:
        """The entries of a directory by name, as many as the limits permit."""
        found = []
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if self._is_over():
                        self._leave_out(path, f"it was not searched to its end: {self._stopped}")
                        break
                    found.append((os.fsencode(entry.name), _kind(entry)))
        except OSError as error:
            self._leave_out(path, f"it cannot be searched: {error.strerror}")
        return sorted(found)

    def _is_over(self) -> bool:
        """Count an entry; whether that is one too many."""
        if not self._stopped and self._left <= 0:
            self._stopped = f"there are more than {self._limits.entries:,} files and directories"
        elif not self._stopped and not self._left % 1000 and self._is_late():
            self._stopped = f"it takes longer than {self._limits.seconds:g} s"
        self._left -= 1
        return bool(self._stopped)

    def _reason_not_to(self, name: bytes, target: bytes, kind: str) -> str:
        if is_refused(name):
            return "git's own: git applies no patch to it"
        if kind in ("link", "other"):
            return _LINK if kind == "link" else _SPECIAL
        if len(target) > _PATH_BYTES:
            return f"its path has more than {_PATH_BYTES:,} bytes"
        if kind == "directory" and target.count(b"/") + 1 >= self._limits.depth:
            return f"what is in it lies more than {self._limits.depth} segments deep"
        return ""


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "directory"
        return "file" if entry.is_file(follow_symlinks=False) else "other"
    except OSError:
        return "other"

"""Packs a file or directory of this host as a tar stream for a sandbox.

An agent may have made the links in a workspace, so none is followed: a link is sent as a link. What is neither a file,
a directory nor a link is left out.
"""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Callable

from podbot.transfer.limits import COPY_LIMITS, CopyLimits, CopyReport, check

_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PIECE = 1 << 18
_DEEPEST = 256
_END = bytes(2 * tarfile.BLOCKSIZE)

Write = Callable[[bytes], object]


def send(
    above: int, source: str, name: str, write: Write, report: CopyReport, *, limits: CopyLimits = COPY_LIMITS
) -> None:
    """Pack the entry ``source`` of the open directory ``above``, called ``name`` in the archive (``.``: its content).

    Raises TooMuch, OSError if ``source`` itself cannot be looked at, and what ``write`` raises.
    """
    _Sender(write, report, limits).entry(above, source, name, os.lstat(source, dir_fd=above), 0)
    write(_END)


class _Sender:
    def __init__(self, write: Write, report: CopyReport, limits: CopyLimits) -> None:
        self._write, self._report, self._limits = write, report, limits

    def entry(self, above: int, name: str, path: str, found: os.stat_result, depth: int) -> None:
        self._report.entries += 1
        check(self._report, self._limits)
        try:
            if stat.S_ISDIR(found.st_mode):
                self._directory(above, name, path, found, depth)
            elif stat.S_ISREG(found.st_mode):
                self._file(above, name, path)
            elif stat.S_ISLNK(found.st_mode):
                self._header(path, found, tarfile.SYMTYPE, link=os.readlink(name, dir_fd=above))
            else:
                self._report.leave_out(path, "it is a device, a FIFO or a socket")
        except BrokenPipeError:
            raise
        except OSError as error:
            self._report.leave_out(path, f"it cannot be read: {error.strerror or error}")

    def _directory(self, above: int, name: str, path: str, found: os.stat_result, depth: int) -> None:
        if depth >= _DEEPEST:
            self._report.leave_out(path, f"it is in {_DEEPEST} directories")
            return
        fd = os.open(name, _LIST, dir_fd=above)
        try:
            if path != ".":  # the directory that the content comes into keeps its mode
                self._header(path + "/", found, tarfile.DIRTYPE)
            for inner in sorted(os.listdir(fd)):
                try:
                    there = os.lstat(inner, dir_fd=fd)
                except FileNotFoundError:
                    continue
                self.entry(fd, inner, f"{path}/{inner}", there, depth + 1)
        finally:
            os.close(fd)

    def _file(self, above: int, name: str, path: str) -> None:
        fd = os.open(name, _READ, dir_fd=above)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(0, "it was exchanged meanwhile")
            check(self._report, self._limits, coming=found.st_size)
            self._report.size += found.st_size
            self._header(path, found, tarfile.REGTYPE, size=found.st_size)
            if not self._content(fd, found.st_size):
                self._report.leave_out(path, "it was changed while it was read; the copy is not like it")
            self._report.files += 1
        finally:
            os.close(fd)

    def _content(self, fd: int, size: int) -> bool:
        """Write exactly ``size`` bytes, which the header has promised; returns whether they are the file's."""
        left, whole = size, True
        while left:
            piece = _read(fd, min(left, _PIECE)) if whole else b""
            if not piece:
                whole, piece = False, bytes(min(left, _PIECE))
            self._write(piece)
            left -= len(piece)
        if padding := -size % tarfile.BLOCKSIZE:
            self._write(bytes(padding))
        return whole

    def _header(self, path: str, found: os.stat_result, kind: bytes, *, size: int = 0, link: str = "") -> None:
        made = tarfile.TarInfo(path)
        made.type, made.size, made.linkname = kind, size, link
        made.mode, made.mtime = found.st_mode & 0o755 | 0o600, max(0, int(found.st_mtime))
        self._write(made.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"))


def _read(fd: int, most: int) -> bytes:
    try:
        return os.read(fd, most)
    except OSError:
        return b""

"""Writes the entries of a hostile archive below one open directory of this host, and nowhere else.

A process in the sandbox may be writing to the same directory, because the workspace is mounted there. So no path is
given to the kernel but single names, relative to descriptors that lead through no link. A file is written under a
temporary name and takes its place by a rename, which replaces a link instead of following it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Self

from podbot.atomic import NO_SPACE
from podbot.sections.host_tree import opened_below
from podbot.transfer.limits import COPY_LIMITS, CopyLimits, CopyReport, check
from podbot.transfer.tar_reader import BadArchive, Entry, Parts

_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LATEST = 1 << 33  # seconds since 1970; a later time is not set
_PIECE = 1 << 20

Identity = tuple[int, int]  # device and inode


class Receiver:
    """``top``: the directory. ``source``: the first part of every entry's path; empty if there is none.

    ``name``: what the copy is called in ``top``; empty if the source's content comes into ``top`` itself. ``umask``:
    no mode is wider than it allows; directories are the user's own until :meth:`finish`.

    Raises BadArchive, TooMuch, and OSError for a full disk; anything else that cannot be written is left out and
    reported.
    """

    def __init__(
        self, top: int, *, source: bytes, name: bytes, umask: int, report: CopyReport, limits: CopyLimits = COPY_LIMITS
    ) -> None:
        self._top, self._source, self._name, self._umask = top, source, name, umask
        self._report, self._limits = report, limits
        self._file: _File | None = None
        self._made: dict[Parts, Identity] = {}  # directories that were not here before
        self._modes: dict[Parts, int] = {}  # of those that have an entry
        self._brought: dict[Parts, Identity | None] = {}  # what came before, and which file was made of it

    def take(self, item: Entry | bytes) -> None:
        """The next of what a TarReader yields."""
        if isinstance(item, bytes):
            if self._file is not None:
                self._file.write(item)
            return
        self._complete()
        self._report.entries += 1
        check(self._report, self._limits, coming=item.size)
        self._report.size += item.size
        place = self._place(item.path)
        if item.kind not in {"directory", "hardlink"}:
            self._brought[place] = None
        try:
            self._write(item, place)
        except OSError as error:
            if error.errno in NO_SPACE:
                raise
            self._report.leave_out(b"/".join(item.path), _why(error))

    def finish(self) -> None:
        """Complete the last file, and give the directories of the copy their modes."""
        self._complete()
        for place, mode in self._modes.items():
            with contextlib.suppress(OSError), self._opened(place) as fd:  # else it stays the user's own
                if _identity(fd) == self._made[place]:
                    os.fchmod(fd, mode & 0o755 & ~self._umask | 0o700)

    def _complete(self) -> None:
        """Complete the last file."""
        file, self._file = self._file, None
        if file is not None:
            try:
                self._brought[file.place] = file.finish()
            except OSError as error:
                file.give_up()
                if error.errno in NO_SPACE:
                    raise
                self._report.leave_out(file.path, _why(error))
            else:
                self._report.files += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """A file that is not complete is removed."""
        if self._file is not None:
            self._file.give_up()
            self._file = None

    def _place(self, path: Parts) -> Parts:
        """Where an entry is written, below ``top``."""
        if self._source:
            if path[:1] != (self._source,):
                raise BadArchive("it has an entry that was not asked for")
            path = path[1:]
        return (self._name, *path) if self._name else path

    def _write(self, entry: Entry, place: Parts) -> None:
        if entry.kind == "other":
            self._report.leave_out(b"/".join(entry.path), "it is a device, a FIFO or a socket")
            return
        if entry.kind == "directory":
            with self._directory(place):
                if place in self._made:
                    self._modes[place] = entry.mode
                return
        if not place:
            raise BadArchive("its first entry is not the directory that was asked for")
        with self._directory(place[:-1]) as above:
            if entry.kind == "symlink":
                self._link(above, entry, place)
            elif entry.kind == "hardlink":
                self._copy(above, entry, place)
            else:
                self._file = _File(above, place, entry, self._umask)

    @contextlib.contextmanager
    def _directory(self, place: Parts) -> Iterator[int]:
        """A descriptor of a directory; it and those above it are created. Raises OSError if something else is there."""
        fd = os.dup(self._top)
        try:
            for depth, name in enumerate(place, 1):
                made = _make(name, fd)
                below = os.open(name, _LIST, dir_fd=fd)
                os.close(fd)
                fd = below
                if made:
                    self._made[place[:depth]] = _identity(fd)
                    check(self._report, self._limits, directories=len(self._made))
            yield fd
        finally:
            os.close(fd)

    def _opened(self, place: Parts) -> contextlib.AbstractContextManager[int]:
        """A descriptor of a directory that exists. Raises OSError."""
        return opened_below(self._top, [os.fsdecode(name) for name in place], _LIST)

    def _link(self, above: int, entry: Entry, place: Parts) -> None:
        """Create a symbolic link that cannot lead out of the copy."""
        inside = len(place) - (1 if self._name else 0) - 1  # directories of the copy that the link lies in
        if not stays_inside(entry.link, inside):
            self._report.leave_out(b"/".join(entry.path), "it is a link that may lead out of the copy")
            return
        temporary = _temporary()
        os.symlink(entry.link, temporary, dir_fd=above)
        _rename(above, temporary, place[-1])

    def _copy(self, above: int, entry: Entry, place: Parts) -> None:
        """A second name of a file that was copied before: a copy of it, never of a file that was here already."""
        first = self._place(entry.linked)
        if first not in self._brought:
            raise BadArchive("it has a second name of a file that it has not brought")
        expected = self._brought[first]
        self._brought[place] = None
        if expected is None:
            raise OSError(0, "what it is a second name of was not copied, or is no file")
        with self._opened(first[:-1]) as fd:
            source = os.open(first[-1], _READ, dir_fd=fd)
        try:
            found = os.fstat(source)
            if _identity(source) != expected:
                raise OSError(0, "what it is a second name of was exchanged meanwhile")
            check(self._report, self._limits, coming=found.st_size)
            self._report.size += found.st_size
            file = _File(above, place, entry._replace(mode=found.st_mode), self._umask)
            try:
                left = found.st_size
                while left and (piece := os.read(source, min(left, _PIECE))):
                    file.write(piece)
                    left -= len(piece)
                self._brought[place] = file.finish()
            except BaseException:
                file.give_up()
                raise
            self._report.files += 1
        finally:
            os.close(source)


class _File:
    """A file that is being written, under a temporary name."""

    def __init__(self, above: int, place: Parts, entry: Entry, umask: int) -> None:
        self._umask = umask
        self.place, self.path = place, b"/".join(entry.path)
        self._name, self._entry, self._temporary = place[-1], entry, _temporary()
        self._above = os.dup(above)
        try:
            self._fd = os.open(self._temporary, _CREATE, 0o600, dir_fd=self._above)
        except BaseException:
            os.close(self._above)
            raise

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def finish(self) -> Identity:
        """Give it its mode, time and name. Neither set-uid bits nor a right to write for others are kept."""
        if 0 < self._entry.mtime < _LATEST:
            os.utime(self._fd, (self._entry.mtime, self._entry.mtime))
        os.fchmod(self._fd, self._entry.mode & 0o755 & ~self._umask | 0o600)
        found = _identity(self._fd)
        _rename(self._above, self._temporary, self._name)
        self._close()
        return found

    def give_up(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._above)
            self._close()

    def _close(self) -> None:
        os.close(self._fd)
        os.close(self._above)
        self._fd = -1


def stays_inside(target: bytes, depth: int) -> bool:
    """Whether a link in ``depth`` directories of a tree leads into the tree, whatever the tree's other links are.

    So ``..`` may stand at the beginning only: behind a name, which may be a link, it leads from that link's target.
    """
    if not target or target.startswith(b"/"):
        return False
    names = [name for name in target.split(b"/") if name not in (b"", b".")]
    up = 0
    while up < len(names) and names[up] == b"..":
        up += 1
    return up <= depth and b".." not in names[up:]


def _make(name: bytes, above: int) -> bool:
    """Create a directory that is the user's own; returns whether there was nothing."""
    try:
        os.mkdir(name, 0o700, dir_fd=above)
    except FileExistsError:
        return False
    return True


def _identity(fd: int) -> Identity:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def _rename(directory: int, temporary: bytes, name: bytes) -> None:
    try:
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise


def _temporary() -> bytes:
    return f".podbot-cp-{os.urandom(8).hex()}".encode()


def _why(error: OSError) -> str:
    return f"it cannot be written here: {error.strerror or error}"

"""Reading one family's directory: by descriptors from its top down, so that no link is ever followed.

Each name is opened relative to the open directory that holds it, with O_NOFOLLOW, and looked at
again once it is open: a link that is swapped in meanwhile makes the open fail, and what was opened
is what is copied. Nothing but directories and regular files is opened; O_NONBLOCK is for a FIFO that
is swapped in at that moment.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Literal

from podbot.agents.definition import Family
from podbot.engine.port import ARCHIVE_BLOCK
from podbot.errors import CredentialsTooLarge, CredentialUnreadable
from podbot.frozen import Frozen

LIMIT = 64 << 20  # bytes of archive per family; a login with settings, agents, skills and a few plugins is 1-20 MiB
DEPTH = 64  # directories below each other; one open descriptor each
_ATTEMPTS = 3
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Entry(Frozen):
    """Something to copy. ``path``: relative to the family, empty for its top. ``link``: the text of a link."""

    path: str
    kind: Literal["directory", "file", "link"]
    mode: int  # permission bits
    data: bytes = b""
    link: str = ""

    def __repr__(self) -> str:
        return f"Entry({self.path!r}, {self.kind}, {self.mode:o})"  # never what is in it


class Skipped(Frozen):
    """A name that is not copied. ``notify``: the operator should see it, because they may miss it inside."""

    path: str
    reason: str
    notify: bool = False


class Tree(Frozen):
    """A family as it was found: ``entries`` with parents first, in the order of their names."""

    entries: tuple[Entry, ...]
    skipped: tuple[Skipped, ...]


def scan(family: Family, source: str, *, limit: int) -> Tree:
    """Read the directory ``source``, which is a resolved path, as ``family``.

    Raises CredentialUnreadable for what cannot be read, and CredentialsTooLarge above ``limit`` bytes.
    """
    reading = _Reading(family, source, limit)
    with reading.opened(source, None, source) as top:
        reading.directory(top, "", 0)
    reading.check_size()
    return Tree(tuple(reading.entries), tuple(reading.skipped))


class _Reading:
    def __init__(self, family: Family, source: str, limit: int) -> None:
        self.entries: list[Entry] = []
        self.skipped: list[Skipped] = []
        self._family, self._source, self._limit = family, source, limit
        self._sizes: dict[str, int] = {}  # name at the top -> bytes of archive
        self._size = 0

    @contextlib.contextmanager
    def opened(self, name: str, parent: int | None, path: str) -> Iterator[int]:
        """Descriptor of a directory. ``path`` is for the error's text."""
        try:
            handle = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=parent)
        except OSError as exc:
            raise self._unreadable(path, exc) from exc
        try:
            yield handle
        finally:
            os.close(handle)

    def directory(self, handle: int, path: str, depth: int) -> None:
        """Take the open directory and everything below it."""
        self._take(Entry(path, "directory", stat.S_IMODE(os.fstat(handle).st_mode) & 0o777), 0)
        try:
            names = sorted(os.listdir(handle))
        except OSError as exc:
            raise self._unreadable(path, exc) from exc
        for name in names:
            below = f"{path}/{name}" if path else name
            reason = None if path else self._family.reason_to_exclude(name)
            if reason is not None:
                self.skipped.append(Skipped(below, reason))
                continue
            try:
                self._name(handle, name, below, depth)
            except _Gone:
                self.skipped.append(Skipped(below, "it went away, or became something else, while it was read", True))

    def check_size(self) -> None:
        """Raises CredentialsTooLarge when more was found than is copied."""
        if self._size <= self._limit:
            return
        largest = max(self._sizes, key=lambda name: self._sizes[name])
        raise CredentialsTooLarge(
            path=self._source,
            family=self._family.name,
            size=_mib(self._size),
            limit=_mib(self._limit),
            largest=f"{largest!r} with {_mib(self._sizes[largest])}",
        )

    def _name(self, handle: int, name: str, path: str, depth: int) -> None:
        with self._errors(path):
            mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            if depth >= DEPTH:
                self.skipped.append(Skipped(path, f"it lies more than {DEPTH} directories deep", notify=True))
                return
            with self._errors(path):
                child = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=handle)
            try:
                self.directory(child, path, depth + 1)
            finally:
                os.close(child)
        elif stat.S_ISREG(mode):
            with self._errors(path):
                file = os.open(name, _FLAGS, dir_fd=handle)
            try:
                self._file(file, path)
            finally:
                os.close(file)
        elif stat.S_ISLNK(mode):
            with self._errors(path):
                self._take(Entry(path, "link", 0o777, link=os.readlink(name, dir_fd=handle)), 0)
        else:
            self.skipped.append(Skipped(path, "it is a socket, a FIFO or a device"))

    def _file(self, file: int, path: str) -> None:
        """Read a regular file whole; read again when it changed meanwhile, and the last time as it came."""
        before = os.fstat(file)
        if not stat.S_ISREG(before.st_mode):
            raise _Gone
        data = b""
        for _ in range(_ATTEMPTS):
            if self._size + before.st_size > self._limit:
                break  # counted, not read: a sparse file has any size
            data = self._content(file, path, before.st_size)
            after = os.fstat(file)
            if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
                break
            before = after
        else:
            self.skipped.append(
                Skipped(path, "it changed while it was read; the copy may be inconsistent", notify=True)
            )
        self._take(Entry(path, "file", stat.S_IMODE(before.st_mode) & 0o777, data), max(len(data), before.st_size))

    def _content(self, file: int, path: str, size: int) -> bytes:
        """At most ``size`` bytes: less when the file shrank."""
        parts: list[bytes] = []
        offset = 0
        try:
            while offset < size and (part := os.pread(file, min(size - offset, 1 << 20), offset)):
                parts.append(part)
                offset += len(part)
        except OSError as exc:
            raise self._unreadable(path, exc) from exc
        return b"".join(parts)

    def _take(self, entry: Entry, size: int) -> None:
        bytes_of_archive = ARCHIVE_BLOCK + -(-size // ARCHIVE_BLOCK) * ARCHIVE_BLOCK
        top = entry.path.partition("/")[0]
        self._sizes[top] = self._sizes.get(top, 0) + bytes_of_archive
        self._size += bytes_of_archive
        if self._size > self._limit:
            self.entries.clear()  # only counted from here on, to say how much there is
        else:
            self.entries.append(entry)

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            # ELOOP and ENOTDIR: a link, or something else, has taken the name since it was looked at.
            if exc.errno in _SWAPPED:
                raise _Gone from exc
            raise self._unreadable(path, exc) from exc

    def _unreadable(self, path: str, exc: OSError) -> CredentialUnreadable:
        return CredentialUnreadable(
            path=os.path.join(self._source, path),
            operation="read",
            reason=exc.strerror or str(exc),
            family=self._family.name,
        )


class _Gone(Exception):
    """A name is no longer what it was when it was looked at."""


def _swapped() -> frozenset[int]:
    import errno

    return frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EINVAL})


_SWAPPED = _swapped()


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"

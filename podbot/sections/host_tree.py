"""Looks at what a mount copies: by descriptors relative to the allowed root, through no link.

Links are resolved here, one after another, and what they lead to is opened like any other path. So a link that is
exchanged meanwhile leads nowhere, never out of the root.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator, Sequence

from podbot.errors import ToolValidationError
from podbot.sections.host_mounts import SEGMENTS, HostEntry, HostTree, MountQuestion
from podbot.tools.paths import VfsPath, invalid, path_text

ENTRIES = 200_000  # of one mount; links that are followed can multiply them
SECONDS = 60.0  # to look at one mount
_HOPS = 40  # links in one path, as for the kernel
_WORDS = 400  # segments in one path with those of its links: 40 links could have 80,000
_DENIED = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR)  # the last two: it was changed meanwhile
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Outside(Exception):
    """A path leads out of the root."""


class _Nowhere(Exception):
    """A path leads to nothing, or through too many links."""


def look_at(question: MountQuestion, *, entries: int = ENTRIES, seconds: float = SECONDS) -> HostTree | None:
    """The answer to a question of :func:`~podbot.sections.mount_plan.plan_mounts`.

    Raises ToolValidationError for a root that cannot be opened, for more than ``entries`` entries, and if looking takes
    more than ``seconds``.
    """
    try:
        root = os.open(question.root, _LIST)
    except OSError as error:
        raise invalid("allowed_host_roots", question.root, f"it cannot be opened: {error.strerror}") from error
    try:
        return _Look(question, root, entries, seconds).tree()
    finally:
        os.close(root)


class _Look:
    def __init__(self, question: MountQuestion, root: int, most: int, seconds: float) -> None:
        self._question, self._root, self._most, self._seconds = question, root, most, seconds
        self._until = time.monotonic() + seconds
        self._found: list[HostEntry] = []

    def tree(self) -> HostTree | None:
        top = self._question.root
        try:
            source = self._resolved(self._question.path)
            found = self._stat(source)
        except _Outside:
            return HostTree(top, self._question.path, "outside")
        except (_Nowhere, OSError):
            return None
        if stat.S_ISREG(found.st_mode):
            return HostTree(top, source, "file", (_file((), source, found),))
        if not stat.S_ISDIR(found.st_mode):
            return HostTree(top, source, "other")
        self._list((), source, (source,))
        return HostTree(top, source, "directory", tuple(self._found))

    def _list(self, path: VfsPath, source: VfsPath, above: tuple[VfsPath, ...]) -> None:
        """Take what is in a directory. ``above``: the directories that led here, as they are without links."""
        try:
            with opened_below(self._root, source, _LIST) as fd:
                looks = [(name, *_looked(fd, name)) for name in self._names(fd)]
        except OSError as error:
            if error.errno not in _DENIED:
                where = path_text(source) or self._question.root
                raise invalid("host_path", where, f"it cannot be read: {error.strerror}") from error
            self._take(HostEntry(path, source, "unreadable"))
            return
        for name, found, readable in looks:
            if found is not None and not readable:
                self._take(HostEntry((*path, name), (*source, name), "denied"))
            elif found is not None:
                self._entry((*path, name), (*source, name), found, above)

    def _entry(self, path: VfsPath, source: VfsPath, found: os.stat_result, above: tuple[VfsPath, ...]) -> None:
        self._check_time()
        if stat.S_ISLNK(found.st_mode):
            if not self._question.excluded(path):
                self._link(path, source, above)
        elif stat.S_ISREG(found.st_mode):
            self._take(_file(path, source, found))
        elif not stat.S_ISDIR(found.st_mode):
            self._take(HostEntry(path, source, "other"))
        elif not self._question.excluded(path):
            if len(path) >= SEGMENTS:
                self._take(HostEntry(path, source, "deep"))
                return
            self._take(HostEntry(path, source, "directory", 0, found.st_mode))
            self._list(path, source, (*above, source))

    def _link(self, path: VfsPath, source: VfsPath, above: tuple[VfsPath, ...]) -> None:
        try:
            target = self._resolved(source)
            found = self._stat(target)
        except _Outside:
            self._take(HostEntry(path, source, "link", leads="outside"))
        except (_Nowhere, OSError):
            self._take(HostEntry(path, source, "link", leads="nowhere"))
        else:
            if not self._question.follow:
                self._take(HostEntry(path, source, "link", leads="inside"))
            elif any(place[: len(target)] == target for place in above):
                self._take(HostEntry(path, source, "link", leads="up"))
            else:
                self._entry(path, target, found, above)

    def _names(self, fd: int) -> list[str]:
        """What is in a directory, sorted. Raises OSError, and ToolValidationError."""
        names = []
        with os.scandir(fd) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) > self._most:
                    raise self._too_much(f"it has more than {self._most:,} entries")
        return sorted(names)

    def _take(self, entry: HostEntry) -> None:
        if len(self._found) >= self._most:
            raise self._too_much(f"it has more than {self._most:,} entries")
        self._found.append(entry)

    def _check_time(self) -> None:
        if time.monotonic() > self._until:
            raise self._too_much(f"looking at it takes more than {self._seconds:g} s")

    def _too_much(self, reason: str) -> ToolValidationError:
        where = path_text(self._question.path) or self._question.root
        return invalid("host_path", where, reason, "Mount a directory below it, or exclude some.")

    def _resolved(self, path: Sequence[str]) -> VfsPath:
        """The path below the root without links. Raises _Outside and _Nowhere."""
        left, done, hops, words = list(path), list[str](), 0, 0
        while left:
            words += 1
            if words > _WORDS:
                raise _Nowhere
            name = left.pop(0)
            if name in ("", "."):
                continue
            if name == "..":
                if not done:
                    raise _Outside
                done.pop()
                continue
            text = self._link_text((*done, name))
            if text is None:
                done.append(name)
                continue
            hops += 1
            if hops > _HOPS:
                raise _Nowhere
            if text.startswith("/"):
                text, done = self._below_root(text), []
            left = [*text.split("/"), *left]
        return tuple(done)

    def _below_root(self, text: str) -> str:
        top = self._question.root.rstrip("/")
        if text != top and not text.startswith(f"{top}/"):
            raise _Outside
        return text[len(top) :]

    def _link_text(self, path: VfsPath) -> str | None:
        """The text of a link; None for anything else. Raises _Nowhere."""
        try:
            with opened_below(self._root, path[:-1], _LIST) as fd:
                found = os.stat(path[-1], dir_fd=fd, follow_symlinks=False)
                return os.readlink(path[-1], dir_fd=fd) if stat.S_ISLNK(found.st_mode) else None
        except OSError as error:
            raise _Nowhere from error

    def _stat(self, path: VfsPath) -> os.stat_result:
        if not path:
            return os.fstat(self._root)
        with opened_below(self._root, path[:-1], _LIST) as fd:
            return os.stat(path[-1], dir_fd=fd, follow_symlinks=False)


@contextlib.contextmanager
def opened_below(root: int, path: Sequence[str], flags: int, *, above: int = _LIST) -> Iterator[int]:
    """A descriptor of ``path`` below the descriptor ``root``, of which no part is a link. Raises OSError.

    ``flags``: of the last part; ``above``: of the directories on the way.
    """
    fd = os.dup(root)
    try:
        for number, name in enumerate(path, 1):
            below = os.open(name, flags if number == len(path) else above, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def _file(path: VfsPath, source: VfsPath, found: os.stat_result) -> HostEntry:
    return HostEntry(path, source, "file", found.st_size, found.st_mode, "", found.st_mtime_ns, found.st_ctime_ns)


def _looked(fd: int, name: str) -> tuple[os.stat_result | None, bool]:
    """What is there, None for what has been removed meanwhile; and whether it is no file, or one that may be read."""
    try:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        return found, not stat.S_ISREG(found.st_mode) or os.access(name, os.R_OK, dir_fd=fd)
    except OSError:
        return None, True

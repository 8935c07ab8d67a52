"""Copies what a plan says into a directory of this host that nobody else uses yet."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from podbot.atomic import file_errors
from podbot.errors import ToolValidationError
from podbot.sections.host_mounts import MountPlan, PlannedFile
from podbot.sections.host_tree import opened_below
from podbot.tools.paths import VfsPath, invalid, path_text

Owner = tuple[int, int]
"""A uid and a gid."""

_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PART = 1 << 20  # bytes


def copy_into(plan: MountPlan, directory: str, owner: Owner | None = None) -> None:
    """Create the plan's directories and files below ``directory``, which is empty and which only this user can enter.

    ``owner``: of all that is created, and of ``directory``; only root can give one. Everything can be changed by its
    owner, whatever the mode of its source. Raises ToolValidationError for a file that cannot be read or is no longer
    what was planned, DiskFull and PathError; what was copied until then stays.
    """
    copy = _Copy(directory, owner)
    with file_errors(directory, "copy the files of the mounts"):
        copy.own(directory)
        for path in plan.directories:
            copy.make(path)
        with contextlib.closing(_Sources()) as sources:
            for file in plan.files:
                copy.file(file, sources)


class _Sources:
    """The directories that files are copied from. The last one stays open: most files lie beside the one before."""

    def __init__(self) -> None:
        self._roots: dict[str, int] = {}
        self._last: tuple[str, VfsPath] | None = None
        self._stack = contextlib.ExitStack()
        self._fd = -1

    def opened(self, file: PlannedFile) -> int:
        """A descriptor of a planned file, no part of whose path is a link. Raises OSError."""
        place = (file.root, file.source[:-1])
        if place != self._last:
            self._last = None
            self._stack.close()
            if file.root not in self._roots:
                self._roots[file.root] = os.open(file.root, _LIST)
            self._fd = self._stack.enter_context(opened_below(self._roots[file.root], place[1], _LIST))
            self._last = place
        return os.open(file.source[-1], _READ, dir_fd=self._fd)

    def close(self) -> None:
        self._stack.close()
        for descriptor in self._roots.values():
            os.close(descriptor)


class _Copy:
    def __init__(self, directory: str, owner: Owner | None) -> None:
        self._top, self._owner = directory, owner
        self._made: set[VfsPath] = {()}

    def own(self, path: str | int) -> None:
        if self._owner is not None:
            os.chown(path, *self._owner)

    def make(self, path: VfsPath) -> None:
        """Create a directory, and those above it."""
        if path in self._made:
            return
        self.make(path[:-1])
        where = f"{self._top}/{path_text(path)}"
        os.mkdir(where, 0o755)
        self.own(where)
        self._made.add(path)

    def file(self, file: PlannedFile, sources: _Sources) -> None:
        self.make(file.target[:-1])
        with _source(file, sources) as source:
            target = os.open(f"{self._top}/{path_text(file.target)}", _CREATE, 0o600)
            try:
                if _copied(file, source, target) != file.size:
                    raise _changed(file)
                self.own(target)
                os.fchmod(target, file.mode & 0o777 | 0o600)
            finally:
                os.close(target)


@contextlib.contextmanager
def _source(file: PlannedFile, sources: _Sources) -> Iterator[int]:
    try:
        source = sources.opened(file)
    except OSError as error:
        raise _unreadable(file, error) from error
    try:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            raise _changed(file)
        yield source
    finally:
        os.close(source)


def _copied(file: PlannedFile, source: int, target: int) -> int:
    """How many bytes were copied, at most one more than were planned."""
    done = 0
    while done <= file.size and (part := _part(file, source, file.size + 1 - done)):
        view = memoryview(part)
        while view:
            view = view[os.write(target, view) :]
        done += len(part)
    return done


def _part(file: PlannedFile, source: int, most: int) -> bytes:
    try:
        return os.read(source, min(_PART, most))
    except OSError as error:
        raise _unreadable(file, error) from error


def _unreadable(file: PlannedFile, error: OSError) -> ToolValidationError:
    return invalid("host_path", path_text(file.source), f"it cannot be read: {error.strerror}")


def _changed(file: PlannedFile) -> ToolValidationError:
    hint = "Call again when nothing writes to it."
    return invalid("host_path", path_text(file.source), "it was changed while it was copied", hint)

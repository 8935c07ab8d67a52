"""The directories in which workspaces have their files.

``<root>/<ident>/`` (0700) has ``lock``, which the process that uses it holds, ``workspace``, and ``keep`` if it is to
outlive its use. One that nobody holds and that has no ``keep`` was left by a killed process. The lock of ``<root>``
itself is held while a directory is made and locked, and while those that were left are moved out of the way: otherwise
a new directory could be taken for one that was left, before it is locked.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import threading
import time
from collections.abc import Iterator
from typing import Self

from podbot.atomic import file_errors
from podbot.errors import FilesystemError, WorkspaceInUse
from podbot.events import Emit, Event
from podbot.locks import same_file
from podbot.places import private_dir
from podbot.sections.host_copy import Owner, copy_into
from podbot.sections.host_mounts import MountPlan
from podbot.suites.settings import is_ident
from podbot.tools.inside.refusals import Clock, Refused
from podbot.tools.inside.removal import rm

_LOCK, _KEEP, _WORKSPACE, _NEW = "lock", "keep", "workspace", "workspace.new"
_REMOVED = ".removed-"  # begins the name of a directory that is being removed
_WAIT, _PAUSE = 10.0, 0.005  # seconds for the lock of the root, which is held for milliseconds
_REMOVING = 60.0  # seconds; a million files take about 20
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Overlay:
    """The directory of one workspace, held by this process until :meth:`release`. One thread uses it at a time.

    ``path``: of the workspace in it, which exists after :meth:`fill`. ``owner``: of the files; None: this user.
    """

    def __init__(self, root: str, ident: str, lock: int, owner: Owner | None) -> None:
        self._root, self._ident, self._lock, self._owner = root, ident, lock, owner
        self._top = os.path.join(root, ident)
        self.path = workspace_path(root, ident)

    @classmethod
    def claim(cls, root: str, ident: str, owner: Owner | None = None) -> Self:
        """The directory ``ident`` below ``root``, which are made if they are missing. One that was left is replaced.

        Raises WorkspaceInUse, and FilesystemError subclasses.
        """
        private_dir(root)
        with _held(root):
            top = private_dir(os.path.join(root, ident))
            lock = _locked(top)
            if lock is not None and os.path.lexists(workspace_path(root, ident)) and not _is_kept(top):
                _out_of_the_way(root, ident)  # remove_left removes it: its container may still run
                os.close(lock)
                lock = _locked(private_dir(top))
        if lock is None:
            raise WorkspaceInUse(path=top)
        return cls(root, ident, lock, owner)

    def has_files(self) -> bool:
        """Whether the workspace has been filled."""
        return os.path.isdir(self.path)

    def fill(self, plan: MountPlan) -> None:
        """Make the workspace of what the plan says: all of it, or after an error nothing.

        Raises ToolValidationError, and FilesystemError subclasses.
        """
        new = os.path.join(self._top, _NEW)
        _remove(self._top, _NEW)  # what a killed process left
        try:
            with file_errors(new, "make a workspace"):
                os.mkdir(new, 0o700)
            copy_into(plan, new, self._owner)
            with file_errors(new, "make a workspace"):
                os.rename(new, self.path)
        except BaseException:
            _remove(self._top, _NEW)
            raise

    def keep(self) -> None:
        """Let it outlive its use, also if this process is killed. Raises FilesystemError subclasses."""
        with file_errors(self._top, "keep a workspace"):
            os.close(os.open(os.path.join(self._top, _KEEP), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def release(self, *, keep: bool, emit: Emit) -> None:
        """Let go of it: with ``keep`` for a later use, otherwise removed. Twice is once."""
        lock, self._lock = self._lock, -1
        if lock < 0:
            return
        try:
            if keep:
                self.keep()
            else:
                _removed(self._root, self._ident, emit)
        finally:
            os.close(lock)


def workspace_path(root: str, ident: str) -> str:
    """Where the workspace ``ident`` has its files."""
    return os.path.join(root, ident, _WORKSPACE)


def remove_left_behind(root: str, emit: Emit) -> None:
    """As :func:`remove_left`, in a thread: a million files take 20 s. A process that ends meanwhile leaves the rest."""
    threading.Thread(target=remove_left, args=(root, emit), name="podbot-remove-left", daemon=True).start()


def remove_left(root: str, emit: Emit) -> None:
    """Remove the directories below ``root`` that killed processes left."""
    left: list[tuple[str, int]] = []
    with contextlib.suppress(OSError, WorkspaceInUse), _held(root):
        for name in sorted(os.listdir(root)):
            with contextlib.suppress(OSError, FilesystemError):  # it has been removed since
                lock = _locked_left(os.path.join(root, name))
                if lock is not None:
                    left.append((name, lock))
        left = [(_out_of_the_way(root, name), lock) for name, lock in left]
    for name, lock in left:
        _removed(root, name, emit)
        os.close(lock)


def _locked_left(top: str) -> int | None:
    """The lock of a directory that a killed process left; None for any other. Raises OSError and FilesystemError."""
    if not _is_private(top) or _is_kept(top):
        return None
    if not os.path.lexists(os.path.join(top, _LOCK)):
        os.rmdir(top)  # made or emptied by a process that was killed; a directory with anything in it is not podbot's
        return None
    return _locked(top)


def _is_private(top: str) -> bool:
    """Whether it is a directory as podbot makes them. Nothing else is ever removed. Raises OSError."""
    name, mode = os.path.basename(top), os.lstat(top).st_mode
    named = is_ident(name) or name.startswith(_REMOVED)
    return named and stat.S_ISDIR(mode) and stat.S_IMODE(mode) == 0o700


def _is_kept(top: str) -> bool:
    return os.path.lexists(os.path.join(top, _KEEP))


def _out_of_the_way(root: str, name: str) -> str:
    """The new name of a directory that is to be removed, which no workspace has."""
    if not name.startswith(_REMOVED):
        new = f"{_REMOVED}{secrets.token_hex(8)}"
        with contextlib.suppress(OSError):
            os.rename(os.path.join(root, name), os.path.join(root, new))
            return new
    return name


@contextlib.contextmanager
def _held(root: str) -> Iterator[None]:
    """The lock of ``root`` for the block. Raises WorkspaceInUse, and FileNotFoundError and NotADirectoryError."""
    directory = os.open(root, _LIST)
    try:
        end = time.monotonic() + _WAIT
        while not _lock(directory):
            if time.monotonic() > end:  # another process was stopped in such a moment
                raise WorkspaceInUse(path=root)
            time.sleep(_PAUSE)
        yield
    finally:
        os.close(directory)


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _locked(top: str) -> int | None:
    """The lock of a directory, held; None if another process or workspace holds it. Raises FilesystemError."""
    path = os.path.join(top, _LOCK)
    with file_errors(path, "lock a workspace"):
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if _lock(lock) and same_file(lock, path):  # otherwise it was removed before it was locked
        return lock
    os.close(lock)
    return None


def _removed(root: str, ident: str, emit: Emit) -> None:
    """Remove a directory, its lock last: until then nobody else takes it for one that was left."""
    top = os.path.join(root, ident)
    # At once, so that an export of its changes does not take a part of this for what the sandbox removed.
    with contextlib.suppress(OSError):
        os.rename(os.path.join(top, _WORKSPACE), os.path.join(top, f"{_REMOVED}{secrets.token_hex(8)}"))
    try:
        for name in sorted(os.listdir(top)):
            if name != _LOCK:
                _remove(top, name)
        _remove(root, ident)
    except (Refused, OSError) as error:
        if not os.path.lexists(top):
            return  # another process has removed it at the same time
        message = f"the workspace's directory {top} was not removed completely: {_reason(error)}"
        emit(Event("warning", "workspace.not_removed", message, {"path": top}))


def _remove(top: str, name: str) -> None:
    """Remove the entry ``name`` of a directory, whatever a sandbox made of it. Raises Refused and OSError."""
    if not os.path.lexists(os.path.join(top, name)):
        return
    directory = os.open(top, _LIST)
    try:
        rm(directory, {"path": [name], "unlock": True}, Clock(_REMOVING))
    finally:
        os.close(directory)


def _reason(error: Exception) -> str:
    is_late = isinstance(error, Refused) and error.kind == "deadline"
    return f"it took more than {_REMOVING:g} s" if is_late else str(error)

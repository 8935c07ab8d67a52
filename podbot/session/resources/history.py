"""The store of an agent's conversations: creating it, locking it while a session runs, and offering to resume.

``<state>/history/<project key>/`` is podbot's own (0700). ``project.json`` names the project; every podbot that runs
a session of it holds a shared lock on ``lock``; ``<agent>.used`` is touched when one starts. ``<agent>/`` is mounted,
so the agent controls everything in it: podbot lists names and sizes there, opens no file and follows no link.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import stat
import time
from collections.abc import Iterator

from podbot.atomic import file_errors, replace_file
from podbot.errors import HistoryInUse, UnsafeStore
from podbot.events import Emit, Event
from podbot.launch.resources.history import HistoryPlan
from podbot.launch.types import SandboxPlan
from podbot.locks import locked_in
from podbot.places import private_dir
from podbot.session.resources.resource import SessionResource

LOCK = "lock"
PROJECT = "project.json"
USED = ".used"

# What a survey reads at most.
ENTRIES = 50_000
DEPTH = 32
SECONDS = 2.0
_BLOCK = 512  # bytes, whatever the file system's own block is: st_blocks
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextlib.contextmanager
def history_in_use(history: HistoryPlan) -> Iterator[None]:
    """Create the store, and block `podbot history rm` on it while the block runs. Raises FilesystemError subclasses."""
    private_dir(os.path.dirname(history.directory))
    lock = locked(history.directory, history.project, fcntl.LOCK_SH)
    try:
        _make(history)
        yield
    finally:
        os.close(lock)


def locked(directory: str, project: str, kind: int) -> int:
    """Lock the project, creating its directory if missing; returns the descriptor. ``kind`` is LOCK_SH or LOCK_EX.

    Raises HistoryInUse when another podbot holds a conflicting lock.
    """
    lock = locked_in(directory, LOCK, kind)
    if lock is None:
        raise HistoryInUse(project=project, user="another podbot", hint="Wait for it to end, then try again.")
    return lock


def _make(history: HistoryPlan) -> None:
    """Create the agent's directory, and podbot's own files beside it.

    The agent can change its directory's owner, in a user namespace even to another user id of the host. It is inside a
    directory of podbot's that no other user can enter, so only a symbolic link has to be refused.
    """
    store, directory = history.store.source, history.directory
    with file_errors(store, "make the store of conversations"):
        with contextlib.suppress(FileExistsError):
            os.mkdir(store, 0o700)
        if not stat.S_ISDIR(os.lstat(store).st_mode):
            raise UnsafeStore(path=store)
        used = os.open(store + USED, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        os.utime(used)
        os.close(used)
    path = os.path.join(directory, PROJECT)
    if not os.path.exists(path):
        data = json.dumps({"project": history.project}).encode()
        replace_file(path, data, operation="write which project a store is for")


def offer_to_resume(plan: SandboxPlan, *, began: int, kept: bool, emit: Emit) -> None:
    """Show the command that continues the conversation, if the session has left one.

    ``began``: when the agent was started, by ``file_clock``. ``kept``: the container was kept. Nothing is offered for a
    kept clone, whose work a new session would not have.
    """
    history = plan.find(HistoryPlan)
    if history is None or (kept and plan.source == "github_clone"):
        return
    found = survey(history.store.source)
    if found.newest >= began or not found.complete:
        line = shlex.join(history.resume)
        text = f"to continue this conversation: {line}"
        emit(Event("notice", "history.resume", text, {"command": list(history.resume)}))


class Survey:
    """``bytes``: space that the files use on the disk. ``newest``: in nanoseconds since the epoch, 0 if there are none.

    ``complete``: false when a bound was reached or a directory could not be read; the figures are then lower bounds.
    """

    def __init__(self) -> None:
        self.entries = self.bytes = self.newest = 0
        self.complete = True


def survey(path: str, *, entries: int = ENTRIES, depth: int = DEPTH, seconds: float = SECONDS) -> Survey:
    """Measure everything below ``path``, which an agent may still be writing; a missing path counts as empty.

    Only names and sizes are read. No link is followed, only directories are opened, each relative to its parent.
    """
    found = Survey()
    walk = _Walk(found, entries, time.monotonic() + seconds)
    try:
        top = os.open(path, _FLAGS)
    except FileNotFoundError:
        return found
    except OSError:
        found.complete = False
        return found
    walk.directory(top, depth)
    return found


class _Walk:
    def __init__(self, found: Survey, entries: int, end: float) -> None:
        self._found, self._entries, self._end = found, entries, end

    def directory(self, descriptor: int, depth: int) -> None:
        """Count one directory, and close it."""
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    if self._full():
                        return
                    with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                        self._entry(entry, descriptor, depth)
        except OSError:
            self._found.complete = False
        finally:
            os.close(descriptor)

    def _full(self) -> bool:
        if self._found.entries < self._entries and time.monotonic() < self._end:
            return False
        self._found.complete = False
        return True

    def _entry(self, entry: os.DirEntry[str], parent: int, depth: int) -> None:
        found = entry.stat(follow_symlinks=False)
        self._found.entries += 1
        self._found.bytes += found.st_blocks * _BLOCK
        self._found.newest = max(self._found.newest, found.st_mtime_ns)
        if not entry.is_dir(follow_symlinks=False):
            return
        if depth <= 1:
            self._found.complete = False
            return
        self.directory(os.open(entry.name, _FLAGS, dir_fd=parent), depth - 1)


class Resource(SessionResource[HistoryPlan]):
    """Keeps the store locked while the session is open."""

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """See SessionResource. Raises FilesystemError subclasses."""
        with history_in_use(self.plan):
            yield

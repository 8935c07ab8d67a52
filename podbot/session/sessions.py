"""A session's directory on the host: who holds the name, and what a killed podbot left behind.

``<runtime>/<session>/`` (0700) holds ``lock``, flocked by the podbot that runs the session, and
``session.json``. The kernel drops the lock with its holder, so a directory whose lock is free
belongs to a podbot that was killed, or to a kept session.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podbot.atomic import replace_file
from podbot.errors import PathError, PodbotError, SessionExists
from podbot.events import Emit, Event
from podbot.locks import is_held, same_file
from podbot.places import is_own_directory, private_dir, runtime_root, trusted_dir

if TYPE_CHECKING:
    from podbot.engine.port import Engine
    from podbot.guard.marks import GuardReport

LOCK = "lock"
RECORD = "session.json"
STOPPING = "stopping"
ENDING = "ending"  # held beside the lock: whoever has the session only ends it
USED = "used"  # shared by every `podbot exec` in the session
WANTED = "wanted"  # held by a podbot that waits for that end
GONE = ".gone-"
ENDING_SECONDS = 30.0  # for whoever ends the previous session of a name: TERM, KILL, a look for unsaved work
_ATTEMPTS = 8


@dataclass(frozen=True)
class SessionRecord:
    """What ``session.json`` says. ``endpoint``: the engine that has the container.

    ``untold``: a helper process left events in it that nobody has heard yet.
    """

    session: str
    endpoint: str
    kept: bool
    live: bool
    untold: bool = False


class SessionDirectory:
    """The directory while its lock is held. ``has_container``: it outlives this podbot unless that is taken back."""

    def __init__(self, path: str, endpoint: str, lock: int) -> None:
        self.path = path
        self.lock = lock  # a descriptor
        self.has_container = False
        self.handed_over = False  # to a helper process, which has the lock as well: nothing here is ours to end
        self.kept = False
        self.guard: GuardReport | None = None  # what it found, once the container is gone
        self.is_others = False  # the container: a killed session's, or one on another engine
        self._endpoint = endpoint
        self._before = _read_record(path)
        self.record(kept=False)

    def record(self, *, kept: bool, untold: Sequence[Event] = ()) -> None:
        """Write ``session.json``. ``untold``: events for the next podbot command to report."""
        self.kept = kept
        record = {"session": os.path.basename(self.path), "endpoint": self._endpoint, "kept": kept}
        said = {"untold": [event._asdict() for event in untold]} if untold else {}
        _write_record(self.path, record | said)

    def being_stopped(self) -> bool:
        """A `podbot stop` decides what becomes of the container."""
        return is_live(self.path, STOPPING)

    def name_taken(self) -> None:
        """The name is another container's: a killed session's keeps its record, anything else none."""
        if self._before:
            _write_record(self.path, self._before)
            self.has_container = self.is_others = True


@contextlib.contextmanager
def session_directory(path: str, endpoint: str) -> Iterator[SessionDirectory]:
    """Hold the session's name for as long as the block runs; then the directory goes, unless it has a container.

    Raises SessionExists when another podbot runs that session. One that was handed over is left as it is.
    """
    trusted_dir(os.path.dirname(path))
    lock = _locked(path, os.path.basename(path))
    try:
        directory = SessionDirectory(path, endpoint, lock)
        try:
            yield directory
        finally:
            if not (directory.has_container or directory.handed_over):
                remove_reported(path)
    finally:
        os.close(lock)


def sessions(environ: Mapping[str, str]) -> list[SessionRecord]:
    """Every session that has a directory, by name. Reads the runtime directory only; none of one that is not ours."""
    root = runtime_root(environ)
    if not is_own_directory(root):
        return []
    try:
        names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    found = []
    for name in names:
        path = os.path.join(root, name)
        if name.startswith(".") or not os.path.exists(os.path.join(path, LOCK)):
            continue
        record = _read_record(path)
        endpoint = record.get("endpoint")
        kept = record.get("kept") is True
        place = endpoint if isinstance(endpoint, str) else ""
        found.append(SessionRecord(name, place, kept, is_live(path), bool(record.get("untold"))))
    return found


def session_pipes(engine: Engine, environ: Mapping[str, str], container: str) -> str | None:
    """Where pipes for commands in ``container`` can be made; None when it is no session of this host's by name."""
    from podbot.launch.names import is_name  # here, for `podbot ps` needs neither
    from podbot.launch.pipes import pipes_directory

    if not engine.local or not is_name(container):
        return None
    root = runtime_root(environ)
    session = os.path.join(root, container)
    path = pipes_directory(session)
    if not all(map(is_own_directory, (os.path.dirname(root), root, session, path))):
        return None
    return path if _read_record(session).get("endpoint") == engine.endpoint else None


@contextlib.contextmanager
def in_use(path: str) -> Iterator[None]:
    """While the block runs, :func:`is_in_use` is true of the session's directory. Any number of processes at once."""
    if not is_own_directory(path):  # no session of this host, or a directory that another user made in its place
        yield
        return
    try:
        lock = os.open(os.path.join(path, USED), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):  # another podbot looks at this moment
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)


def is_in_use(path: str) -> bool:
    """A `podbot exec` is at work in the session."""
    try:
        lock = os.open(os.path.join(path, USED), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def is_live(path: str, name: str = LOCK) -> bool:
    """A podbot process holds the session's lock (or another file of that directory)."""
    return is_held(os.path.join(path, name))


def stopping(path: str) -> contextlib.AbstractContextManager[int]:
    """While the block runs, the podbot of a live session leaves its container to us. Nothing without a directory."""
    return flagged(path, STOPPING)


@contextlib.contextmanager
def flagged(path: str, name: str) -> Iterator[int]:
    """While the block runs, :func:`is_live` is true of that file in the session's directory.

    Yields its descriptor, whose holders hold the flag as well; -1 without a directory.
    """
    flag = os.path.join(path, name)
    try:
        lock = os.open(flag, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield -1
        return
    try:
        with contextlib.suppress(OSError):
            _raise_flag(lock, flag)
        yield lock
    finally:
        os.close(lock)


def _raise_flag(lock: int, path: str) -> None:
    """Hold the lock, unless another process does for the same reason. Tried for 70 ms: is_held has it for a moment."""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(0.01)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if is_held(path):
                return
        else:
            return


def take_untold(path: str) -> list[Event]:
    """The events that a helper process left in the session's record, which it then has no longer."""
    with contextlib.suppress(PodbotError):
        lock = _locked(path, os.path.basename(path))
        try:
            record = _read_record(path)
            untold = record.pop("untold", [])
            if untold:
                _write_record(path, record)
            return [Event(**item) for item in untold]  # type: ignore[attr-defined]  # our own
        finally:
            os.close(lock)
    return []


def await_ending(path: str, emit: Emit) -> None:
    """Wait until nobody is still ending the session of that name, which is hurried up; for ENDING_SECONDS at most."""
    if not is_live(path, ENDING):
        return
    session = os.path.basename(path)
    text = f"waiting for the previous session {session} to end"
    emit(Event("info", "session.ending", text, {"session": session}))
    end = time.monotonic() + ENDING_SECONDS
    with flagged(path, WANTED):
        while is_live(path, ENDING) and time.monotonic() < end:
            time.sleep(0.02)


def is_passing(path: str) -> bool:
    """Whoever had the session's lock a moment ago only ends that session, or has let go of it since."""
    return is_live(path, ENDING) or not is_live(path)


def await_release(path: str, seconds: float) -> bool:
    """Wait until no podbot holds the session; false when one still does."""
    end = time.monotonic() + seconds
    while is_live(path):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def remove_reported(path: str) -> None:
    """Remove a session's directory, unless the guard has a record there of which nobody has reported yet."""
    from podbot.session.guarding import records

    if not records(path):
        remove_directory(path)


def remove_directory(path: str) -> None:
    """Remove a session's directory; what is missing already, or a link, is let be.

    Renamed first: another podbot that takes the name meanwhile gets a directory of its own, instead of
    one whose files we are removing.
    """
    import shutil

    parent, name = os.path.split(path)
    aside = os.path.join(parent, f"{GONE}{name}-{os.urandom(4).hex()}")
    with contextlib.suppress(OSError, RecursionError):  # the latter: somebody made it that deep
        if not os.path.islink(path):
            os.rename(path, aside)
            shutil.rmtree(aside, ignore_errors=True)


def sweep(environ: Mapping[str, str]) -> None:
    """Finish removals that a killed podbot began."""
    import shutil

    root = runtime_root(environ)
    with contextlib.suppress(OSError):
        for name in os.listdir(root):
            if name.startswith(GONE):
                shutil.rmtree(os.path.join(root, name), ignore_errors=True)


def _locked(path: str, session: str) -> int:
    """Descriptor of the session's lock, held.

    Tried for 80 ms: the directory may be removed under us, and :func:`is_live` holds the lock for a moment.
    """
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(0.01)
        name = os.path.join(path, LOCK)
        try:
            private_dir(path)
            lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            continue
        except PathError:  # removed between its making and our look at it
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        except OSError as exc:
            raise PathError(path=name, operation="open", reason=exc.strerror or str(exc)) from exc
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        if same_file(lock, name):
            return lock
        os.close(lock)
    raise SessionExists(session=session)


def _write_record(path: str, record: Mapping[str, object]) -> None:
    replace_file(os.path.join(path, RECORD), json.dumps(record).encode(), operation="write the session's record")


def _read_record(path: str) -> dict[str, object]:
    try:
        with open(os.path.join(path, RECORD), encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}

"""A session's directory on the host: who holds the name, and what a killed podbot left behind.

``<runtime>/<session>/`` (0700) holds ``lock``, flocked by the podbot that runs the session, and the session's
record (``record``). The kernel drops the lock with its holder, so a directory whose lock is free belongs to a
podbot that was killed, or to a session that needs none: see ``states``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from podbot.errors import PathError, PodbotError, SessionExists
from podbot.events import Event
from podbot.locks import same_file
from podbot.places import is_own_directory, private_dir, runtime_root, trusted_dir
from podbot.session.flags import ATTEMPTS, LOCK, STOPPING, is_live
from podbot.session.record import SessionRecord, read_record, write_record
from podbot.session.states import State, moved, observed

if TYPE_CHECKING:
    from podbot.engine.port import Engine
    from podbot.guard.marks import GuardReport

GONE = ".gone-"


@dataclass(frozen=True)
class FoundSession:
    """A session that has a directory. ``endpoint``: the engine that has the container.

    ``state``: what the record and the lock say of it; None: this podbot cannot read the record. ``live``: a podbot
    process has it. ``untold``: its record has events that nobody has heard yet.
    """

    session: str
    endpoint: str
    state: State | None
    live: bool
    untold: bool = False

    @property
    def left_behind(self) -> bool:
        """Its podbot was killed."""
        return self.state == "orphaned"


class SessionDirectory:
    """A session's directory while its lock, a descriptor, is held.

    ``handed_over``: a helper process has the lock as well, and ends the session. ``guard``: what it found, once the
    container is gone. ``is_others``: the container is a killed session's, or a kept one's.
    """

    def __init__(self, path: str, lock: int, record: SessionRecord, *, earlier: SessionRecord | None = None) -> None:
        self.path, self.lock, self.record, self.earlier = path, lock, record, earlier
        self.handed_over = False
        self.is_others = False
        self.guard: GuardReport | None = None

    @property
    def has_container(self) -> bool:
        """The session has a container, or may have: its directory stays."""
        return self.record.state not in ("claimed", "gone")

    @property
    def stays(self) -> bool:
        """What is in the directory is needed when the block ends: by a container, a helper or an earlier session."""
        untouched = self.earlier is not None and self.record.state == "claimed"
        return self.has_container or self.handed_over or self.is_others or untouched

    @property
    def kept(self) -> bool:
        """The container was kept, stopped."""
        return self.record.state == "stopped"

    def move(self, state: State, *, container: str = "", plan: Mapping[str, Any] | None = None) -> None:
        """Go to another state, and write that down. ``container``, its id, and ``plan``: once they are known.

        Raises ValueError for a move that is not allowed, and FilesystemError subclasses.
        """
        record = self.record
        self.record = replace(
            record,
            state=moved(record.state, state),
            container=container or record.container,
            plan=record.plan if plan is None else plan,
        )
        if state != "gone":  # its directory is removed at once
            write_record(self.path, self.record)

    def leave(self, untold: Iterable[Event]) -> None:
        """Write down events for the next podbot command to report."""
        self.record = replace(self.record, untold=tuple(untold))
        write_record(self.path, self.record)

    def being_stopped(self) -> bool:
        """A `podbot stop` decides what becomes of the container."""
        return is_live(self.path, STOPPING)

    def name_taken(self) -> None:
        """The name is another container's: an earlier session's record is as it was, anything else has none."""
        if self.earlier is None:
            self.record = replace(self.record, state="gone")
            return
        self.record = self.earlier
        self.is_others = True
        write_record(self.path, self.record)


@contextlib.contextmanager
def session_directory(path: str, endpoint: str, *, record: SessionRecord | None = None) -> Iterator[SessionDirectory]:
    """Hold the name of a new session for as long as the block runs; then the directory goes, unless it has a container.

    ``record``: of the session to come, in state ``claimed``. An earlier session's stays until there is a container.
    Raises SessionExists when another podbot runs that session, SessionRecordUnknown when there is one of that name
    that this podbot does not understand. A session that was handed over is left as it is.
    """
    with _held(path) as lock:
        earlier = read_record(path)
        record = record or SessionRecord(os.path.basename(path), endpoint, "claimed")
        directory = SessionDirectory(path, lock, record, earlier=earlier)
        if earlier is None:
            write_record(path, record)
        try:
            yield directory
        finally:
            if not directory.stays:
                remove_reported(path)


@contextlib.contextmanager
def left_session(path: str, *, otherwise: SessionRecord | None = None) -> Iterator[SessionDirectory | None]:
    """Hold a session that no podbot process has any more; None when there is none. Its directory goes when it is gone.

    ``otherwise``: the record of one whose directory is missing. Raises SessionExists when a podbot has it after all,
    and SessionRecordUnknown.
    """
    with _held(path) as lock:
        record = read_record(path)
        if record is None and otherwise is not None:
            record = otherwise
            write_record(path, record)
        if record is None:
            try:
                yield None
            finally:
                remove_reported(path)
            return
        directory = SessionDirectory(path, lock, replace(record, state=observed(record.state, live=False)))
        try:
            yield directory
        finally:
            if not directory.has_container:
                remove_reported(path)


@contextlib.contextmanager
def _held(path: str) -> Iterator[int]:
    """The session's lock."""
    trusted_dir(os.path.dirname(path))
    lock = _locked(path, os.path.basename(path))
    try:
        yield lock
    finally:
        os.close(lock)


def sessions(environ: Mapping[str, str]) -> list[FoundSession]:
    """Every session that has a directory, by name. Reads the runtime directory only; none of one that is not ours."""
    root = runtime_root(environ)
    if not is_own_directory(root):
        return []
    try:
        names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    return [
        _found(os.path.join(root, name), name)
        for name in names
        if not name.startswith(".") and os.path.exists(os.path.join(root, name, LOCK))
    ]


def _found(path: str, name: str) -> FoundSession:
    live = is_live(path)
    try:
        record = read_record(path) or SessionRecord(name, "", "claimed")
    except PodbotError:
        return FoundSession(name, "", None, live)
    return FoundSession(name, record.endpoint, observed(record.state, live=live), live, bool(record.untold))


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
    try:
        record = read_record(session)
    except PodbotError:
        return None
    return path if record is not None and record.endpoint == engine.endpoint else None


def take_untold(path: str) -> list[Event]:
    """The events that a helper process left in the session's record, which it then has no longer."""
    with contextlib.suppress(PodbotError):
        lock = _locked(path, os.path.basename(path))
        try:
            record = read_record(path)
            if record is not None and record.untold:
                write_record(path, replace(record, untold=()))
                return list(record.untold)
        finally:
            os.close(lock)
    return []


def remove_reported(path: str) -> None:
    """Remove a session's directory, unless the guard has a record there of which nobody has reported yet."""
    from podbot.session.guarding import records

    if not records(path):
        remove_directory(path)


def remove_directory(path: str) -> None:
    """Remove a session's directory; what is missing already, or a link, is ignored.

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
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(0.01)
        name = os.path.join(path, LOCK)
        try:
            private_dir(path)
            lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            continue
        except PathError:  # removed between its making and our look at it
            if attempt == ATTEMPTS - 1:
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

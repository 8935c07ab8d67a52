"""A session's directory on the host, which reserves its name and shows what a killed podbot left behind.

``<runtime>/<session>/`` (0700) holds ``lock``, flocked by the podbot that runs the session, and the session's
record (``record``). The kernel releases the lock when its holder ends, so a directory with a free lock belongs to
a podbot that was killed, or to a session that needs no podbot: see ``record``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from podbot.children import give_back, withhold
from podbot.errors import PodbotError, SessionExists
from podbot.events import Event
from podbot.frozen import Frozen, replace
from podbot.locks import locked_in
from podbot.places import is_own_directory, runtime_root, trusted_dir
from podbot.session.flags import LEAVING, LOCK, STOPPING, flagged, is_live
from podbot.session.record import SessionRecord, State, moved, observed, read_record, write_record

if TYPE_CHECKING:
    import socket

    from podbot.engine.port import Engine
    from podbot.guard.marks import GuardReport
    from podbot.session.kill_watcher import HelperProgram

GONE = ".gone-"


class FoundSession(Frozen):
    """A session that has a directory. ``endpoint``, ``engine``: address and kind of the engine that has the container.

    ``state``: derived from the record and the lock; None when this podbot cannot read the record. ``live``: a podbot
    process holds it. ``untold``: its record has events that have not been reported yet. ``leased``: its sandbox ends by
    itself when its podbot does.
    """

    session: str
    endpoint: str
    state: State | None
    live: bool
    untold: bool = False
    engine: str = ""
    leased: bool = False

    def is_on(self, engine: Engine) -> bool:
        """Whether ``engine`` has its container."""
        return self.endpoint == engine.endpoint and self.engine in ("", engine.words.kind)

    @property
    def left_behind(self) -> bool:
        """Whether its podbot was killed."""
        return self.state == "orphaned"


class SessionDirectory:
    """A session's directory while its ``lock``, a descriptor, is held.

    ``handed_over``: a helper process holds the lock too and will end the session. ``guard``: the guard's report,
    once the container is gone; ``guard_record``: the path of its first scan, empty for a session without one.
    ``is_others``: the container belongs to an earlier session that was killed or kept. ``lease``: the descriptor of the
    connection with which the sandbox ends; -1 without one. A process that takes the session over inherits it.
    ``listener``: the socket in the sandbox that its guest has passed to us for the gateway; None without one.
    ``flags``: to be closed when the directory has been removed, if it is. ``never_ran``: its podbot was killed before
    the session could run a command.
    """

    def __init__(
        self,
        path: str,
        lock: int,
        record: SessionRecord,
        *,
        earlier: SessionRecord | None = None,
        never_ran: bool = False,
    ) -> None:
        self.path, self.lock, self.record, self.earlier, self.never_ran = path, lock, record, earlier, never_ran
        self.handed_over = False
        self.is_others = False
        self.guard: GuardReport | None = None
        self.guard_record = ""
        self.lease = -1
        self.listener: socket.socket | None = None
        self.flags = contextlib.ExitStack()

    @property
    def has_container(self) -> bool:
        """Whether the session has or may have a container, so that its directory must stay."""
        return self.record.state not in ("claimed", "gone")

    @property
    def stays(self) -> bool:
        """Whether a container, a helper process or an earlier session still needs the directory when the block ends."""
        untouched = self.earlier is not None and self.record.state == "claimed"
        return self.has_container or self.handed_over or self.is_others or untouched

    @property
    def kept(self) -> bool:
        """Whether the container was kept, stopped."""
        return self.record.state == "stopped"

    def move(self, state: State, *, container: str = "", plan: Mapping[str, Any] | None = None) -> None:
        """Change the state and write the record. ``container`` (an id) and ``plan`` are recorded too if they are given.

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

    def created(self, container: str) -> None:
        """Record the id of a container that has not been started. Raises FilesystemError subclasses."""
        self.record = replace(self.record, container=container)
        write_record(self.path, self.record)

    def leave(self, untold: Iterable[Event]) -> None:
        """Store events in the record for the next podbot command to report."""
        self.record = replace(self.record, untold=tuple(untold))
        write_record(self.path, self.record)

    def being_stopped(self) -> bool:
        """Whether a `podbot stop` has taken over the container."""
        return is_live(self.path, STOPPING)

    def show_leaving(self) -> None:
        """Show that the sandbox is at its session's own end, to the commands of other podbots, which end with it."""
        self.flags.enter_context(flagged(self.path, LEAVING))

    def name_taken(self) -> None:
        """The name belongs to another container: restore an earlier session's record, or discard our own."""
        if self.earlier is None:
            self.record = replace(self.record, state="gone")
            return
        self.record = self.earlier
        self.is_others = True
        write_record(self.path, self.record)


@contextlib.contextmanager
def session_directory(
    path: str,
    endpoint: str,
    *,
    record: SessionRecord | None = None,
    sleep: Callable[[float], object] = time.sleep,
    helper: HelperProgram | None = None,
) -> Iterator[SessionDirectory]:
    """Hold a new session's name while the block runs; then remove its directory, unless there is a container.

    ``record``: the new session's, in state ``claimed``. An earlier session's record stays until there is a container.
    Raises SessionExists when another podbot runs that session, and SessionRecordUnknown when this podbot cannot read
    an existing record of that name. A session that was handed over is left as it is. ``helper``: see ``kill_watcher``.
    """
    from podbot.session.kill_watcher import removed_if_killed  # imported here: `podbot exec` opens no session

    with removed_if_killed(path, helper) as watcher, _held(path, sleep) as lock:
        earlier = read_record(path)
        record = record or SessionRecord(os.path.basename(path), endpoint, "claimed")
        directory = SessionDirectory(path, lock, record, earlier=earlier)
        if earlier is None:
            write_record(path, record)
        try:
            yield directory
        except BaseException:
            # A container that could not be removed now may be removable in a moment, by a new engine service.
            watcher.needed = directory.has_container and not (
                directory.kept or directory.handed_over or directory.is_others
            )
            raise
        finally:
            if not directory.stays:
                remove_reported(path)
            directory.flags.close()


@contextlib.contextmanager
def left_session(path: str, *, otherwise: SessionRecord | None = None) -> Iterator[SessionDirectory | None]:
    """Hold a session that no podbot process holds; yields None when there is none.

    Removes the session's directory if it no longer has a container. ``otherwise``: the record to use when the directory
    is missing. Raises SessionExists when a podbot holds the session after all, and SessionRecordUnknown.
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
        seen = replace(record, state=observed(record.state, live=False))
        directory = SessionDirectory(path, lock, seen, never_ran=record.never_ran)
        try:
            yield directory
        finally:
            if not directory.has_container and not directory.record.untold:
                remove_reported(path)


@contextlib.contextmanager
def _held(path: str, sleep: Callable[[float], object] = time.sleep) -> Iterator[int]:
    """Hold the session's lock while the block runs."""
    trusted_dir(os.path.dirname(path))
    lock = locked_in(path, LOCK, fcntl.LOCK_EX, sleep=sleep)
    if lock is None:
        raise SessionExists(session=os.path.basename(path))
    withhold(lock)
    try:
        yield lock
    finally:
        give_back(lock)
        os.close(lock)


def sessions(environ: Mapping[str, str]) -> list[FoundSession]:
    """Every session that has a directory, by name. Reads the runtime directory only; empty if another user owns it."""
    root = runtime_root(environ)
    return [_found(os.path.join(root, name), name) for name in names_here(environ)]


def names_here(environ: Mapping[str, str], begin: str = "") -> list[str]:
    """The names, sorted, of the sessions that have a directory here and whose name begins so; reads no record."""
    root = runtime_root(environ)
    if not is_own_directory(root):
        return []
    try:
        with os.scandir(root) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    return [
        name
        for name in names
        if name.startswith(begin) and not name.startswith(".") and os.path.exists(os.path.join(root, name, LOCK))
    ]


def _found(path: str, name: str) -> FoundSession:
    live = is_live(path)
    try:
        record = read_record(path) or SessionRecord(name, "", "claimed")
    except PodbotError:
        return FoundSession(name, "", None, live)
    state = observed(record.state, live=live)
    return FoundSession(name, record.endpoint, state, live, bool(record.untold), record.engine, record.leased)


def record_of(environ: Mapping[str, str], session: str) -> SessionRecord | None:
    """The record of a session of this user's; None if there is none that this podbot can read."""
    from podbot.launch.names import is_name  # imported here: `podbot ps` does not need it

    root = runtime_root(environ)
    path = os.path.join(root, session)
    if not is_name(session) or not all(map(is_own_directory, (os.path.dirname(root), root, path))):
        return None
    try:
        return read_record(path)
    except PodbotError:
        return None


def session_guest(environ: Mapping[str, str], session: str) -> tuple[SessionRecord, str] | None:
    """The record of a session of this user's, and the directory of its guest's socket; None if there is no socket."""
    record = record_of(environ, session)
    directory = record.guest if record is not None else None
    return (record, directory) if record is not None and directory is not None else None


def take_untold(path: str) -> list[Event]:
    """Remove and return the events that a helper process left in the session's record."""
    with contextlib.suppress(PodbotError):
        lock = locked_in(path, LOCK, fcntl.LOCK_EX)
        if lock is None:
            return []
        try:
            record = read_record(path)
            if record is not None and record.untold:
                write_record(path, replace(record, untold=()))
                return list(record.untold)
        finally:
            os.close(lock)
    return []


def guard_records(path: str) -> list[str]:
    """The records of the guard in a session's directory that have not been reported yet."""
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return []
    return [os.path.join(path, name) for name in names if name.startswith("guard.") and name.endswith(".record")]


def remove_reported(path: str) -> None:
    """Remove a session's directory, unless it has a record of the guard that has not been reported yet."""
    if not guard_records(path):
        remove_directory(path)


def remove_directory(path: str) -> None:
    """Remove a session's directory; a missing one, or a link, is ignored.

    It is renamed first, so that another podbot that takes the name meanwhile gets a new directory instead of one
    whose files are being removed.
    """
    from podbot.session.tree_removal import remove_tree  # here, because `podbot ps` needs none of it

    parent, name = os.path.split(path)
    aside = os.path.join(parent, f"{GONE}{name}-{os.urandom(4).hex()}")
    with contextlib.suppress(OSError):
        if not os.path.islink(path):
            os.rename(path, aside)
            remove_tree(aside)


def sweep(environ: Mapping[str, str]) -> None:
    """Finish the removals that a killed podbot had started."""
    root = runtime_root(environ)
    with contextlib.suppress(OSError):
        for name in os.listdir(root):
            if name.startswith(GONE):
                from podbot.session.tree_removal import remove_tree

                remove_tree(os.path.join(root, name))

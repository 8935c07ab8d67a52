"""``session.json``: what is known of a session, for this podbot process and later ones, and its states.

It is one document with a version, always replaced as a whole. It holds names of secrets, never their values. Reading
it imports no planning module, because `podbot ps` and `podbot exec` read it; ``plan_json`` decodes its ``plan``.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from podbot.atomic import replace_file
from podbot.errors import PathError, SessionRecordUnknown
from podbot.events import Event
from podbot.frozen import Frozen

if TYPE_CHECKING:
    from podbot.engine.port import Engine

RECORD = "session.json"
VERSION = 3
_LARGEST = 4 << 20  # bytes; a record takes a few KiB, and the kernel limits the length of a path or an identity
_FIRST = {"session", "endpoint", "kept", "untold"}  # every key of version 1
_TEXTS = ("session", "endpoint", "engine", "container", "created", "subcommand")
_LEVELS = ("debug", "info", "notice", "warning")

# The states, and the moves between them: docs/adr/0028-session-record.md.
State = Literal["claimed", "creating", "running", "stopped", "starting", "detached", "orphaned", "gone"]
STATES: tuple[State, ...] = get_args(State)
MOVES: Mapping[State, frozenset[State]] = {
    # A podbot holds the session's name; the engine has not been asked for a container.
    "claimed": frozenset({"creating", "orphaned", "gone"}),
    # The engine was asked for the container, which may exist.
    "creating": frozenset({"running", "orphaned", "gone"}),
    # The container runs, and a podbot process holds the session's lock.
    "running": frozenset({"stopped", "orphaned", "gone"}),
    # The container is kept, stopped.
    "stopped": frozenset({"starting", "gone"}),
    # `podbot start` is restarting it.
    "starting": frozenset({"detached", "stopped", "orphaned", "gone"}),
    # The container runs without a podbot process.
    "detached": frozenset({"stopped", "gone"}),
    # The podbot that ran it was killed.
    "orphaned": frozenset({"stopped", "gone"}),
    # There is no container any more.
    "gone": frozenset(),
}
_OWNED: frozenset[State] = frozenset({"claimed", "creating", "running", "starting"})
"""States in which a podbot process must hold the lock; if none does, it was killed."""


class SessionRecord(Frozen):
    """A session. ``endpoint``, ``engine``: address and kind of the engine that has its container, the kind empty in an
    older podbot's record; ``container``: its id, empty until it was created.

    ``created``: the time in the container's label. ``secrets``: names of the agent's secret variables. ``plan``: the
    public part of the sandbox's plan and its resources, see ``plan_json``; None for a record of version 1.
    ``untold``: events that have not been reported yet.
    """

    session: str
    endpoint: str
    state: State
    container: str = ""
    created: str = ""
    subcommand: str = "run"
    secrets: tuple[str, ...] = ()
    plan: Mapping[str, Any] | None = None
    untold: tuple[Event, ...] = ()
    engine: str = ""

    @property
    def never_ran(self) -> bool:
        """Whether no command of the caller's ran in it yet: such a session is never kept (``container``)."""
        return self.state == "creating"

    @property
    def guest(self) -> str | None:
        """The directory of its guest's socket on this host; None: it has no guest. Without planning's modules."""
        plan: Any = self.plan
        try:
            directory = plan["resources"]["guest"]["directory"] if plan["container"]["guest"] is not None else None
        except (KeyError, TypeError):
            return None
        return directory if isinstance(directory, str) else None

    @property
    def workspace(self) -> str:
        """The directory of this host that its commands can write to, or empty. Without planning's modules."""
        plan: Any = self.plan
        try:
            mount = plan["workspace"]
            source = "" if mount["read_only"] is not False else mount["source"]
        except (KeyError, TypeError):
            return ""
        return source if isinstance(source, str) else ""

    @property
    def leased(self) -> bool:
        """Whether its sandbox ends by itself when its podbot does. Without planning's modules."""
        plan: Any = self.plan
        try:
            return plan["resources"]["guest"]["leased"] is True and plan["container"]["guest"] is not None
        except (KeyError, TypeError):
            return False

    def limit_origin(self, name: str, value: int | None) -> str:
        """Where the limit of memory or of pids was set, if it is ``value``; empty if that is not known."""
        plan: Any = self.plan
        try:
            found = plan["limit_origins"][name] if plan["container"]["limits"][name] == value else ""
        except (KeyError, TypeError):  # TypeError: there is no plan
            return ""
        return found if isinstance(found, str) else ""

    def is_on(self, engine: Engine) -> bool:
        """Whether ``engine`` has the session's container."""
        return self.endpoint == engine.endpoint and self.engine in ("", engine.words.kind)


def as_json(record: SessionRecord) -> dict[str, Any]:
    """The record as a JSON document."""
    return {
        "version": VERSION,
        **{name: getattr(record, name) for name in _TEXTS},
        "state": record.state,
        "secrets": list(record.secrets),
        "plan": record.plan,
        "untold": [event._asdict() for event in record.untold],
    }


def from_json(document: object, session: str) -> SessionRecord:
    """The record of ``session`` in a parsed document. Raises ValueError with the reason when it is not valid."""
    found = document if isinstance(document, dict) else {"version": None}
    version = found.get("version", 1)
    if type(version) is not int or not 1 <= version <= VERSION:
        raise ValueError(f"it has version {str(version)[:20]}, and this podbot knows 1 to {VERSION}")
    record = _first(found) if version == 1 else _later(found, version)
    if record.session != session:
        raise ValueError("it belongs to another session")
    return record


def _first(document: Mapping[str, Any]) -> SessionRecord:
    """Version 1 had two states: kept, or owned by a running podbot when the record was written."""
    kept = document.get("kept")
    texts = document.get("session"), document.get("endpoint")
    if not (document.keys() <= _FIRST and isinstance(kept, bool) and all(isinstance(text, str) for text in texts)):
        raise ValueError("it is not shaped like a record")
    state: State = "stopped" if kept else "running"
    return SessionRecord(str(texts[0]), str(texts[1]), state, untold=as_events(document.get("untold", [])))


def _later(document: Mapping[str, Any], version: int) -> SessionRecord:
    """Version 3; version 2 did not name the kind of engine."""
    if version == 2 and "engine" not in document:
        document = {**document, "engine": ""}
    texts = {name: document.get(name) for name in _TEXTS}
    plan, secrets, state = document.get("plan"), document.get("secrets"), document.get("state")
    whole = (
        document.keys() == {"version", *_TEXTS, "state", "secrets", "plan", "untold"}
        and all(isinstance(text, str) for text in texts.values())
        and state in STATES
        and isinstance(secrets, list)
        and all(isinstance(name, str) for name in secrets)
        and (plan is None or isinstance(plan, dict))
    )
    if not whole:
        raise ValueError("it is not shaped like a record")
    return SessionRecord(
        **texts,  # type: ignore[arg-type] # checked above
        state=state,  # type: ignore[arg-type] # checked above
        secrets=tuple(secrets or ()),
        plan=plan,
        untold=as_events(document["untold"]),
    )


def as_events(found: object) -> tuple[Event, ...]:
    """Events of a parsed document. Raises ValueError for anything else."""
    events = []
    for item in found if isinstance(found, list) else [None]:
        if not isinstance(item, dict) or item.keys() != set(Event._fields):
            raise ValueError("its events are not shaped like events")
        event = Event(**item)
        if event.level not in _LEVELS or not all(isinstance(text, str) for text in (event.kind, event.message)):
            raise ValueError("its events are not shaped like events")
        events.append(event)
    return tuple(events)


def write_record(directory: str, record: SessionRecord) -> None:
    """Replace the record in ``directory``. Raises DiskFull, PathError."""
    data = json.dumps(as_json(record)).encode()
    replace_file(os.path.join(directory, RECORD), data, operation="write the session's record")


def read_record(directory: str, session: str = "") -> SessionRecord | None:
    """The record in ``directory``, or None. ``session`` defaults to the directory's name.

    Raises SessionRecordUnknown when this podbot cannot read the record, and PathError.
    """
    path = os.path.join(directory, RECORD)
    session = session or os.path.basename(directory)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise PathError(path=path, operation="read", reason=exc.strerror or str(exc)) from exc
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        data = file.read(_LARGEST) if stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() else b""
    try:
        return from_json(json.loads(data), session)
    except RecursionError:
        reason = "it is not a JSON object"
    except ValueError as exc:
        reason = "it is not a JSON object" if isinstance(exc, (json.JSONDecodeError, UnicodeError)) else str(exc)
    raise SessionRecordUnknown(session=session, path=path, reason=reason)


def moved(before: State, after: State) -> State:
    """``after``, if the move from ``before`` is allowed. Raises ValueError otherwise."""
    if after not in MOVES[before]:
        raise ValueError(f"a session that is {before} cannot become {after}")
    return after


def observed(recorded: State, *, live: bool) -> State:
    """The state of a session whose record says ``recorded``. ``live``: a process holds its lock."""
    return "orphaned" if recorded in _OWNED and not live else recorded

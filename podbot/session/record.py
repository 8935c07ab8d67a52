"""``session.json``: what is known of a session, for this podbot and for whichever comes after it.

One document with a version. It is replaced as a whole, and holds names of secrets, never their values. Reading it
imports nothing of the plan, because `podbot ps` and `podbot exec` read it; ``planned`` has what is in ``plan``.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podbot.atomic import replace_file
from podbot.errors import PathError, SessionRecordUnknown
from podbot.events import Event
from podbot.session.states import STATES, State

RECORD = "session.json"
VERSION = 2
_LARGEST = 4 << 20  # bytes; a record has some KiB, and an identity or a path is no longer than the kernel's limits
_FIRST = {"session", "endpoint", "kept", "untold"}  # all that version 1 could have
_TEXTS = ("session", "endpoint", "container", "created", "subcommand")
_LEVELS = ("debug", "info", "notice", "warning")


@dataclass(frozen=True)
class SessionRecord:
    """A session. ``endpoint``: the engine that has its container; ``container``: that one's id, empty until it runs.

    ``created``: as the container's label has it. ``secrets``: names of the agent's secret variables. ``plan``: the
    public part of the sandbox's plan and its resources, see ``planned``; None for a record of version 1.
    ``untold``: events that nobody has heard yet.
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


def as_json(record: SessionRecord) -> dict[str, Any]:
    """The document."""
    return {
        "version": VERSION,
        **{name: getattr(record, name) for name in _TEXTS},
        "state": record.state,
        "secrets": list(record.secrets),
        "plan": record.plan,
        "untold": [event._asdict() for event in record.untold],
    }


def from_json(document: object, session: str) -> SessionRecord:
    """The record of ``session`` in a parsed document. Raises ValueError, which says what is wrong with it."""
    found = document if isinstance(document, dict) else {"version": None}
    version = found.get("version", 1)
    if type(version) is not int or not 1 <= version <= VERSION:
        raise ValueError(f"it has version {str(version)[:20]}, and this podbot knows 1 to {VERSION}")
    record = _first(found) if version == 1 else _second(found)
    if record.session != session:
        raise ValueError("it is another session's")
    return record


def _first(document: Mapping[str, Any]) -> SessionRecord:
    """Version 1: a session that was kept, or one that its podbot had when it was written."""
    kept = document.get("kept")
    texts = document.get("session"), document.get("endpoint")
    if not (document.keys() <= _FIRST and isinstance(kept, bool) and all(isinstance(text, str) for text in texts)):
        raise ValueError("it is not shaped like a record")
    state: State = "stopped" if kept else "running"
    return SessionRecord(str(texts[0]), str(texts[1]), state, untold=_events(document.get("untold", [])))


def _second(document: Mapping[str, Any]) -> SessionRecord:
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
        **texts,  # type: ignore[arg-type] # texts, as was just seen
        state=state,  # type: ignore[arg-type] # one of them
        secrets=tuple(secrets or ()),
        plan=plan,
        untold=_events(document["untold"]),
    )


def _events(found: object) -> tuple[Event, ...]:
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
    """The record in ``directory``, None without one. ``session``: by default what the directory is called.

    Raises SessionRecordUnknown when it is not one that this podbot can read, and PathError.
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

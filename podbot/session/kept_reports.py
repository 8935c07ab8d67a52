"""Reports of hosted sessions, kept until `podbot report` shows them: an editor swallows the stderr of `podbot host`.

They are files in podbot's state directory, because the runtime directory is lost with the operator's login, and the
workspace is not. No sandbox can mount that directory. Each podbot that ends a session, or finds what one has left,
adds one file of that session if there is something to report, so a session can have several. What the agent could
choose in a file, such as names of files, is bounded here and made visible when shown.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from podbot.atomic import replace_file
from podbot.errors import AmbiguousName, FilesystemError, ReportNotFound, ReportsUnreadable
from podbot.events import Emit, Event
from podbot.frozen import Frozen
from podbot.guard.marks import GIT_OR_SHELL
from podbot.launch.names import names_meant
from podbot.places import is_own_directory, private_dir, state_dir
from podbot.session.record import as_events

if TYPE_CHECKING:
    from podbot.session.record import SessionRecord

MOST = 100  # reports; of more, those that were shown go first, then the oldest
LARGEST = 1 << 20  # bytes of one
_MESSAGE = 4096  # bytes of an event's message in the file
_REASONS, _REASON = 50, 1024  # how many of an event, and the bytes of each in the file
_NEW, _SHOWN = "new", "shown"  # how a file's name begins
_VERSION = 1


class KeptReport(Frozen):
    """What a session left. ``made``: when it was over, in seconds since the epoch; ``shown``: `podbot report` did."""

    session: str
    made: float
    shown: bool
    events: tuple[Event, ...]
    file: str  # its name in the store


def _store(environ: Mapping[str, str]) -> str:
    return os.path.join(state_dir(environ), "reports")


@contextlib.contextmanager
def keeping(environ: Mapping[str, str], session: str, emit: Emit, *, also: bool = False) -> Iterator[Emit]:
    """Yields a function for events that keeps those of a report, and passes the others to ``emit``.

    ``session``: whose they are unless they say so themselves. ``also``: pass them on as well. What cannot be kept is
    passed on, with a warning.
    """
    kept: dict[str, list[Event]] = {}

    def sorted_out(event: Event) -> None:
        ours = _is_of_a_report(event)
        if ours:
            kept.setdefault(str(event.fields.get("session") or session), []).append(event)
        if also or not ours:
            emit(event)

    try:
        yield sorted_out
    finally:
        for name, events in kept.items():
            try:
                keep_report(environ, name, events)
            except FilesystemError as exc:
                for event in () if also else events:
                    emit(event)
                text = f"the report of {name} could not be kept for `podbot report`: {exc.message}"
                emit(Event("warning", "report.not_kept", text, {"session": name}))


@contextlib.contextmanager
def reporting(environ: Mapping[str, str], record: SessionRecord, emit: Emit) -> Iterator[Emit]:
    """``emit``, or :func:`keeping` for a hosted session, about whose end some other command reports."""
    if record.subcommand != "host":
        yield emit
        return
    with keeping(environ, record.session, emit) as kept:
        yield kept


def _is_of_a_report(event: Event) -> bool:
    said = event.level in ("notice", "warning")
    return said and (event.kind.startswith("guard.") or event.kind in ("container.kept", "session.stuck"))


def keep_report(environ: Mapping[str, str], session: str, events: Sequence[Event]) -> None:
    """Keep a session's report. Raises FilesystemError subclasses."""
    directory = private_dir(_store(environ))
    too_many = _too_many(_names(directory))
    if dropped := sum(name.startswith(_NEW) for name in too_many):
        text = f"{dropped} older reports were dropped unread: {MOST} are kept"
        events = [Event("warning", "report.dropped", text, {"reports": dropped}), *events]
    made = time.time_ns()
    document = {
        "version": _VERSION,
        "session": session,
        "made": made / 1e9,
        "events": [event._asdict() for event in _fitting(events)],
    }
    path = os.path.join(directory, f"{_NEW}-{made:020d}-{session}.json")
    replace_file(path, json.dumps(document).encode(), operation="keep a session's report")
    for name in too_many:  # only now: where nothing can be written, nothing is lost
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(directory, name))


def _fitting(events: Sequence[Event]) -> list[Event]:
    """Those that fit into ``LARGEST``, with a count of the others; what says most comes first."""
    fitting, left = [], LARGEST - 4096
    for event in sorted(map(_bounded, events), key=_rank):
        size = len(json.dumps(event._asdict())) + 2
        if size <= left:
            left -= size
            fitting.append(event)
    if more := len(events) - len(fitting):
        text = f"{more} more findings and messages did not fit into this report"
        fitting.append(Event("warning", "report.cut", text, {"events": more}))
    return fitting


def _rank(event: Event) -> int:
    """The summary and the like, findings that act at once, what was not checked, then the other findings."""
    if event.kind == "guard.incomplete":
        return GIT_OR_SHELL + 1
    if event.kind != "guard.finding":
        return 0
    danger = event.fields.get("danger")
    return danger + 1 if isinstance(danger, int) and danger > GIT_OR_SHELL else GIT_OR_SHELL


def _bounded(event: Event) -> Event:
    """The agent chooses names, and so the length of what is said of them."""
    fields, reasons = event.fields, event.fields.get("reasons")
    if isinstance(reasons, list):
        more = [f"and {len(reasons) - _REASONS} more"] if len(reasons) > _REASONS else []
        fields = {**fields, "reasons": [*(_shortened(str(one), _REASON) for one in reasons[:_REASONS]), *more]}
    return event._replace(message=_shortened(event.message, _MESSAGE), fields=fields)


def _shortened(text: str, most: int) -> str:
    """``text``, or as much of its beginning as JSON can say in about ``most`` bytes."""
    kept = text[:most]
    while len(json.dumps(kept)) > most:
        kept = kept[: len(kept) * 3 // 4]
    return text if kept == text else f"{kept}…"


def _too_many(names: Sequence[str]) -> list[str]:
    """What has to go for one more report: first those that were shown, then the oldest."""
    ordered = sorted(names, key=lambda name: (name.startswith(_NEW), _when(name)))
    return ordered[: max(0, len(names) + 1 - MOST)]


def _names(directory: str) -> list[str]:
    """The files of reports, newest first; none if there is no such directory. Raises ReportsUnreadable."""
    try:
        os.lstat(directory)
        if not is_own_directory(directory):
            raise ReportsUnreadable(path=directory, reason="it is not a directory of this user")
        found = os.listdir(directory)
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise ReportsUnreadable(path=directory, reason=exc.strerror or str(exc)) from exc
    names = [name for name in found if name.partition("-")[0] in (_NEW, _SHOWN)]
    return sorted(names, key=_when, reverse=True)


def _when(name: str) -> str:
    return name.partition("-")[2]


def reported_sessions(environ: Mapping[str, str], begin: str = "") -> list[str]:
    """The names of the sessions with a kept report, sorted, that begin so; reads no report.

    Raises ReportsUnreadable.
    """
    found = {_session(name) for name in _names(_store(environ))}
    return sorted(name for name in found if name.startswith(begin))


def _session(name: str) -> str:
    return _when(name).partition("-")[2].removesuffix(".json")


def kept_reports(environ: Mapping[str, str], session: str | None = None, *, shown: bool = False) -> list[KeptReport]:
    """The kept reports, newest first, that were not shown yet; with ``shown``, and of a named session, all.

    ``session``: its name, or a part of it that means no other with a report. One that cannot be read says so.
    Raises ReportNotFound, AmbiguousName and ReportsUnreadable.
    """
    directory = _store(environ)
    wanted = None if session is None else _meant(environ, session)
    found = (
        _read(directory, name)
        for name in _names(directory)
        if (_session(name) == wanted if wanted is not None else shown or name.startswith(_NEW))
    )
    return [report for report in found if report is not None]


def _meant(environ: Mapping[str, str], given: str) -> str:
    meant = names_meant(given, reported_sessions(environ))
    if not meant:
        raise ReportNotFound(session=given)
    if len(meant) > 1:
        raise AmbiguousName.among(given, meant)
    return meant[0]


def _read(directory: str, name: str) -> KeptReport | None:
    """The report in that file; None if another podbot has removed it since it was listed."""
    session, shown = _session(name), name.startswith(_SHOWN)
    try:
        descriptor = os.open(os.path.join(directory, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            data = file.read(LARGEST + 1) if stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() else b""
        return _parsed(json.loads(data), session, shown, name)
    except FileNotFoundError:  # perhaps because another `podbot report` has shown it
        return None if shown else _read(directory, _as_shown(name))
    except (OSError, ValueError, RecursionError):
        text = f"the kept report of {session} cannot be read: {os.path.join(directory, name)}"
        event = Event("warning", "guard.incomplete", text, {"session": session, "reasons": [text]})
        return KeptReport(session, 0.0, shown, (event,), name)


def _parsed(document: object, session: str, shown: bool, name: str) -> KeptReport:  # noqa: FBT001 - one caller
    """Raises ValueError for anything that is not a report of ``session``."""
    if not isinstance(document, dict) or document.get("version") != _VERSION or document.get("session") != session:
        raise ValueError("it is not a report of that session")
    made = document.get("made")
    if not isinstance(made, float) or not math.isfinite(made):
        raise ValueError("its time is not a number")
    return KeptReport(session, made, shown, as_events(document.get("events")), name)


def mark_shown(environ: Mapping[str, str], reports: Sequence[KeptReport]) -> None:
    """They were shown: `podbot report` does not show them again unless asked to."""
    directory = _store(environ)
    for report in reports:
        if not report.shown:
            with contextlib.suppress(OSError):  # another `podbot report` was faster
                os.rename(os.path.join(directory, report.file), os.path.join(directory, _as_shown(report.file)))


def _as_shown(name: str) -> str:
    return _SHOWN + name.removeprefix(_NEW)


def tell_waiting(environ: Mapping[str, str], emit: Emit) -> None:
    """Say how many reports wait to be shown, in one line; nothing if none does. Costs one listing.

    A store that cannot be listed is a warning, and prevents nothing.
    """
    try:
        count = sum(name.startswith(_NEW) for name in _names(_store(environ)))
    except ReportsUnreadable as exc:
        emit(Event("warning", "report.unreadable", exc.message, exc.fields))
        return
    if count:
        what = "a hosted session has left a report" if count == 1 else f"{count} hosted sessions have left reports"
        emit(Event("notice", "report.waiting", f"{what}: `podbot report`", {"reports": count}))

"""The reports of hosted sessions that are kept until they are shown."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import AmbiguousName, DiskFull, ReportNotFound, ReportsUnreadable, UnsafeDirectory
from podbot.events import Event
from podbot.guard.marks import Finding, GuardReport
from podbot.guard.render import events as rendered
from podbot.session.kept_reports import (
    LARGEST,
    MOST,
    KeptReport,
    keep_report,
    keeping,
    kept_reports,
    mark_shown,
    reported_sessions,
    reporting,
    tell_waiting,
)
from podbot.session.record import SessionRecord
from tests.faults import full_disk

FOUND = Event("warning", "guard.finding", ".envrc: new", {"session": "shop", "danger": 1, "path": ".envrc"})
DEBUG = Event("debug", "guard.end", "checked 3 entries", {"session": "shop"})
KEPT = Event("notice", "container.kept", "kept the sandbox", {"session": "shop"})
EMOJI = "\U0001f600"  # 12 bytes in JSON
OTHER = Event("notice", "session.removed", "removed", {"session": "shop"})


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path)}


def directory(environ: dict[str, str]) -> Path:
    return Path(environ["XDG_STATE_HOME"], "podbot", "reports")


def names(found: list[KeptReport]) -> list[str]:
    return [report.session for report in found]


def test_the_newest_comes_first_and_each_is_new_until_it_was_shown(environ: dict[str, str]) -> None:
    assert kept_reports(environ) == []
    for session in ("a", "b", "a"):
        keep_report(environ, session, [FOUND])
    found = kept_reports(environ)
    assert names(found) == ["a", "b", "a"]
    assert found[0].events == (FOUND,)
    assert found[0].made > found[1].made > found[2].made
    mark_shown(environ, found[:2])
    mark_shown(environ, found[:2])  # as by two processes at once
    assert names(kept_reports(environ)) == ["a"]
    assert [report.shown for report in kept_reports(environ, shown=True)] == [True, True, False]
    assert [report.shown for report in kept_reports(environ, "a")] == [True, False]


def test_only_the_operator_can_read_the_store(environ: dict[str, str]) -> None:
    keep_report(environ, "a", [FOUND])
    assert stat.S_IMODE(directory(environ).stat().st_mode) == 0o700
    (file,) = directory(environ).iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_beginning_of_a_name_is_enough(environ: dict[str, str]) -> None:
    for session in ("shop", "shop-2", "api-1", "new-2026-x", "podbot-notes-1a2b3c"):
        keep_report(environ, session, [])
    assert names(kept_reports(environ, "api")) == ["api-1"]
    assert names(kept_reports(environ, "shop")) == ["shop"]
    assert names(kept_reports(environ, "notes")) == ["podbot-notes-1a2b3c"]
    assert names(kept_reports(environ, "new-2")) == ["new-2026-x"]
    with pytest.raises(AmbiguousName, match="shop, shop-2"):
        kept_reports(environ, "sho")
    for unknown in ("nothing", "", "../shop"):
        with pytest.raises(ReportNotFound):
            kept_reports(environ, unknown)
    assert reported_sessions(environ, "s") == ["shop", "shop-2"]


def test_events_of_a_report_are_kept_and_the_others_passed_on(environ: dict[str, str]) -> None:
    passed: list[Event] = []
    nameless = FOUND._replace(fields={})
    with keeping(environ, "host", passed.append) as emit:
        for event in (FOUND, DEBUG, KEPT, OTHER, nameless):
            emit(event)
    assert passed == [DEBUG, OTHER]
    assert {report.session: report.events for report in kept_reports(environ)} == {
        "shop": (KEPT, FOUND),
        "host": (nameless,),
    }


def test_they_can_be_passed_on_as_well(environ: dict[str, str]) -> None:
    passed: list[Event] = []
    with contextlib.suppress(KeyboardInterrupt), keeping(environ, "shop", passed.append, also=True) as emit:
        emit(FOUND)
        raise KeyboardInterrupt
    assert passed == [FOUND]
    assert names(kept_reports(environ)) == ["shop"]


def test_a_finding_is_passed_on_where_the_reports_cannot_be_listed(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_path: str) -> list[str]:
        raise OSError(errno.EMFILE, "Too many open files")

    keep_report(environ, "shop", [FOUND])
    monkeypatch.setattr(os, "listdir", refuses)  # a process that has used up its descriptors
    passed: list[Event] = []
    with keeping(environ, "shop", passed.append) as emit:
        emit(FOUND)
    assert [event.kind for event in passed] == ["guard.finding", "report.not_kept"]


@pytest.mark.parametrize("also", [False, True])
def test_what_cannot_be_kept_is_passed_on(environ: dict[str, str], also: bool) -> None:
    directory(environ).parent.mkdir()
    directory(environ).touch()
    passed: list[Event] = []
    with keeping(environ, "shop", passed.append, also=also) as emit:
        emit(FOUND)
    assert passed[0] == FOUND
    assert [event.kind for event in passed] == ["guard.finding", "report.not_kept"]
    with pytest.raises(UnsafeDirectory):
        keep_report(environ, "shop", [FOUND])


@pytest.mark.parametrize(("subcommand", "kept"), [("host", ["shop"]), ("run", [])])
def test_only_hosted_sessions_have_a_kept_report(environ: dict[str, str], subcommand: str, kept: list[str]) -> None:
    passed: list[Event] = []
    with reporting(environ, SessionRecord("shop", "e", "orphaned", subcommand=subcommand), passed.append) as emit:
        emit(FOUND)
    assert names(kept_reports(environ)) == kept
    assert passed == ([] if kept else [FOUND])


def test_a_session_cannot_fill_the_store(environ: dict[str, str]) -> None:
    """One file, of bounded size; what the summary says is kept before single findings."""
    found = [Finding(1, f"{'é' * 900}{number}", "x" * 300, "new", "git", "why") for number in range(9000)]
    with keeping(environ, "shop", lambda _: None) as emit:
        for event in rendered(GuardReport(tuple(found), gaps=("a gap",)), "shop", "/w"):
            emit(event)
    (file,) = directory(environ).iterdir()
    assert file.stat().st_size <= LARGEST
    (report,) = kept_reports(environ)
    kinds = [event.kind for event in report.events]
    assert kinds[0] == "guard.summary"
    assert "a gap" in next(event.message for event in report.events if event.kind == "guard.incomplete")
    listed = kinds.count("guard.finding")
    assert 0 < listed < 9000
    assert report.events[-1].message == f"{9000 - listed} more findings and messages did not fit into this report"


def test_long_gaps_do_not_push_out_a_finding(environ: dict[str, str]) -> None:
    gaps = tuple(f"{number}{EMOJI * 290} could not be read" for number in range(200))
    finding = Finding(1, ".git/config", "core.fsmonitor", "new", "git", "why")
    with keeping(environ, "shop", lambda _: None) as emit:
        for event in rendered(GuardReport((finding,), gaps=gaps), "shop", "/w"):
            emit(event)
    (report,) = kept_reports(environ)
    assert [event.kind for event in report.events] == [
        "guard.summary",
        "guard.summary",
        "guard.finding",
        "guard.incomplete",
    ]
    gap = report.events[-1]
    assert len(json.dumps(gap.message)) < 5000
    assert len(gap.fields["reasons"]) == 51
    assert gap.fields["reasons"][-1] == "and 150 more"
    assert len(json.dumps(gap.fields["reasons"])) < 51 * 1100


def test_the_most_dangerous_findings_are_kept(environ: dict[str, str]) -> None:
    """Of several records of one session the order is by record, not by danger."""
    many = [FOUND._replace(fields={"danger": 4, "path": "p" * 1000, "number": number}) for number in range(1700)]
    gap = Event("warning", "guard.incomplete", "a gap", {"reasons": ["a gap"]})
    small = FOUND._replace(fields={"danger": 3})
    keep_report(environ, "shop", [*many, gap, FOUND, KEPT, small])
    events = kept_reports(environ)[0].events
    assert events[:4] == (KEPT, FOUND, gap, small)
    assert events[-1].kind == "report.cut"
    assert events[-1].fields == {"events": 1704 - (len(events) - 1)}


def test_an_event_that_does_not_fit_is_skipped(environ: dict[str, str]) -> None:
    keep_report(environ, "shop", [FOUND._replace(fields={"danger": 1, "path": "p" * LARGEST}), FOUND])
    assert [event.kind for event in kept_reports(environ)[0].events] == ["guard.finding", "report.cut"]


def test_reports_that_were_shown_make_room_first(environ: dict[str, str]) -> None:
    for number in range(MOST):
        keep_report(environ, f"s{number}", [FOUND])
    mark_shown(environ, kept_reports(environ, "s50"))
    keep_report(environ, "more", [FOUND])
    assert names(kept_reports(environ, shown=True)) == ["more", *(f"s{n}" for n in reversed(range(MOST)) if n != 50)]
    assert kept_reports(environ, "more")[0].events == (FOUND,)
    keep_report(environ, "again", [FOUND])
    assert len(kept_reports(environ, shown=True)) == MOST
    assert [event.kind for event in kept_reports(environ, "again")[0].events] == ["report.dropped", "guard.finding"]
    assert reported_sessions(environ, "s0") == []


def test_nothing_is_dropped_where_nothing_can_be_written(environ: dict[str, str]) -> None:
    for number in range(MOST):
        keep_report(environ, f"s{number}", [FOUND])
    with full_disk(), pytest.raises(DiskFull):
        keep_report(environ, "more", [FOUND])
    assert len(kept_reports(environ)) == MOST
    assert reported_sessions(environ, "s0") == ["s0"]


@pytest.mark.parametrize("removed", [False, True])
def test_two_commands_at_once(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, removed: bool) -> None:
    """Between the listing and the reading of one, the other shows a report, or a third removes it."""
    keep_report(environ, "a", [FOUND])
    keep_report(environ, "b", [FOUND])
    listdir = os.listdir

    def then_the_other(path: str) -> list[str]:
        found = listdir(path)
        monkeypatch.setattr(os, "listdir", listdir)
        mark_shown(environ, kept_reports(environ, "a"))
        for file in directory(environ).glob("shown-*") if removed else ():
            file.unlink()
        return found

    monkeypatch.setattr(os, "listdir", then_the_other)
    found = kept_reports(environ)
    assert [(report.session, report.shown, report.events) for report in found] == [
        ("b", False, (FOUND,)),
        *([] if removed else [("a", True, (FOUND,))]),
    ]


def unusable(environ: dict[str, str], how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the store one that is there, but cannot be listed, even by root."""
    keep_report(environ, "a", [FOUND])
    store = directory(environ)
    if how == "link":
        store.rename(store.parent / "moved")
        store.symlink_to(store.parent / "moved")
    elif how == "dangling":
        store.rename(store.parent / "moved")
        store.symlink_to(store.parent / "gone")
    elif how == "file":
        store.rename(store.parent / "moved")
        store.touch()
    elif how == "parent":
        store.parent.rename(store.parents[1] / "moved")
        store.parent.touch()
    else:

        def denied(path: str) -> list[str]:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

        monkeypatch.setattr(os, "listdir", denied)


@pytest.mark.parametrize("how", ["link", "dangling", "file", "parent", "denied"])
def test_a_store_that_cannot_be_listed_is_not_an_empty_one(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    unusable(environ, how, monkeypatch)
    for ask in (kept_reports, reported_sessions):
        with pytest.raises(ReportsUnreadable, match="cannot be read") as caught:
            ask(environ)
        assert caught.value.path == str(directory(environ))
    said: list[Event] = []
    tell_waiting(environ, said.append)  # which must not fail a start
    assert [(event.level, event.kind) for event in said] == [("warning", "report.unreadable")]


def test_one_line_says_how_many_wait(environ: dict[str, str]) -> None:
    said: list[Event] = []
    tell_waiting(environ, said.append)
    keep_report(environ, "a", [FOUND])
    tell_waiting(environ, said.append)
    keep_report(environ, "b", [FOUND])
    tell_waiting(environ, said.append)
    mark_shown(environ, kept_reports(environ))
    tell_waiting(environ, said.append)
    assert [event.message for event in said] == [
        "a hosted session has left a report: `podbot report`",
        "2 hosted sessions have left reports: `podbot report`",
    ]


WHOLE = {"version": 1, "session": "a", "made": 1.0, "events": []}
CHANGES: list[dict[str, Any]] = [{"version": 2}, {"session": "b"}, {"events": [1]}]
TIMES = [1, math.nan, math.inf, -math.inf]
MALFORMED = [
    b"",
    b"[]",
    b"{}",
    b"\xff",
    b"[" * 100_000,
    *(json.dumps({**WHOLE, **change}).encode() for change in (*CHANGES, *({"made": time} for time in TIMES))),
]


@pytest.mark.parametrize("data", MALFORMED)
def test_a_report_that_cannot_be_read_says_so(environ: dict[str, str], data: bytes) -> None:
    keep_report(environ, "a", [FOUND])
    (file,) = directory(environ).iterdir()
    file.write_bytes(data)
    (report,) = kept_reports(environ)
    assert [event.kind for event in report.events] == ["guard.incomplete"]
    assert "cannot be read" in report.events[0].message


@pytest.mark.parametrize("what", ["link", "fifo", "directory"])
def test_only_regular_files_are_read(environ: dict[str, str], what: str) -> None:
    keep_report(environ, "a", [FOUND])
    (file,) = directory(environ).iterdir()
    moved = directory(environ).parent / "elsewhere"
    file.rename(moved)
    if what == "link":
        file.symlink_to(moved)
    elif what == "fifo":
        os.mkfifo(file)
    else:
        file.mkdir()
    assert "cannot be read" in kept_reports(environ)[0].events[0].message


VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), st.lists, max_leaves=4)
DOCUMENTS = st.dictionaries(st.sampled_from(["version", "session", "made", "events", "x"]), VALUES)


@given(DOCUMENTS | VALUES)
def test_no_document_is_more_than_unreadable(tmp_path_factory: pytest.TempPathFactory, document: Any) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path_factory.mktemp("state"))}
    keep_report(environ, "a", [FOUND])
    (file,) = directory(environ).iterdir()
    file.write_text(json.dumps(document))
    (report,) = kept_reports(environ)
    assert report.session == "a"


def test_other_files_are_ignored(environ: dict[str, str]) -> None:
    keep_report(environ, "a", [FOUND])
    (directory(environ) / "old-1-a.json").touch()
    assert names(kept_reports(environ, shown=True)) == ["a"]

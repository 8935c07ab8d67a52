"""The reports of hosted sessions that are kept until they are shown."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import AmbiguousName, ReportNotFound, UnsafeDirectory
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

FOUND = Event("warning", "guard.finding", ".envrc: new", {"session": "shop", "danger": 1, "path": ".envrc"})
DEBUG = Event("debug", "guard.end", "checked 3 entries", {"session": "shop"})
KEPT = Event("notice", "container.kept", "kept the sandbox", {"session": "shop"})
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
    for session in ("shop", "shop-2", "api-1", "new-2026-x"):
        keep_report(environ, session, [])
    assert names(kept_reports(environ, "api")) == ["api-1"]
    assert names(kept_reports(environ, "shop")) == ["shop"]
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
    """One session, one file, of bounded size; what the summary says is kept before single findings."""
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
    assert report.events[-1].message == f"{9000 - listed} more findings were too many to be kept one by one"


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
CHANGES: list[dict[str, Any]] = [{"version": 2}, {"session": "b"}, {"made": 1}, {"events": [1]}]
MALFORMED = [
    b"",
    b"[]",
    b"{}",
    b"\xff",
    b"[" * 100_000,
    *(json.dumps({**WHOLE, **change}).encode() for change in CHANGES),
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

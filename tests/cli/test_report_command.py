"""``podbot report``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from podbot.cli.entry import main
from podbot.events import Event
from podbot.session.kept_reports import keep_report
from podbot.testing import FakeEngine
from tests.cli.test_guard_exit import HOOK, MAKEFILE
from tests.session.plans import Place

HEADER = Event("notice", "guard.summary", "after this session 1 new item acts, in /w:", {"session": "shop"})
LINE = Event("notice", "guard.summary", "  when built: Make\x1b]0;file\u202e", {"session": "shop"})
KEPT = Event("notice", "container.kept", "kept the sandbox shop", {"session": "shop", "unsaved": "1 file"})
GAP = Event("warning", "guard.incomplete", "podbot could not check all of /w", {"session": "shop", "workspace": "/w"})
UNNAMED = Event("warning", "guard.unnamed", "2 more", {"session": "shop", "workspace": "/w", "findings": 2})
CUT = Event("warning", "report.cut", "3 more", {"events": 3})
DROPPED = Event("warning", "report.dropped", "1 older", {"reports": 1})


def finding(found: object) -> Event:
    fields = {"session": "shop", "workspace": "/w", **found._asdict()}  # type: ignore[attr-defined]
    return Event("notice", "guard.finding", "one", fields)


def keep(*events: Event, session: str = "shop") -> None:
    keep_report(os.environ, session, events)


def test_it_is_shown_once_as_plain_text(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 0
    assert capsys.readouterr().err.startswith("podbot: no hosted session has left a report")
    keep(KEPT, session="api")
    keep(HEADER, LINE, finding(MAKEFILE))
    assert main(["report"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.splitlines() == [
        "shop, just now:",
        "after this session 1 new item acts, in /w:",
        "  when built: Make\\x1b]0;file\\u202e",
        "",
        "api, just now:",
        "kept the sandbox shop",
    ]
    assert main(["report", "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["report", "--all"]) == 0
    assert capsys.readouterr().out == shown.out
    assert main(["report", "sh"]) == 0
    assert "Make" in capsys.readouterr().out


def test_programs_get_every_finding_and_no_summary(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    keep(HEADER, finding(HOOK), Event("notice", "guard.finding", "two", {"level": "x", "kind": "y", "message": "z"}))
    assert main(["report", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert (report["session"], report["shown"]) == ("shop", False)
    assert [(event["kind"], event["message"]) for event in report["events"]] == [
        ("guard.finding", "one"),
        ("guard.finding", "two"),
    ]
    assert report["events"][0]["path"] == HOOK.path


@pytest.mark.parametrize(
    ("event", "code"),
    [(finding(HOOK), 3), (finding(MAKEFILE), 0), (KEPT, 0), (GAP, 3), (UNNAMED, 3), (CUT, 3), (DROPPED, 3)],
)
def test_the_exit_code_can_tell_what_acts_at_once(
    place: Place, capsys: pytest.CaptureFixture[str], event: Event, code: int
) -> None:
    keep(event)
    for _ in range(2):  # a script that asks again before anybody has looked gets the same answer
        assert main(["report", "--guard-exit"]) == code
    assert main(["report"]) == 0
    assert main(["report", "--guard-exit"]) == 0  # it was shown
    assert main(["report", "--guard-exit", "shop"]) == code


def test_what_is_no_failure_counts_as_shown(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    keep(finding(HOOK), session="bad")
    keep(finding(MAKEFILE), session="good")
    assert main(["report", "--guard-exit"]) == 3
    assert capsys.readouterr().out.startswith("good")
    assert main(["report"]) == 0
    assert capsys.readouterr().out == "bad, just now:\n"


def test_what_acts_is_named_before_what_is_not_known(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    keep(finding(HOOK))
    keep(GAP)
    assert main(["report", "--guard-exit"]) == 3
    assert HOOK.path in capsys.readouterr().err


def test_a_store_that_cannot_be_listed_is_a_failure(
    place: Place, engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Path(place.environ["XDG_STATE_HOME"], "podbot", "reports")
    store.parent.mkdir(parents=True, exist_ok=True)
    store.touch()
    assert main(["report"]) == 1
    said = capsys.readouterr().err
    assert f"{store} cannot be read" in said
    assert "mode 0700" in said
    assert main(["report", "--guard-exit"]) == 3
    assert f"{store} cannot be read" in capsys.readouterr().err
    assert main(["ps"]) == 0
    assert f"{store} cannot be read" in capsys.readouterr().err


def test_mistakes(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "nobody"]) == 1
    assert "`podbot report --all` shows all" in capsys.readouterr().err
    assert main(["report", "shop", "--all"]) == 2


def test_ps_names_the_command(place: Place, engine: FakeEngine, capsys: pytest.CaptureFixture[str]) -> None:
    keep(GAP)
    for _ in range(2):
        assert main(["ps"]) == 0
        assert capsys.readouterr().err == "podbot: a hosted session has left a report: `podbot report`\n"
    assert main(["report"]) == 0
    capsys.readouterr()
    assert main(["ps"]) == 0
    assert capsys.readouterr().err == ""

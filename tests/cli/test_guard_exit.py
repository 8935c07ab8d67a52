"""``podbot run --guard-exit``, and the display of findings."""

from __future__ import annotations

import json

import pytest

from podbot.cli.globals import Globals
from podbot.cli.report import Reporter
from podbot.cli.run import check_guard_exit, check_left
from podbot.config.models import AppConfig, WorkspaceConfig
from podbot.errors import GuardTripped, UsageError
from podbot.events import Event
from podbot.guard.marks import Finding, GuardReport

HOOK = Finding(1, ".git/hooks/pre-commit", "", "new", "git", "why")
MAKEFILE = Finding(4, "Makefile", "", "new", "make", "why")


def test_a_file_that_runs_at_git_status_is_a_failure() -> None:
    with pytest.raises(GuardTripped) as caught:
        check_left(GuardReport((HOOK, HOOK, MAKEFILE)), "/w")
    assert caught.value.exit_code == 3
    assert ".git/hooks/pre-commit and 1 more act as soon as you run `git status` or `cd`" in caught.value.message


@pytest.mark.parametrize("report", [GuardReport(), GuardReport((MAKEFILE,))])
def test_other_classes_are_no_failure(report: GuardReport) -> None:
    check_left(report, "/w")


@pytest.mark.parametrize(
    "report", [None, GuardReport(gaps=("it took longer than 5 s",)), GuardReport((MAKEFILE,), more=1)]
)
def test_what_was_not_looked_at_is_a_failure(report: GuardReport | None) -> None:
    with pytest.raises(GuardTripped, match="could not check all"):
        check_left(report, "/w")


def config(source: str, guard: str) -> AppConfig:
    return AppConfig(workspace=WorkspaceConfig(source=source, guard=guard))  # type: ignore[arg-type]


@pytest.mark.parametrize(("source", "guard"), [("github_clone", "report"), ("host_mount", "off")])
def test_it_is_refused_where_nothing_is_scanned(source: str, guard: str) -> None:
    with pytest.raises(UsageError, match="--guard-exit with"):
        check_guard_exit(config(source, guard), asked=True)
    check_guard_exit(config(source, guard), asked=False)
    check_guard_exit(config("host_mount", "report"), asked=True)


def test_people_get_a_block_and_programs_one_event_for_each_finding(capsys: pytest.CaptureFixture[str]) -> None:
    events = [
        Event("warning", "guard.finding", "one", {"path": "a\x1b[2J"}),
        Event("notice", "guard.summary", "a line\x1b"),
    ]
    for log_format in ("text", "json"):
        report = Reporter(Globals(log_format=log_format))
        for event in events:
            report(event)
    text, found = capsys.readouterr().err.splitlines()
    assert text == "podbot: a line\\x1b"
    assert json.loads(found) == {"level": "warning", "kind": "guard.finding", "message": "one", "path": "a\x1b[2J"}

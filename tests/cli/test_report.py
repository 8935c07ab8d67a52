from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.cli.globals import Globals
from podbot.cli.report import Reporter, printable, report_error, say
from podbot.errors import ContainerNotFound
from podbot.events import Event, Level

Capture = pytest.CaptureFixture[str]
LEVELS: tuple[Level, ...] = ("debug", "info", "notice", "warning")


def shown(capsys: Capture, g: Globals, *, progress: bool = False) -> list[str]:
    report = Reporter(g, progress=progress)
    for level in LEVELS:
        report(Event(level, "a.kind", f"a {level}"))
    report.clear()
    captured = capsys.readouterr()
    assert captured.out == "", "podbot's own words go to stderr"
    return captured.err.splitlines()


def test_what_everybody_sees(capsys: Capture) -> None:
    assert shown(capsys, Globals()) == ["podbot: a notice", "podbot: a warning"]


def test_progress_and_detail_are_asked_for(capsys: Capture) -> None:
    rest = ["podbot: a info", "podbot: a notice", "podbot: a warning"]
    assert shown(capsys, Globals(), progress=True) == rest
    assert shown(capsys, Globals(verbose=1)) == ["podbot: a debug", *rest]


def test_json_lines(capsys: Capture) -> None:
    report = Reporter(Globals(log_format="json"))
    report(Event("notice", "container.kept", "kept\nit", {"session": "s", "level": "forged", "path": b"x"}))
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line) == {
        "level": "notice",
        "kind": "container.kept",
        "message": "kept\nit",
        "session": "s",
        "path": "b'x'",
    }


def test_a_spinner_on_a_terminal_is_gone_when_the_agent_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    report = Reporter(Globals(), progress=True)
    report(Event("info", "container.create", "creating [bold]x"))
    assert report._status is not None
    report(Event("info", "agent.start", "starting"))
    assert report._status is None


def test_an_error_shows_no_control_characters(capsys: Capture) -> None:
    report_error(ContainerNotFound(container="a\x1b]0;x\x07\x9b\x7f\rz"), Globals())
    assert capsys.readouterr().err.startswith("podbot: there is no container a\\x1b]0;x\\x07\\x9b\\x7f\\rz. ")


@given(st.text())
def test_printable_text_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    found = printable(text)
    assert found.isprintable()
    if text.isprintable() and text.isascii():
        assert found == text


def test_a_closed_stderr_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        say("x")
        Reporter(Globals())(Event("notice", "k", "m"))

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import select
import threading
from collections.abc import Callable, Iterator
from typing import Literal

import pytest

from podbot.cli.globals import Globals
from podbot.cli.report import Patience, Reporter, later, report_error, say
from podbot.errors import ContainerNotFound
from podbot.events import Event, Level
from podbot.streams.terminal import raw_mode
from tests.streams.plumbing import in_thread, pipes
from tests.waiting import HANG, attempts, pause

Capture = pytest.CaptureFixture[str]
HIDDEN, CURSOR = "\x1b[?25l", "\x1b[?25h"  # a spinner hides the cursor
LEVELS: tuple[Level, ...] = ("debug", "info", "notice", "warning")


def shown(capsys: Capture, g: Globals, *, progress: bool = False) -> list[str]:
    report = Reporter(g, progress=progress)
    for level in LEVELS:
        report(Event(level, "a.kind", f"a {level}"))
    report.clear()
    captured = capsys.readouterr()
    assert captured.out == "", "podbot's own words go to stderr"
    return captured.err.splitlines()


def test_messages_that_everybody_sees(capsys: Capture) -> None:
    assert shown(capsys, Globals()) == ["podbot: a notice", "podbot: a warning"]


def test_progress_and_details_need_an_option(capsys: Capture) -> None:
    rest = ["podbot: a info", "podbot: a notice", "podbot: a warning"]
    assert shown(capsys, Globals(), progress=True) == rest
    assert shown(capsys, Globals(verbose=1)) == ["podbot: a debug", *rest]


def test_a_note_names_the_command_that_shows_a_page(capsys: Capture) -> None:
    report = Reporter(Globals())
    report(Event("notice", "plan.note", "set up an App (page how-to/clone-from-github of the documentation)"))
    assert capsys.readouterr().err == "podbot: set up an App (`podbot docs how-to/clone-from-github`)\n"


class Alarm:
    """Stands for ``later``: what it was asked to call, and whether that was cancelled."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.cancelled = 0

    def __call__(self, seconds: float, call: Callable[[], None]) -> Callable[[], None]:
        self.calls.append(call)
        return self._cancel

    def _cancel(self) -> None:
        self.cancelled += 1


STOPPING = Event("info", "session.stop", "stopping shop", {"session": "shop", "next": "site"})


def test_late_progress_is_shown_when_a_second_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    alarm = Alarm()
    with contextlib.redirect_stderr(Terminal()) as shown:
        report = Reporter(Globals(), late=True, after=alarm)
        report(STOPPING)
        assert not shown.getvalue()
        (ring,) = alarm.calls
        ring()
        assert HIDDEN in shown.getvalue()
        report(STOPPING._replace(message="stopping site", fields={"next": "blog"}))
        assert len(alarm.calls) == 1, "the line is there, and only changes"
        report.clear()  # draws it a last time
    assert "stopping site (next: blog)" in shown.getvalue()
    assert CURSOR in shown.getvalue()


def test_late_progress_of_what_was_quick_is_never_shown() -> None:
    alarm = Alarm()
    with contextlib.redirect_stderr(Terminal()) as shown:
        report = Reporter(Globals(), late=True, after=alarm)
        report(STOPPING)
        report.clear()
        assert alarm.cancelled == 1
        alarm.calls[0]()  # in this very moment: it waited for the lock
        assert shown.getvalue() == ""


def test_late_progress_goes_on_after_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    alarm = Alarm()
    with contextlib.redirect_stderr(Terminal()) as shown:
        report = Reporter(Globals(), late=True, after=alarm)
        report(STOPPING)
        report(Event("notice", "container.kept", "kept site"))
        first, second = alarm.calls
        first()  # it was cancelled while it waited for the lock
        assert shown.getvalue() == "podbot: kept site\n"
        second()
        assert HIDDEN in shown.getvalue()
        report.clear()
    assert "stopping shop (next: site)" in shown.getvalue()


def test_a_stderr_that_was_closed_ends_late_progress() -> None:
    class Closed(Terminal):
        def write(self, text: str) -> int:
            raise OSError

    alarm = Alarm()
    with contextlib.redirect_stderr(Closed()):
        report = Reporter(Globals(), late=True, after=alarm)
        report(STOPPING)
        alarm.calls[0]()


def test_late_progress_is_for_a_terminal_alone(capsys: Capture) -> None:
    report = Reporter(Globals(), late=True)
    report(STOPPING)
    report.clear()
    assert capsys.readouterr().err == ""


def test_what_is_asked_for_later_is_called_once_or_not_at_all() -> None:
    called = threading.Event()
    later(0, called.set)
    assert called.wait(HANG)
    before = set(threading.enumerate())
    cancel = later(HANG, pytest.fail)
    (timer,) = set(threading.enumerate()) - before
    cancel()
    timer.join(HANG)
    assert not timer.is_alive()


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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_spinner_on_a_terminal_is_gone_when_the_agent_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with contextlib.redirect_stderr(Terminal()) as shown:
        report = Reporter(Globals(), progress=True)
        report(Event("info", "container.create", "creating [bold]x"))
        assert HIDDEN in shown.getvalue()
        assert CURSOR not in shown.getvalue()
        report(Event("info", "agent.start", "starting"))
        after = shown.getvalue()
        assert CURSOR in after
        assert "creating [bold]x" in after
        assert "starting" not in after


def test_progress_has_its_time_and_what_comes_next(capsys: Capture) -> None:
    """Issue 16.2: where lines are not replaced, each says it."""
    report = Reporter(Globals(), progress=True)
    report(Event("info", "image.step", "step 3 of 9: Node", {"elapsed": 41.3, "next": "claude\x1b[2J"}))
    report(Event("info", "setup.config", "wrote it", {"elapsed": 0.2}))
    assert capsys.readouterr().err.splitlines() == [
        "podbot: step 3 of 9: Node (41 s; next: claude\\x1b[2J)",
        "podbot: wrote it",
    ]
    Reporter(Globals(log_format="json"), progress=True)(Event("info", "a.b", "x", {"elapsed": 41.3, "next": "y"}))
    assert json.loads(capsys.readouterr().err) == {
        "level": "info",
        "kind": "a.b",
        "message": "x",
        "elapsed": 41.3,
        "next": "y",
    }


def test_the_spinner_s_line_has_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with contextlib.redirect_stderr(Terminal()) as shown:
        report = Reporter(Globals(), progress=True)
        report(Event("info", "image.step", "step 3 of 9: [bold]Node", {"elapsed": 125.0, "next": "claude"}))
        report.clear()
    assert "step 3 of 9: [bold]Node (2 min 5 s; next: claude)" in shown.getvalue()


def test_an_error_shows_no_control_characters(capsys: Capture) -> None:
    report_error(ContainerNotFound(container="a\x1b]0;x\x07\x9b\x7f\rz"), Globals())
    assert capsys.readouterr().err.startswith("podbot: there is no container a\\x1b]0;x\\x07\\x9b\\x7f\\rz. ")


def test_a_name_that_looks_like_another_is_told_from_it(capsys: Capture) -> None:
    for char in "\u2800\u3164\ufe0f\u034f\u115f\u1160\uffa0\u180b":
        report_error(ContainerNotFound(container=f"shop{char}"), Globals())
        assert f"shop\\u{ord(char):04x}" in capsys.readouterr().err
    report_error(ContainerNotFound(container="\U0001f469\u200d\U0001f4bb"), Globals())
    assert "\U0001f469\u200d\U0001f4bb" in capsys.readouterr().err


def test_a_closed_stderr_is_no_failure() -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        with contextlib.redirect_stderr(stream):
            say("x")
            Reporter(Globals())(Event("notice", "k", "m"))


# --- beside a protocol --------------------------------------------------------------------------------


@contextlib.contextmanager
def stderr_into(fd: int) -> Iterator[None]:
    before = os.dup(2)
    os.dup2(fd, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_nobody_reads_is_lost_and_counted(form: str) -> None:
    lines = 400
    with pipes(1) as (pipe,), stderr_into(pipe.write):
        reporter = Reporter(Globals(log_format=form), beside_protocol=True, patience=Patience(0.02, 0.02))
        for number in range(lines):
            reporter(Event("notice", "a.b", f"{number} " + "x" * 10_000))
        said = bytearray()
        os.set_blocking(pipe.read, False)
        while b"lost" not in said[: said.rfind(b"\n")]:  # a new message fits, and first reports what is missing
            with contextlib.suppress(BlockingIOError):
                said += os.read(pipe.read, 1 << 16)
            reporter(Event("notice", "a.b", "after"))
        reporter.close()
    whole = said[: said.rfind(b"\n")].split(b"\n")
    assert 100 < len(whole) < lines
    if form == "json":
        found = [json.loads(line) for line in whole]
        (lost,) = [line for line in found if line["kind"] == "log.lost"]
        assert lost["bytes"] > 10_000
    else:
        assert any(b"bytes on stderr were not read and are lost" in line for line in whole)


def test_a_slow_reader_loses_nothing_and_a_closed_one_is_ignored() -> None:
    got = bytearray()

    def reader() -> None:
        while not got.endswith(b"the last\n"):
            got.extend(os.read(pipe.read, 1 << 15))
            pause(0.0005)

    with pipes(1) as (pipe,), stderr_into(pipe.write):
        reporter = Reporter(Globals(), beside_protocol=True, patience=Patience(HANG, HANG))
        with in_thread(reader):
            for number in range(400):
                reporter(Event("notice", "a.b", f"{number} " + "x" * 10_000))
            reporter(Event("notice", "a.b", "the last"))
            reporter.close()
        assert got.count(b"\n") == 401
    with pipes(1) as (pipe,), stderr_into(pipe.write):
        reporter = Reporter(Globals(), beside_protocol=True)
        pipe.close(pipe.read)
        for _ in range(3):
            reporter(Event("notice", "a.b", "unread"))
        reporter.close()


# --- beside an agent ------------------------------------------------------------------------------


@contextlib.contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    """stderr is a terminal: (its master, its slave). No fixture: pytest changes stderr before the test begins."""
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    before = os.dup(2)
    os.dup2(slave, 2)
    try:
        with open(os.dup(slave), "w", encoding="utf-8") as stderr, contextlib.redirect_stderr(stderr):
            yield master, slave
    finally:
        os.dup2(before, 2)
    for descriptor in (before, master, slave):
        os.close(descriptor)


def seen(master: int, until: bytes = b"") -> bytes:
    """The output so far, to the end of the line with ``until``: the kernel delivers it a moment later, in pieces."""
    text = b""
    if not until:
        return os.read(master, 65536) if select.select([master], [], [], 0.05)[0] else b""
    for _ in attempts(repr(until)):
        if until in text and text.endswith(b"\n"):
            break
        if select.select([master], [], [], 0.1)[0]:
            text += os.read(master, 65536)
    return text


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_nothing_is_printed_while_the_agent_uses_the_terminal(log_format: Literal["text", "json"]) -> None:
    with terminal() as (master, slave):
        _beside_an_agent(Reporter(Globals(log_format=log_format)), master, slave)


def _beside_an_agent(report: Reporter, master: int, slave: int) -> None:
    report(Event("warning", "a.kind", "before"))
    assert b"before" in seen(master, b"before")
    with raw_mode(slave):
        report(Event("warning", "a.kind", "one"))
        report(Event("warning", "a.kind", "two"))
        assert seen(master) == b""
    report(Event("debug", "agent.end", "not shown"))
    lines = seen(master, b"two").splitlines()
    assert [b"one" in lines[0], b"two" in lines[1], len(lines)] == [True, True, 2]
    with raw_mode(slave):
        report(Event("warning", "a.kind", "three"))
    report.clear()
    assert b"three" in seen(master, b"three")


def test_lines_of_two_threads_are_not_mixed(capsys: Capture) -> None:
    report = Reporter(Globals())

    def talk(letter: str) -> None:
        for _ in range(200):
            report(Event("notice", "a.kind", letter * 300))

    threads = [threading.Thread(target=talk, args=(letter,)) for letter in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = capsys.readouterr().err.splitlines()
    assert sorted(set(lines)) == ["podbot: " + "a" * 300, "podbot: " + "b" * 300]
    assert len(lines) == 400

"""podbot's messages in a separate file."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.cli import log
from podbot.cli.entry import main
from podbot.cli.globals import Globals
from podbot.cli.log import STDERR, channel
from podbot.cli.report import Reporter, say
from podbot.errors import PathError
from podbot.events import Event
from tests.streams.plumbing import pipes

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before, Globals.current = Globals.current, Globals()
    log.opened.clear()
    yield
    Globals.current = before


def test_messages_are_only_in_the_file(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "log"
    Globals.current = g = Globals(log_format="json", log_file=str(path))
    Reporter(g)(Event("notice", "container.kept", "kept"))
    say("another line")
    assert capsys.readouterr() == ("", "")
    first, second = path.read_text().splitlines()
    assert json.loads(first)["kind"] == "container.kept"
    assert second == "another line"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_error_is_in_the_file_too(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "log"
    path.write_text("before\n")
    argv = ["--log-file", str(path), "--log-format", "json", "config", "check", "-c", str(tmp_path / "missing")]
    assert main(argv) == 2
    assert capsys.readouterr().err == ""
    before, error = path.read_text().splitlines()
    assert before == "before"
    assert json.loads(error)["kind"] == "ConfigFileNotFound"


def test_an_inherited_descriptor(capsys: Capture) -> None:
    with pipes(1) as (pipe,):
        os.set_inheritable(pipe.write, True)
        Globals.current = g = Globals(log_file=f"/dev/fd/{pipe.write}")
        Reporter(g)(Event("notice", "container.kept", "kept"))
        assert os.read(pipe.read, 100) == b"podbot: kept\n"
    assert capsys.readouterr().err == ""


def test_a_descriptor_that_podbot_opened_is_refused() -> None:
    """The guard of `podbot host` puts the protocol's stream at 4."""
    with pipes(1) as (pipe,), pytest.raises(PathError, match="was not started with it"):
        channel(f"/dev/fd/{pipe.write}")


def test_a_descriptor_that_is_only_read_is_refused() -> None:
    with pipes(1) as (pipe,):
        os.set_inheritable(pipe.read, True)
        with pytest.raises(PathError, match="not open for writing"):
            channel(f"/dev/fd/{pipe.read}")


def test_messages_of_host_cannot_go_into_the_protocol(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "podbot", "--log-file", "/dev/fd/4", "host", "--agent", "custom", "--", "true"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": os.getcwd(), "PODBOT_IMAGE": "i"}
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
        capture_output=True,
        env=environ,
        check=False,
        timeout=60,
        text=True,
    )
    assert done.returncode != 0
    assert done.stdout == ""
    assert "cannot write messages to" in done.stderr


def test_a_log_that_cannot_be_written_is_reported_once_and_stderr_is_used(capfd: pytest.CaptureFixture[str]) -> None:
    Globals.current = g = Globals(log_file="/dev/full")
    report = Reporter(g)
    report(Event("notice", "container.kept", "kept"))
    report(Event("notice", "container.kept", "kept again"))
    why, *rest = capfd.readouterr().err.splitlines()
    assert "cannot write messages to /dev/full: No space" in why
    assert rest == ["podbot: kept", "podbot: kept again"]


def test_a_log_that_nobody_reads_holds_nothing_up() -> None:
    with pipes(1) as (pipe,):
        os.set_inheritable(pipe.write, True)
        os.set_blocking(pipe.write, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(pipe.write, bytes(4096))
        os.set_blocking(pipe.write, True)
        Globals.current = Globals(log_file=f"/dev/fd/{pipe.write}")
        caller = threading.Thread(target=say, args=("a line",), daemon=True)
        caller.start()
        caller.join(60)
        hung = caller.is_alive()
        os.read(pipe.read, 1 << 20)
        assert not hung


@pytest.mark.parametrize("bad", ["link", "second name", "directory", "missing/x", "\0", "/dev/fd/987654"])
def test_an_unsafe_file_is_refused(tmp_path: Path, bad: str) -> None:
    (tmp_path / "target").write_text("")
    if bad == "link":
        (tmp_path / bad).symlink_to("target")
    elif bad == "second name":
        os.link(tmp_path / "target", tmp_path / bad)
    elif bad == "directory":
        (tmp_path / bad).mkdir()
    path = os.path.join(tmp_path, bad)
    with pytest.raises(PathError):
        channel(path)
    assert (tmp_path / "target").read_text() == ""


def test_without_the_option_messages_go_to_stderr() -> None:
    assert channel("") == STDERR


def test_a_log_that_cannot_be_opened_is_reported_on_stderr(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "podbot", "--log-file", str(tmp_path / "no" / "log"), "run", "custom", str(tmp_path)]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": os.getcwd(), "PODBOT_IMAGE": "i"}
    done = subprocess.run([*words, "--", "true"], capture_output=True, env=environ, check=False, timeout=60, text=True)
    assert done.returncode == 1
    assert "cannot write messages to" in done.stderr


def test_a_unit_has_the_journal(capsys: Capture) -> None:
    assert main(["--log-file", "/nowhere/log", "token-daemon", "install"]) == 2
    assert "journal" in capsys.readouterr().err

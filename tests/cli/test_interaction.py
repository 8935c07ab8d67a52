"""What podbot assumes, as tables, and what it asks."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import struct
import termios
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.cli.globals import Globals
from podbot.cli.interaction import Declined, Streams, ask, confirm, folded, offers_setup, works_here
from podbot.config.models import AppConfig, Origin, WorkspaceConfig
from podbot.errors import MissingRequired
from tests.cli.terminals import Emulator, no_terminal

PERSON = Streams(stdin=True, stdout=True, stderr=True)
EVERY = [Streams(*found) for found in itertools.product([True, False], repeat=3)]
NAMED = AppConfig(workspace=WorkspaceConfig(host_path="/p"), origins={"workspace.host_path": Origin("file", "/c.toml")})


@pytest.mark.parametrize("streams", EVERY, ids=str)
def test_a_person_types_and_reads_messages(streams: Streams) -> None:
    """Output may go to a file or through a pipe: `podbot run claude -- -p question > answer`."""
    assert streams.person is (streams.stdin and streams.stderr)
    assert streams.attach is (streams.stdin and streams.stdout)
    assert works_here(streams, AppConfig(), clone=False, flags=()) is streams.person
    assert offers_setup(streams, log_format="", dry_run=False) is streams.person


@pytest.mark.parametrize(
    ("config", "clone", "flags"),
    [
        (NAMED, False, ()),
        (AppConfig(), True, ()),
        (AppConfig(), False, ("workspace.depth",)),
        (AppConfig(), False, ("workspace.submodules", "agent.kind")),
    ],
)
def test_nothing_is_assumed_where_a_place_is_named(config: AppConfig, clone: bool, flags: tuple[str, ...]) -> None:
    assert not works_here(PERSON, config, clone=clone, flags=flags)


def test_other_options_name_no_place() -> None:
    assert works_here(PERSON, AppConfig(), clone=False, flags=("agent.kind", "session.keep"))


@pytest.mark.parametrize(("log_format", "dry_run"), [("json", False), ("", True), ("text", True)])
def test_a_program_and_a_dry_run_are_asked_nothing(log_format: str, dry_run: bool) -> None:
    assert not offers_setup(PERSON, log_format=log_format, dry_run=dry_run)


# --- questions on a terminal ----------------------------------------------------------------------


def answered(typed: bytes, ask_it: Callable[[], object]) -> tuple[object, str]:
    """(what the call returned, or the class of its exception; what the terminal showed)."""
    with contextlib.closing(Emulator()) as emulator:
        emulator.type(typed)
        with emulator.as_streams():
            try:
                found: object = ask_it()
            except (Declined, KeyboardInterrupt) as exc:
                found = type(exc)
        return found, emulator.said().decode()


@pytest.mark.parametrize(
    ("typed", "default", "agreed"),
    [
        (b"y\n", False, True), (b"YES\n", False, True), (b" yes \n", False, True), (b"n\n", False, False),
        (b"\n", False, False), (b"\n", True, True), (b"n\n", True, False), (b"yep\n", False, False),
        (b"what?\n", True, False), (b"\x04", False, False), (b"\x04", True, False), (b"y\x04\x04", True, False),
    ],
)  # fmt: skip
def test_only_yes_is_yes(typed: bytes, default: bool, agreed: bool) -> None:
    found, shown = answered(typed, lambda: ask("Go ahead?", default=default))
    assert found is agreed
    assert f"Go ahead? {'[Y/n]' if default else '[y/N]'} " in shown


def test_what_is_asked_about_is_on_the_terminal_and_not_in_the_log_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    before, Globals.current = Globals.current, Globals(log_file=str(log))
    try:
        found, shown = answered(b"y\n", lambda: confirm(["one\x1b[2J", "two"], "Remove these?"))
    finally:
        Globals.current = before
    assert found is None
    assert "  - one\\x1b[2J\r\n  - two\r\nRemove these? [y/N] " in shown
    assert log.read_text() == ""


def test_a_question_is_folded_between_words() -> None:
    """The terminal of a new user folds the offer to set up at its last column."""
    with contextlib.closing(Emulator()) as emulator:
        fcntl.ioctl(emulator.terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 40, 0, 0))
        emulator.type(b"y\n")
        with emulator.as_streams():
            confirm(["build an image with the agents that were named"], "This takes a while. Do it, and go on?")
        shown = emulator.said().decode().replace("\r", "")
    assert shown.endswith(
        "  - build an image with the agents that\n    were named\nThis takes a while. Do it, and go on?\n[y/N] "
    )


WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)


@given(st.lists(WORDS, min_size=1, max_size=30), st.sampled_from(["", "  - "]), st.integers(20, 90))
def test_folding_changes_nothing_but_the_spaces(words: list[str], head: str, columns: int) -> None:
    lines = folded(" ".join(words), head, columns)
    assert " ".join(lines).split() == f"{head}{' '.join(words)}".split()
    assert all(len(line) <= max(columns, len(head) + 20) for line in lines)


@pytest.mark.parametrize("typed", [b"n\n", b"\n", b"\x04"])
def test_another_answer_declines(typed: bytes) -> None:
    assert answered(typed, lambda: confirm([], "Remove these?"))[0] is Declined


def test_without_a_terminal_nothing_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with no_terminal(), pytest.raises(MissingRequired, match="--yes"):
        confirm(["one"], "Remove these?")
    assert "Remove these?" not in capsys.readouterr().err

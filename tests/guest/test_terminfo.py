"""Which TERM a real guest chooses, from directories that a hostile process inside may fill."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.guest.channel import Channel
from podbot.guest.inside import terminfo
from podbot.guest.messages import GuestCommand
from tests.guest.local_commands import Printed
from tests.waiting import HANG

NAMES = ["podbot-a", "podbot-b", "podbot-c"]  # which no machine describes


def described(place: Path, *names: str) -> None:
    for name in names:
        (place / name[0]).mkdir(parents=True, exist_ok=True)
        (place / name[0] / name).write_bytes(b"\x1a\x01")


def first(place: Path, names: list[str], **env: str) -> int | None:
    added = {name.encode(): value.encode() for name, value in env.items()}
    return terminfo.first_described(names, added, (os.fsencode(place),))


@pytest.mark.parametrize(
    ("there", "index"),
    [
        (("podbot-a", "podbot-b"), 0),
        (("podbot-c", "podbot-b"), 1),
        (("podbot-c",), 2),
        (("podbot-ab",), None),
        ((), None),
    ],
)
def test_the_first_that_has_an_entry_is_chosen(tmp_path: Path, there: tuple[str, ...], index: int | None) -> None:
    described(tmp_path, *there)
    assert first(tmp_path, NAMES) == index
    assert first(tmp_path / "missing", NAMES) is None


def test_an_entry_may_be_a_link_to_any_file(tmp_path: Path) -> None:
    described(tmp_path / "elsewhere", "podbot-x")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "podbot-a").symlink_to("../elsewhere/p/podbot-x")
    assert first(tmp_path, NAMES) == 0


def test_what_is_no_file_is_no_entry_and_is_not_opened(tmp_path: Path) -> None:
    """Opening the named pipe would wait for ever."""
    names = ["podbot-pipe", "podbot-link", "podbot-dir", "podbot-empty", "podbot-lost", "podbot-loop", "podbot-null"]
    letter = tmp_path / "p"
    letter.mkdir()
    os.mkfifo(letter / "podbot-pipe")
    (letter / "podbot-link").symlink_to("podbot-pipe")
    (letter / "podbot-dir").mkdir()
    (letter / "podbot-empty").touch()
    (letter / "podbot-lost").symlink_to("nothing")
    (letter / "podbot-loop").symlink_to("podbot-loop")
    (letter / "podbot-null").symlink_to("/dev/null")
    assert first(tmp_path, names) is None
    described(tmp_path, "podbot-z")
    assert first(tmp_path, [*names, "podbot-z"]) == len(names)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "/", "/etc/passwd", "p/podbot-a", "../p/podbot-a", "\0", "podbot-a\0", "é" * 100]
)
def test_a_name_that_is_no_file_s_has_no_entry(tmp_path: Path, name: str) -> None:
    described(tmp_path, "podbot-a")
    (tmp_path / ".").mkdir(exist_ok=True)
    assert first(tmp_path, [name]) is None
    assert first(tmp_path, [name, "podbot-a"]) == 1


def test_a_name_is_at_most_128_bytes_long(tmp_path: Path) -> None:
    described(tmp_path, "p" * 128, "p" * 129)
    assert (first(tmp_path, ["p" * 129]), first(tmp_path, ["p" * 128])) == (None, 0)


@given(st.binary(max_size=200) | st.sampled_from([b".", b"..", b"/", b"a/b", b"a\0b"]))
def test_an_entry_is_the_file_of_that_name_below_its_first_letter_or_none(name: bytes) -> None:
    path = terminfo.entry(name)
    if not name or len(name) > 128 or b"/" in name or b"\0" in name or name in {b".", b".."}:
        assert path == b""
    else:
        assert path.split(b"/") == [name[:1], name]
        assert os.path.normpath(b"/terminfo/" + path).startswith(b"/terminfo/")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("TERMINFO", "{}"), ("HOME", "{}/home"), ("TERMINFO_DIRS", "{}"), ("TERMINFO_DIRS", "/nowhere::{}:")],
)
def test_the_variables_of_ncurses_name_more_directories(tmp_path: Path, variable: str, value: str) -> None:
    described(tmp_path / "home" / ".terminfo" if variable == "HOME" else tmp_path, "podbot-b")
    nothing = tmp_path / "nothing"
    assert first(nothing, NAMES, **{variable: value.format(tmp_path)}) == 1
    assert first(nothing, NAMES, **{variable: ""}) is None
    described(tmp_path / "standard", "podbot-a")
    assert first(tmp_path / "standard", NAMES, **{variable: value.format(tmp_path)}) == 0, "they replace no other"


def test_a_relative_directory_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest's own directory is not the command's."""
    described(tmp_path / "relative", "podbot-b")
    described(tmp_path / "relative" / ".terminfo", "podbot-b")
    monkeypatch.chdir(tmp_path)
    for variable in ("TERMINFO", "HOME", "TERMINFO_DIRS"):
        assert first(tmp_path / "nothing", NAMES, **{variable: "relative"}) is None


def test_of_a_long_list_of_directories_the_first_ones_count(tmp_path: Path) -> None:
    described(tmp_path, "podbot-a")
    for others, index in ((63, 0), (64, None)):
        listed = ":".join((*["/nowhere"] * others, str(tmp_path)))
        assert first(tmp_path / "nothing", NAMES, TERMINFO_DIRS=listed) == index


@pytest.mark.parametrize(
    ("choices", "term", "index"),
    [(("podbot-a", "podbot-b"), "podbot-b", 1), (("podbot-a",), "mine", None), ((), "mine", None)],
)
def test_a_command_gets_the_chosen_term_or_keeps_its_own(
    channel: Channel, tmp_path: Path, choices: tuple[str, ...], term: str, index: int | None
) -> None:
    """None is sent by an older podbot, too, and by one whose user passes a TERM."""
    described(tmp_path, "podbot-b")
    env = {"TERM": "mine", "TERMINFO": str(tmp_path)}
    command = GuestCommand(("/bin/sh", "-c", "echo $TERM"), env=env, tty=(80, 24), term_choices=choices)
    running = channel.start(command, printed := Printed())
    assert running.wait(HANG) is not None
    assert (running.term, printed.of(1)) == (index, f"{term}\r\n".encode())

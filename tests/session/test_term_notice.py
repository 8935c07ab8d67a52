"""Once in a session, the operator is told that the TERM inside is another one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podbot.events import Event
from podbot.exec_spec import ExecSpec
from podbot.session.term_notice import TOLD, telling

SPEC = ExecSpec(("sh",), tty=True, term_choices=("xterm-kitty", "xterm"))


def levels(place: Path | str, *, times: int = 1, first: bool = False) -> list[str]:
    events: list[Event] = []
    for _ in range(times):
        telling(str(place), SPEC, events.append, first=first)("xterm", True)
    return [event.level for event in events]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "session"
    place.mkdir(0o700)
    return place


def test_the_first_time_is_a_notice(place: Path, tmp_path: Path) -> None:
    assert levels(place, times=3) == ["notice", "info", "info"]
    another = tmp_path / "another"
    another.mkdir(0o700)
    assert levels(another) == ["notice"]


def test_the_start_of_a_session_is_always_the_first_time(place: Path) -> None:
    assert levels(place, first=True) == ["notice"]
    assert levels(place) == ["info"]
    assert levels(place, first=True) == ["notice"]


def test_of_what_is_no_session_here_it_is_information(place: Path, tmp_path: Path) -> None:
    assert levels(tmp_path / "missing") == ["info"]
    (tmp_path / "link").symlink_to(place)
    assert levels(tmp_path / "link") == ["info"]
    assert os.listdir(place) == []
    (place / TOLD).symlink_to(tmp_path / "made")
    assert levels(place) == ["info"]
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(("looked", "whose"), [(True, "the sandbox has"), (False, "podbot's images have")])
def test_it_names_both_and_who_lacks_the_entry(place: Path, looked: bool, whose: str) -> None:
    events: list[Event] = []
    telling(str(place), SPEC, events.append)("xterm", looked)
    text = f"TERM is xterm inside: {whose} no entry for xterm-kitty; a TERM that you pass yourself stays"
    assert events == [Event("notice", "exec.terminal", text, {"term": "xterm-kitty", "inside": "xterm"})]

"""The drawing of the recorded session is made from the recording, and shows what a terminal would."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recorder import record

SVG = "{http://www.w3.org/2000/svg}"


def pictures(*events: str) -> list[list[str]]:
    """The lines of each picture, without empty ones."""
    found = record.screens([(0.0, text) for text in events], 20, 4)
    return [["".join(run.text for run in line) for line in picture if line] for picture in found]


def test_there_is_a_picture_for_each_step() -> None:
    assert pictures("$ ", record.BEGUN, "ls\r\na\r\n$ ", record.BEGUN, "exit\r\n") == [
        ["$"],
        ["$ ls", "a", "$"],
        ["$ ls", "a", "$ exit"],
    ]


def test_a_line_that_was_erased_is_not_in_the_picture() -> None:
    assert pictures("starting…\r\x1b[Kready\r\n") == [["ready"]]


def test_a_picture_that_does_not_differ_is_left_out() -> None:
    assert pictures("$ ", record.BEGUN, record.BEGUN, "") == [["$"]]


def test_colours_and_bold_begin_and_end_with_their_text() -> None:
    ((line, *_),) = record.screens([(0.0, "a \x1b[1;31mred\x1b[0m b")], 20, 4)
    assert [(run.column, run.text, run.bold) for run in line] == [(0, "a", False), (2, "red", True), (5, " b", False)]
    assert [run.colour for run in line] == [record.FOREGROUND, record.COLOURS["red"], record.FOREGROUND]


@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=30), max_size=4))
def test_the_drawing_is_well_formed_whatever_was_printed(texts: list[str]) -> None:
    drawing = record.svg(list(record.screens([(0.0, text) for text in texts], 20, 4)), 20, 4)
    assert ET.fromstring(drawing).tag == f"{SVG}svg"


def test_each_picture_is_shown_and_the_last_one_where_motion_is_not_wanted() -> None:
    found = list(record.screens([(0.0, "a\r\n"), (1.0, record.BEGUN), (1.0, "b")], 20, 4))
    drawing = record.svg(found, 20, 4)
    assert len(ET.fromstring(drawing).findall(f"{SVG}g")) == len(found) == 2
    assert "@media (prefers-reduced-motion:reduce){.p{animation:none}.p1{visibility:visible}}" in drawing


def test_frames_of_progress_are_thinned() -> None:
    frames = [
        f"\r\x1b[2K\x1b[32m{spin}\x1b[0m {text}" for spin, text in (("⠋", "a (1 s)"), ("⠙", "a (2 s)"), ("⠹", "b"))
    ]
    begun = [frames[0], record.BEGUN, frames[1]]
    for texts, kept in ((["x", *frames, "y"], ["x", *frames[1:], "y"]), (begun, begun), (["x", "x"], ["x", "x"])):
        assert [text for _, text in record.thinned([(0.0, text) for text in texts])] == kept


@pytest.mark.parametrize("scene", record.SCENES)
def test_the_committed_drawing_is_the_recordings(scene: str) -> None:
    assert record.drawing_of(scene).read_text(encoding="utf-8") == record.drawn(scene), "run `scripts/record.py draw`"


@pytest.mark.parametrize("scene", record.SCENES)
def test_a_drawing_has_a_title_and_names_no_place_of_the_machine_that_recorded(scene: str) -> None:
    drawing = ET.fromstring(record.drawing_of(scene).read_text(encoding="utf-8"))
    assert drawing.findtext(f"{SVG}title") == record.SCENES[scene].title
    text = record.cast_of(scene).read_text(encoding="utf-8")
    assert "/tmp/" not in text
    assert "/root/src" not in text


def test_every_picture_of_the_documentation_is_a_scene() -> None:
    assert {path.stem for path in record.IMAGES.iterdir()} == record.SCENES.keys()

"""No text that is accepted leads out of the workspace, and each limit holds from one over to one under."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import ToolValidationError
from podbot.tools.paths import logical_path, parse_entry, parse_path, path_text, shown_path
from podbot.visible_text import is_printable

LONGEST = "s" * 80
DEEPEST = "/".join(["d"] * 16)


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("", ()), ("  ", ()), ("/", ()), ("//", ()), ("/workspace", ()), ("/workspace/", ()), (" /workspace \n", ()),
        ("src", ("src",)), ("/src", ("src",)), ("/workspace/src", ("src",)), ("//workspace//src//", ("src",)),
        ("workspace", ("workspace",)), ("/workspace/workspace", ("workspace",)), ("/workspaces", ("workspaces",)),
        ("a b/c", ("a b", "c")), ("...", ("...",)), ("-rf", ("-rf",)), ("$HOME", ("$HOME",)), ("a\\b", ("a\\b",)),
        ("a\nb/c", ("a\nb", "c")), (LONGEST, (LONGEST,)), (DEEPEST, ("d",) * 16),
        ("/workspace/" + DEEPEST, ("d",) * 16),
    ],
)  # fmt: skip
def test_what_a_path_means(text: str, segments: tuple[str, ...]) -> None:
    assert parse_path(text) == segments


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        (".", "segment ."), ("..", "segment .."), ("a/../b", "segment .."), ("/workspace/..", "segment .."),
        ("./a", "segment ."), ("grüße", "ASCII"), ("a\0b", "NUL"), (LONGEST + "s", "81 characters, the limit is 80"),
        (DEEPEST + "/d", "17 segments, the limit is 16"), (None, "string"), (7, "string"), (b"a", "string"),
    ],
)  # fmt: skip
def test_what_a_path_cannot_be(value: object, limit: str) -> None:
    with pytest.raises(ToolValidationError) as caught:
        parse_path(value, "file_path")
    assert caught.value.field == "file_path"
    assert limit in caught.value.limit
    assert isinstance(caught.value, ValueError)


def test_an_entry_is_not_the_workspace() -> None:
    assert parse_entry("a") == ("a",)
    for text in ("", "/", "/workspace/"):
        with pytest.raises(ToolValidationError):
            parse_entry(text)


@given(st.text(alphabet=st.sampled_from("./ ab\\\n\0é-workspace"), max_size=60))
def test_no_text_leads_out_of_the_workspace(text: str) -> None:
    try:
        segments = parse_path(text)
    except ToolValidationError:
        return
    joined = posixpath.normpath(posixpath.join("/workspace", *segments))
    assert joined == posixpath.join("/workspace", *segments)
    assert all(segment and segment not in (".", "..") and "/" not in segment for segment in segments)


_SEGMENT = st.text(st.characters(max_codepoint=126, exclude_characters="/\0"), min_size=1, max_size=80).filter(
    lambda name: name not in (".", "..") and name == name.strip()
)


@given(st.lists(_SEGMENT, max_size=16))
def test_segments_survive_both_renderings(segments: list[str]) -> None:
    assert parse_path(logical_path(segments)) == tuple(segments)
    if segments[:1] != ["workspace"]:
        assert parse_path("/" + path_text(segments)) == tuple(segments)


@given(st.text(max_size=40))
def test_a_shown_path_is_one_line_and_stands_for_one_name(name: str) -> None:
    shown = shown_path(name)
    assert is_printable(shown)
    assert len(shown.splitlines()) == 1
    if shown != name:
        assert not name or shown.startswith('"')


def test_names_that_could_be_taken_for_more_are_quoted() -> None:
    assert shown_path("") == "/"
    assert shown_path("a $x `b` <c>") == "a $x `b` <c>"
    assert shown_path("a\nFILE b") == '"a\\nFILE b"'
    assert shown_path('"a"') == '"\\"a\\""'
    assert shown_path("\udcff\u202e") == '"\\udcff\\u202e"'

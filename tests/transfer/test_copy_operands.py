"""The operands of podbot cp."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import UsageError
from podbot.transfer.copy_operands import Inside, Location, inside, read_location, read_locations


@pytest.mark.parametrize(
    ("word", "location"),
    [
        ("shop:/tmp/a", Location("shop", "/tmp/a")),
        ("shop:a:b", Location("shop", "a:b")),
        ("./a:b", Location("", "./a:b")),
        ("/a:b", Location("", "/a:b")),
        ("~/a:b", Location("", "~/a:b")),
        ("a", Location("", "a")),
        ("dir/a:b", Location("", "dir/a:b")),
    ],
)
def test_a_session_or_this_host(word: str, location: Location) -> None:
    assert read_location(word) == location
    assert location.text == word


@pytest.mark.parametrize("word", ["", "a\0b", ":/x", "shop:"])
def test_words_that_are_neither(word: str) -> None:
    with pytest.raises(UsageError):
        read_location(word)


def test_one_of_the_two_is_in_a_session() -> None:
    assert read_locations("shop:/a", ".") == (Location("shop", "/a"), Location("", "."))
    for pair in (("a", "b"), ("a:/x", "b:/x")):
        with pytest.raises(UsageError, match="in a session"):
            read_locations(*pair)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/a/b", Inside("/a", "b")),
        ("a", Inside("/", "a")),
        ("/a/b/", Inside("/a", "b")),
        ("/a/b/.", Inside("/a/b", "")),
        ("/", Inside("/", "")),
        ("/a/../b", Inside("/", "b")),
        ("/..", Inside("/", "")),
        ("//a", Inside("/", "a")),
    ],
)
def test_paths_inside(path: str, found: Inside) -> None:
    assert inside(path) == found


@given(st.text(st.characters(blacklist_characters="\0"), min_size=1, max_size=30))
def test_a_path_inside_is_an_entry_of_a_directory(path: str) -> None:
    found = inside(path)
    assert found.directory.startswith("/")
    assert "/" not in found.name
    assert found.name not in (".", "..")

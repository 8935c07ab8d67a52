"""The pointers that git writes, and anything that an agent may write instead."""

from __future__ import annotations

import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.launch.repository import LONGEST, is_common, is_submodules, joined, one_path, pointed_to

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"], exclude_characters="/"), min_size=1)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)

BIDIRECTIONAL_CONTROLS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n"])
@pytest.mark.parametrize("path", ["/home/ada/shop/.git/worktrees/x", "../.git/modules/x", "/with space /ä", "x"])
def test_what_git_writes_is_read(path: str, end: bytes) -> None:
    assert pointed_to(b"gitdir: " + path.encode() + end) == path
    assert one_path(path.encode() + end) == path


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"gitdir: ", b"gitdir: \n", b"gitdir:/x", b" gitdir: /x", b"GITDIR: /x", b"\xef\xbb\xbfgitdir: /x",
        b"gitdir: /a\nb", b"gitdir: /a\0b", b"gitdir: /a\x1b[2J", b"gitdir: /\xff", b"gitdir: /\xe2\x80\xaea",
        b"gitdir: /" + b"x" * LONGEST,
    ],
)  # fmt: skip
def test_text_that_git_does_not_write_names_nothing(data: bytes) -> None:
    assert pointed_to(data) is None


@given(st.binary(max_size=64) | st.binary(max_size=64).map(lambda data: b"gitdir: " + data))
def test_a_path_that_is_read_is_printable_and_one_line(data: bytes) -> None:
    path = pointed_to(data)
    if path is None:
        return
    # Private use characters, for example, are not printable to Python, but mislead no reader.
    assert not {unicodedata.category(char) for char in path} & {"Cc", "Cs", "Zl", "Zp"}
    assert not {unicodedata.bidirectional(char) for char in path} & BIDIRECTIONAL_CONTROLS
    assert not set(path) & set("\0\n\r\x1b")
    assert data.startswith(b"gitdir: " + path.encode())


@given(PATHS, st.sampled_from(["", "/"]))
def test_a_path_is_the_same_after_writing_and_reading(path: str, root: str) -> None:
    assert pointed_to(f"gitdir: {root}{path}\n".encode()) == root + path


@given(PATHS.map(lambda path: "/" + path), st.lists(NAMES | st.sampled_from(["..", ".", ""]), max_size=8).map("/".join))
def test_a_path_is_joined_as_the_kernel_would_without_links(directory: str, path: str) -> None:
    found = joined(directory, path)
    assert os.path.isabs(found)
    assert not found.startswith("//")
    assert found == os.path.normpath(found)
    assert not {"..", "."} & set(found.split("/"))
    if os.path.isabs(path):
        assert found == joined("/elsewhere", path)


@pytest.mark.parametrize(
    ("path", "submodules", "common"),
    [
        ("/a/shop/.git", False, True),
        ("/a/shop.git", False, True),
        ("/a/shop/.git/modules/x", True, True),
        ("/a/shop/.git/modules/vendor/x", True, True),
        ("/a/shop.git/modules/x", True, True),
        ("/a/shop/.git/worktrees/w/modules/x", True, True),
        ("/a/shop", False, False),
        ("/a/shop/modules/x", False, False),
        ("/a/shop/.git/modules", False, False),
        ("/a/shop/.git/modules/", False, False),
        ("/a/shop/.git/worktrees/modules/x", False, False),
        ("/a/shop/.git/x/modules/x", False, False),
        ("/a/shop/.gitx/modules/x", False, False),
        ("/a/shopgit/modules/x", False, False),
        ("/a/shop/worktrees/w/modules/x", False, False),
        ("/a/shopgit", False, False),
        ("/a/.git/shop", False, False),
    ],
)
def test_the_paths_that_git_gives_its_directories(path: str, submodules: bool, common: bool) -> None:
    assert (is_submodules(path), is_common(path)) == (submodules, common)


@given(st.lists(NAMES.filter(lambda name: not name.endswith(".git")), max_size=6))
def test_only_a_name_that_ends_in_git_is_such_a_path(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    assert not is_submodules(path)
    assert not is_common(path)

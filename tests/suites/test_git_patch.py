"""Patches of single files, read by the real git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podbot.suites.git_patch import LINES, Content, is_refused, mode_patch, patch_of
from tests.examples import examples
from tests.suites.workspaces import ENV, git_apply, tree, write

NAMES = st.binary(min_size=1, max_size=12).filter(lambda name: not {0, 0x2F} & set(name) and name not in (b".", b".."))


def nothing() -> None:
    """A check that never ends the work."""


def added(path: bytes, data: bytes = b"x\n") -> bytes:
    return patch_of(path, None, Content(data, executable=False), nothing)


@settings(max_examples=examples(40))
@given(st.lists(st.lists(NAMES, min_size=1, max_size=3).map(b"/".join), min_size=1, max_size=8))
def test_git_reads_every_name_as_it_is(paths: list[bytes]) -> None:
    text = b"".join(added(path) for path in paths)
    assert text.isascii()
    words = ["git", "apply", "--numstat", "-z"]
    done = subprocess.run(words, input=text, capture_output=True, check=True, env=ENV, cwd="/")
    assert [line.split(b"\t", 2)[2] for line in done.stdout.split(b"\0")[:-1]] == paths


@pytest.mark.parametrize(
    "name",
    [
        b".git", b".GIT", b".gIt", b"git~1", b"GIT~1", b".git.", b".git ", b".git . .", b".git:x", b".git::$INDEX",
        b".git\\x", b"git~1:x", b".g\xe2\x80\x8cit", b"\xef\xbb\xbf.git", b".git\xff", b".git\xef\xbf\xbe",
    ],
)  # fmt: skip
def test_names_that_git_refuses(name: bytes, tmp_path: Path) -> None:
    assert is_refused(name)
    assert "invalid path" in git_apply(added(name + b"/x").decode(), tmp_path, "--check")


@pytest.mark.parametrize(
    "name", [b".gitignore", b".github", b"git", b".git~1", b"git~2", b"x.git", b".git-x", b".git..x", b"..git", b".gi"]
)
def test_names_that_look_similar_are_not_refused(name: bytes, tmp_path: Path) -> None:
    assert not is_refused(name)
    assert git_apply(added(name + b"/x").decode(), tmp_path) == ""


PARTS = [
    b".git",
    b"git~1",
    b"GIT",
    b".",
    b" ",
    b":",
    b"\\",
    b"x",
    b"~",
    b"1",
    b"\xe2\x80\x8c",
    b"\xff",
    b"\xef\xbf\xbf",
    b"\xc3",
]


@settings(max_examples=examples(200))
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=6))
def test_no_name_that_git_refuses_is_taken(words: list[bytes]) -> None:
    name = b"".join(words)
    if name not in (b".", b"..") and not is_refused(name):
        assert "invalid path" not in git_apply(added(name).decode(), Path("/"), "--check")


@settings(max_examples=examples(40))
@given(data=st.binary(max_size=300) | st.integers(0, 9000).map(lambda size: bytes(range(256)) * (size // 256)))
def test_any_content_arrives_as_it_is(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    where = tmp_path_factory.mktemp("host")
    assert git_apply(added(b"new", data).decode(), where) == ""
    before = Content(b"old\n", executable=True)
    write(where, b"was", before.data, executable=True)
    assert git_apply(patch_of(b"was", before, Content(data, executable=False), nothing).decode(), where) == ""
    assert tree(where) == {b"new": (data, False), b"was": (data, False)}


@pytest.mark.parametrize("size", [0, 1, 25, 26, 27, 51, 52, 53, 104, 5000])
def test_binary_patches_of_every_length_of_line(size: int, tmp_path: Path) -> None:
    data = bytes(number * number % 251 for number in range(size)) + b"\0"
    text = added(b"new", data)
    assert b"GIT binary patch\n" in text
    assert git_apply(text.decode(), tmp_path) == ""
    assert tree(tmp_path) == {b"new": (data, False)}


def test_more_lines_than_are_compared_become_a_binary_patch() -> None:
    assert b"\n@@ " in added(b"x", b"\n" * LINES)
    assert b"\nliteral " in added(b"x", b"\n" * (LINES + 1))
    for lines, form in ((LINES // 2, b"\n@@ "), (LINES // 2 + 1, b"\nliteral ")):  # of both sides together
        old, new = (Content(end + b"\n" * lines, executable=False) for end in (b"x", b"y"))
        assert form in patch_of(b"x", old, new, nothing)


def test_what_does_not_differ_has_no_patch() -> None:
    same = Content(b"x", executable=False)
    assert patch_of(b"x", same, same, nothing) == b""
    assert mode_patch(b"x", executable=True) == b"diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"


def test_the_whole_form() -> None:
    """As git writes it, with full names of the contents."""
    old, new = Content(b"a\n", executable=False), Content(b"b\n", executable=False)
    assert patch_of(b"d/x y", old, new, nothing).decode() == (
        'diff --git "a/d/x y" "b/d/x y"\n'
        "index 78981922613b2afb6025042ff6bd878ac1994e85..61780798228d17af2d34fce4cfbdf35556832472 100644\n"
        '--- "a/d/x y"\n+++ "b/d/x y"\n@@ -1 +1 @@\n-a\n+b\n'
    )

"""How a Filesystem resolves its paths: in the text, and never out of the workspace."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podbot.tools.filesystem_paths import resolved, shown, to_write

PATHS = st.lists(st.sampled_from(["..", ".", "", "a", "b", "workspace", " ", "é", "..."]), max_size=7).map("/".join)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", ""),
        (".", ""),
        ("/", ""),
        ("/workspace/", ""),
        ("notes ", "notes "),
        ("/workspace/src//a.py", "src/a.py"),
        ("workspace/a", "workspace/a"),
        ("//workspace/a", "a"),
        ("/workspace/workspace", "workspace"),
        ("a/./b/../c/", "a/c"),
        ("a/..", ""),
        ("/workspace/../a", "a"),
        ("café/日本語", "café/日本語"),
        ("~/$HOME/-rf/..../a\nb", "~/$HOME/-rf/..../a\nb"),
    ],
)
def test_a_path_is_relative_to_the_workspace(path: str, expected: str) -> None:
    leaves = path == "/workspace/../a"
    if leaves:
        with pytest.raises(PermissionError, match="leads out of the workspace"):
            resolved(path)
    else:
        assert "/".join(resolved(path)) == expected
        assert shown(resolved(path)) == (expected or "/")


@pytest.mark.parametrize("path", ["..", "../a", "a/../..", "/..", "/workspace/..", "./../workspace/a", "a/../../a"])
def test_a_path_that_leaves_the_workspace_is_refused(path: str) -> None:
    with pytest.raises(PermissionError, match="leads out of the workspace"):
        resolved(path)


@pytest.mark.parametrize(("path", "error"), [("a\0b", ValueError), ("\ud800", ValueError), (b"a", TypeError)])
def test_what_is_no_path_is_refused(path: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        resolved(path)


@pytest.mark.parametrize(
    ("path", "reason"), [("/".join("d" * 17), "depth"), ("a" * 81, "segment"), ("é" * 81, "segment"), ("/", "root")]
)
def test_what_is_written_has_the_limits_of_the_tools(path: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        to_write(path, "write to")
    assert to_write("/".join("d" * 16), "write to") == ("d",) * 16
    assert to_write("é" * 80, "write to") == ("é" * 80,)


@given(PATHS)
@example("a/../..")
def test_no_resolved_path_has_a_segment_that_leads_anywhere_else(path: str) -> None:
    try:
        found = resolved(path)
    except PermissionError:
        words = path.removeprefix("/workspace") if path.startswith("/workspace/") else path
        assert posixpath.normpath("./" + words.strip("/")).startswith("..") or ".." in words.split("/")
        return
    assert not {"", ".", ".."} & set(found)
    assert not any("/" in word for word in found)
    assert resolved("/".join(("", *found)) if found[:1] != ("workspace",) else "/".join(found)) == found

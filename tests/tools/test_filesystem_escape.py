"""Property: no path that a Filesystem takes reads, changes or makes anything outside of its root."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podbot.tools.workspace_filesystem import WorkspaceFilesystem
from tests.tools.workers import files_beside_a_secret

WORDS = st.one_of(
    st.sampled_from(["..", ".", "", "a", "b", "out", "in", "\0", "outside", "etc", "secret", "workspace", "root"]),
    st.text(max_size=6),
)
PATHS = st.tuples(st.sampled_from(["", "/", "/workspace/", " "]), st.lists(WORDS, max_size=5)).map(
    lambda parts: parts[0] + "/".join(parts[1])
)


@pytest.fixture(scope="module")
def beside() -> Iterator[tuple[WorkspaceFilesystem, Path, Path]]:
    """A workspace with links out of it, and what is beside it."""
    with files_beside_a_secret() as (files, root, outside):
        yield WorkspaceFilesystem(files), root, outside


def _written(fs: WorkspaceFilesystem, path: str) -> None:
    with fs.open_write(path) as writer:
        writer.write(b"mine")


@given(path=PATHS, choice=st.integers(0, 11))
@example(path="out/secret", choice=0)
@example(path="../outside/secret", choice=4)
@example(path="out/../out/secret", choice=5)
@example(path="a/root/../../outside/secret", choice=6)
@example(path="out/new", choice=7)
@example(path="out/new", choice=9)
def test_no_path_leads_outside(beside: tuple[WorkspaceFilesystem, Path, Path], path: str, choice: int) -> None:
    fs, root, outside = beside
    for name, target in (("out", "../outside"), ("in", "."), ("a", "/")):
        with contextlib.suppress(OSError):
            (root / name).symlink_to(target)
    calls = (
        lambda: fs.read(path), lambda: fs.read_bytes(path), lambda: fs.open_text(path).read(), lambda: fs.list(path),
        lambda: fs.write(path, "mine"), lambda: fs.write_bytes(path, b"mine", mode="append"),
        lambda: fs.write(path, "mine", mode="create"), lambda: _written(fs, path), lambda: fs.grep("SECRET", path=path),
        lambda: fs.mkdir(path), lambda: fs.glob("**", path=path), lambda: fs.stat(path),
    )  # fmt: skip
    try:
        result = repr(calls[choice]())
    except (OSError, ValueError):
        result = ""
    assert "SECRET" not in result
    with contextlib.suppress(OSError, ValueError):
        fs.delete(path, recursive=True)
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_text() == "SECRET"
    assert sorted(os.listdir(root.parent)) == ["outside", "root"]

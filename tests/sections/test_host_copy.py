"""Copies of what was planned: byte for byte, as it was when it was planned, and through no link."""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podbot.errors import DiskFull, PathError
from podbot.sections.host_copy import copy_into
from podbot.sections.host_mounts import SEGMENTS, HostMount, MountPlan
from podbot.sections.host_tree import look_at
from podbot.sections.mount_plan import plan_mounts
from tests.faults import STRANGER, full_disk, ordinary_user
from tests.sections.host_trees import BINARY, SCRIPT, content, plan


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


# What is copied


def test_files_are_copied_byte_for_byte(root: Path, workspace: Path) -> None:
    (root / "src" / "pkg" / "deep").mkdir()
    (root / "src" / "pkg" / "deep" / "d").write_text("d")
    (root / "src" / "pkg" / "z").write_text("z")  # the directory before it is another one, and the one before that not
    copy_into(plan(root), str(workspace))
    assert content(workspace) == {
        "a.py": BINARY, "pkg": None, "pkg/b.sh": SCRIPT, "pkg/deep": None, "pkg/deep/d": b"d", "pkg/z": b"z",
    }  # fmt: skip


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_files_of_any_size(root: Path, workspace: Path, size: int) -> None:
    data = os.urandom(size)
    (root / "src" / "a.py").write_bytes(data)
    copy_into(plan(root), str(workspace))
    assert (workspace / "a.py").read_bytes() == data


@pytest.mark.parametrize(
    ("of_the_source", "of_the_copy"),
    [(0o644, 0o644), (0o755, 0o755), (0o600, 0o600), (0o444, 0o644), (0o500, 0o700), (0o4755, 0o755), (0o2755, 0o755)],
    ids=oct,
)
def test_modes_are_kept_and_the_owner_can_change_everything(
    root: Path, workspace: Path, of_the_source: int, of_the_copy: int
) -> None:
    (root / "src" / "a.py").chmod(of_the_source)
    (root / "src" / "pkg").chmod(0o500)
    before = os.umask(0o027)
    try:
        copy_into(plan(root), str(workspace))
    finally:
        os.umask(before)
        (root / "src" / "pkg").chmod(0o700)
    assert mode(workspace / "a.py") == of_the_copy
    assert mode(workspace / "pkg") & 0o700 == 0o700


def test_what_a_followed_link_leads_to_is_copied_and_not_the_link(root: Path, workspace: Path) -> None:
    (root / "src" / "file").symlink_to("a.py")
    (root / "src" / "dir").symlink_to("../other")
    copy_into(plan(root, follow_symlinks=True), str(workspace))
    assert content(workspace) == {
        "a.py": BINARY, "dir": None, "dir/c.txt": b"other", "file": BINARY, "pkg": None, "pkg/b.sh": SCRIPT
    }  # fmt: skip


def test_empty_directories_are_copied_and_those_of_chosen_files_are_made(root: Path, workspace: Path) -> None:
    (root / "src" / "empty" / "inner").mkdir(parents=True)
    (workspace / "all").mkdir()
    copy_into(plan(root), str(workspace / "all"))
    assert {path for path, data in content(workspace / "all").items() if data is None} == {
        "empty",
        "empty/inner",
        "pkg",
    }
    (workspace / "some").mkdir()
    copy_into(plan(root, include_glob=("*.sh",)), str(workspace / "some"))
    assert content(workspace / "some") == {"pkg": None, "pkg/b.sh": SCRIPT}


def test_several_mounts_of_several_roots(root: Path, workspace: Path) -> None:
    second = root.parent / "second"
    second.mkdir()
    (second / "one").write_text("1")
    (second / "two").write_text("2")
    mounts = [HostMount("src"), HostMount("one", mount_path="src/x/y/one"), HostMount("other"), HostMount("two")]
    copy_into(plan_mounts(mounts, [str(root), str(second)], look_at), str(workspace))
    assert {path: data for path, data in content(workspace).items() if data is not None} == {
        "src/a.py": BINARY, "src/pkg/b.sh": SCRIPT, "src/x/y/one": b"1", "other/c.txt": b"other", "two": b"2",
    }  # fmt: skip


def test_more_directories_than_there_are_descriptors(root: Path, workspace: Path) -> None:
    for number in range(64):
        (root / "src" / str(number)).mkdir()
        (root / "src" / str(number) / "file").write_text(str(number))
    made = plan(root)
    os.close(free := os.open("/", os.O_RDONLY))  # the lowest that is
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 16, hard))
    try:
        copy_into(made, str(workspace))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [(workspace / str(number) / "file").read_text() for number in range(64)] == [*map(str, range(64))]


def test_an_empty_plan_copies_nothing(workspace: Path) -> None:
    copy_into(MountPlan(), str(workspace))
    assert content(workspace) == {}


def test_a_tree_as_deep_as_a_plan_goes(root: Path, workspace: Path) -> None:
    way = "/".join(["d"] * (SEGMENTS - 1))
    (root / "src" / way).mkdir(parents=True)
    (root / "src" / way / "file").write_text("deep")
    copy_into(plan(root), str(workspace))
    assert (workspace / way / "file").read_text() == "deep"


@pytest.mark.parametrize(
    "name",
    ["with\nnewline", "$HOME", "back\\slash", "-rf", "'\"`", "grüße 🎉", "\x01\x7f", "*[?", " ", "ü" * 127, "..."],
)
def test_odd_names_are_names(root: Path, workspace: Path, name: str) -> None:
    (root / "src" / name).mkdir()
    (root / "src" / name / name).write_text(name)
    copy_into(plan(root), str(workspace))
    assert (workspace / name / name).read_text() == name


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=12).filter(
    lambda name: name not in (".", "..")
)
TREES = st.recursive(
    st.dictionaries(NAMES, st.binary(max_size=20), max_size=4),
    lambda inner: st.dictionaries(NAMES, st.one_of(st.binary(max_size=20), inner), max_size=4),
    max_leaves=8,
)


def make(directory: Path, tree: dict[str, Any]) -> None:
    for name, part in tree.items():
        if isinstance(part, bytes):
            (directory / name).write_bytes(part)
        else:
            (directory / name).mkdir()
            make(directory / name, part)


@given(TREES)
@example({"a": {"b": {"c": {}}}, "a ": b""})
def test_any_tree_is_copied_as_it_is(tree: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as place:
        source, target = Path(place, "src"), Path(place, "copy")
        source.mkdir()
        target.mkdir()
        make(source, tree)
        copy_into(plan(Path(place)), str(target))
        assert content(target) == content(source)


# Where it is copied to


def test_everything_belongs_to_the_owner(root: Path, workspace: Path) -> None:
    """Another owner where the tests run as root, which alone can give a file away."""
    owner = (STRANGER, STRANGER + 1) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    (root / "src" / "x" / "y").mkdir(parents=True)
    (root / "src" / "x" / "y" / "z").touch(mode=0o4755)
    copy_into(plan(root), str(workspace), owner)
    copies = [workspace, *workspace.rglob("*")]
    assert len(copies) == 7
    assert {(path.stat().st_uid, path.stat().st_gid) for path in copies} == {owner}
    assert mode(workspace / "x" / "y" / "z") == 0o755
    assert mode(workspace) == 0o700


def test_without_an_owner_everything_belongs_to_this_user(root: Path, workspace: Path) -> None:
    copy_into(plan(root), str(workspace))
    assert {path.stat().st_uid for path in (workspace, *workspace.rglob("*"))} == {os.geteuid()}


def test_only_root_gives_an_owner(open_directory: str) -> None:
    with ordinary_user(), pytest.raises(PathError, match="Operation not permitted"):
        copy_into(MountPlan(), open_directory, (STRANGER + 1, STRANGER + 1))


@pytest.mark.parametrize("there", ["file", "link", "dangling link", "directory"])
def test_what_is_there_already_is_neither_changed_nor_followed(root: Path, workspace: Path, there: str) -> None:
    outside = root.parent / "secret"
    place = workspace / "a.py"
    if there == "file":
        place.write_text("there")
    elif there == "directory":
        place.mkdir()
    else:
        place.symlink_to(outside if there == "link" else root.parent / "new")
    before = (os.lstat(place), outside.read_bytes())
    with pytest.raises(PathError, match="File exists"):
        copy_into(plan(root), str(workspace))
    assert (os.lstat(place), outside.read_bytes()) == before
    assert not (root.parent / "new").exists()


def test_a_link_in_the_place_of_a_directory_is_not_followed(root: Path, workspace: Path) -> None:
    (workspace / "pkg").symlink_to(root.parent / "beside")
    with pytest.raises(PathError, match="File exists"):
        copy_into(plan(root), str(workspace))
    assert sorted(os.listdir(root.parent / "beside")) == ["a.py", "secret"]


def test_a_full_disk(root: Path, workspace: Path) -> None:
    made = plan(root)
    with full_disk(room=4), pytest.raises(DiskFull) as caught:
        copy_into(made, str(workspace))
    assert caught.value.path == str(workspace)

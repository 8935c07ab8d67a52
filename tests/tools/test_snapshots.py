"""Snapshots of a workspace: what comes back, what does not, and that a hostile workspace is put back inside only."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import SnapshotFailed, UnsafeDirectory
from podbot.guest.local import LocalGuest
from podbot.tools import SnapshotableFilesystem, SnapshotFilesystem, SnapshotLimits, SnapshotStore, WorkspaceSnapshot
from podbot.tools.files import Files
from podbot.tools.snapshot_manifest import Kept, entries_from, manifest_text
from tests.faults import open_below
from tests.inside import PROGRAM
from tests.tools.workers import files_in, patient

NOW = datetime(2031, 1, 2, tzinfo=UTC)
MIB = 1 << 20
OLD = 1_000_000_000  # seconds since the epoch


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(str(tmp_path / "store"))


@pytest.fixture
def fs(files: Files, store: SnapshotStore) -> SnapshotFilesystem:
    return SnapshotFilesystem(files, store, clock=lambda: NOW)


def tree(root: Path) -> dict[str, tuple[int, Any]]:
    """What is below ``root``: the permissions, and the content, the target or the kind."""
    found: dict[str, tuple[int, Any]] = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        what: Any = stat.S_IFMT(mode)
        if stat.S_ISREG(mode):
            what = path.read_bytes()
        elif stat.S_ISLNK(mode):
            what = os.readlink(path)
        found[str(path.relative_to(root))] = (stat.S_IMODE(mode) if not stat.S_ISLNK(mode) else 0, what)
    return found


def fill(root: Path) -> None:
    (root / "src" / "empty").mkdir(parents=True)
    (root / "src" / "a.py").write_text("one\n")
    (root / "src" / "run").write_bytes(b"\xff\0")
    (root / "src" / "run").chmod(0o755)
    (root / "large").write_bytes(os.urandom(2 * MIB + 3))
    (root / "nothing").touch(mode=0o600)
    (root / "café").mkdir(mode=0o700)
    (root / "café" / "$HOME -rf\n").write_text("x")
    (root / "link").symlink_to("src/a.py")
    (root / "out").symlink_to("../outside")
    (root / "dangling").symlink_to(b"\xff/nowhere")


def test_everything_comes_back(fs: SnapshotFilesystem, root: Path) -> None:
    fill(root)
    before = tree(root)
    made = fs.snapshot(tag="before")
    assert isinstance(fs, SnapshotableFilesystem)
    assert isinstance(made, WorkspaceSnapshot)
    assert (made.tag, made.created_at, made.root_path) == ("before", NOW, "/workspace")
    assert tree(root) == before
    for name in os.listdir(root):
        path = root / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    fs.restore(made)
    assert tree(root) == before
    fs.restore(made)
    assert tree(root) == before


def test_each_kind_of_change_is_undone_and_the_rest_is_left_alone(fs: SnapshotFilesystem, root: Path) -> None:
    fill(root)
    (root / "kept").write_text("kept")
    before = tree(root)
    made = fs.snapshot()
    inode = (root / "kept").stat().st_ino
    (root / "src" / "a.py").write_text("two\n")  # of the same size
    (root / "src" / "run").chmod(0o644)
    (root / "src" / "new" / "deep").mkdir(parents=True)
    (root / "src" / "new" / "deep" / "file").write_text("x")
    (root / "large").unlink()
    (root / "large").mkdir()
    (root / "large" / "inside").write_text("x")
    shutil.rmtree(root / "src" / "empty")
    (root / "src" / "empty").write_text("a file in place of a directory")
    (root / "link").unlink()
    (root / "link").symlink_to("elsewhere")
    (root / "out").unlink()
    (root / "out").write_text("a file in place of a link")
    (root / "nothing").unlink()
    (root / "nothing").symlink_to("kept")
    os.mkfifo(root / "fifo")
    (root / "café").chmod(0o500)
    fs.restore(made)
    assert tree(root) == before
    assert (root / "kept").stat().st_ino == inode


def test_snapshots_are_independent_and_share_what_they_have_in_common(
    fs: SnapshotFilesystem, store: SnapshotStore, root: Path
) -> None:
    (root / "large").write_bytes(b"x" * MIB)
    made = []
    for version in range(3):
        fs.write("a", str(version))
        made.append(fs.snapshot())
    assert len({one.commit_ref for one in made}) == 3
    for version in (1, 0, 2, 1):
        fs.restore(made[version])
        assert fs.read("a").content == str(version)
    assert len([path for path in Path(store.directory).rglob("*") if path.stat().st_size == MIB]) == 1


def test_a_file_that_was_not_changed_is_not_read_again(fs: SnapshotFilesystem, root: Path) -> None:
    """Its content is taken from the store, which this test shows by a change that only root or a lie can make."""
    (root / "a").write_text("old")
    os.utime(root / "a", (OLD, OLD))
    first = fs.snapshot()
    again = fs.snapshot()
    (root / "a").write_text("new")
    os.utime(root / "a", (OLD, OLD))  # as a program hides a change: the time of the inode's stays
    third = fs.snapshot()
    fs.restore(first)
    assert (root / "a").read_text() == "old"
    fs.restore(third)
    assert (root / "a").read_text() == "new"
    fs.restore(again)
    assert (root / "a").read_text() == "old"


def test_directories_that_deny_access_are_restored(fs: SnapshotFilesystem, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "a").write_text("x")
    (root / "d" / "a").chmod(0o400)
    (root / "d").chmod(0o555)
    before = tree(root)
    made = fs.snapshot()
    (root / "d").chmod(0o700)
    (root / "d" / "a").unlink()
    (root / "d" / "b").mkdir()
    (root / "d" / "b" / "c").mkdir(mode=0)
    (root / "d" / "b").chmod(0)
    (root / "d").chmod(0)
    fs.restore(made)
    assert tree(root) == before
    (root / "d").chmod(0o700)


def test_fifos_sockets_and_devices_are_left_out(fs: SnapshotFilesystem, root: Path) -> None:
    os.mkfifo(root / "fifo")
    os.mkfifo(root / "gone")
    made = fs.snapshot()
    (root / "gone").unlink()
    (root / "gone").write_text("x")
    (root / "new").mkdir()
    os.mkfifo(root / "new" / "fifo")
    fs.restore(made)
    assert {name: kind for name, (_, kind) in tree(root).items()} == {"fifo": stat.S_IFIFO}


def test_set_user_id_bits_are_not_restored(fs: SnapshotFilesystem, root: Path) -> None:
    (root / "a").write_text("x")
    (root / "a").chmod(0o4755)
    made = fs.snapshot()
    (root / "a").unlink()
    fs.restore(made)
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o755


def test_what_cannot_be_kept_is_refused(files: Files, store: SnapshotStore, root: Path) -> None:
    def refused(reason: str, **limits: int) -> None:
        with pytest.raises(SnapshotFailed, match=reason):
            SnapshotFilesystem(files, store, limits=SnapshotLimits(**limits)).snapshot()

    (root / "a").write_text("123")
    (root / "b").write_text("456")
    refused("with b, the files have more bytes than the limit", content_bytes=5)
    refused("more than 1 entries", entries=1)
    with (root / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    refused("with sparse, the files have more bytes", content_bytes=1 << 30)
    (root / "sparse").unlink()
    os.mkdir(os.fsencode(root) + b"/\xff")
    refused(r"the name \\xff is not UTF-8")
    os.rmdir(os.fsencode(root) + b"/\xff")
    deep = root
    for _ in range(65):
        deep /= "d"
        deep.mkdir()
    refused("more than 64 levels deep")
    assert [name for name in os.listdir(store.directory) if name.startswith(".new")] == []


def test_more_entries_than_one_answer_has(guest: LocalGuest, store: SnapshotStore, root: Path) -> None:
    for number in range(2100):
        (root / f"d{number % 3}").mkdir(exist_ok=True)
        (root / f"d{number % 3}" / f"{number}").write_text(str(number))
    (root / "d1-").mkdir()
    before = tree(root)
    with patient(guest, root) as files:
        fs = SnapshotFilesystem(files, store)
        made = fs.snapshot()
        for number in range(0, 2100, 7):
            (root / f"d{number % 3}" / f"{number}").unlink()
        fs.restore(made)
    assert tree(root) == before


def test_nothing_that_an_agent_makes_prevents_a_restore(files: Files, store: SnapshotStore, root: Path) -> None:
    """None of it could be in a snapshot."""
    fs = SnapshotFilesystem(files, store, limits=SnapshotLimits(entries=2, content_bytes=1))
    (root / "d").mkdir()
    (root / "d" / "a").write_text("x")
    before, made = tree(root), fs.snapshot()
    for number in range(50):
        (root / "d" / f"{number}").write_text("xx")
    os.makedirs(os.fsencode(root) + b"/d/\xff/\xfe")
    (root / "d" / "\U0001f389").touch()
    for start in (root, root / "d"):
        deep = start
        for _ in range(70):
            deep /= "e"
            deep.mkdir()
        (deep / "file").touch()
        deep.chmod(0)
    fs.restore(made)
    assert tree(root) == before


def test_a_store_that_was_changed_restores_nothing(fs: SnapshotFilesystem, store: SnapshotStore, root: Path) -> None:
    (root / "a").write_text("old")
    made = fs.snapshot()
    (root / "a").write_text("new!")
    (content,) = [path for path in Path(store.directory).rglob("*") if path.is_file() and path.stat().st_size == 3]
    content.write_text("OWN")
    with pytest.raises(SnapshotFailed, match="it has been changed"):
        fs.restore(made)
    assert (root / "a").read_text() == "new!"
    content.unlink()
    with pytest.raises(SnapshotFailed, match="its store lacks the content of a"):
        fs.restore(made)
    manifest = Path(store.directory, made.commit_ref[:2], made.commit_ref[2:])
    manifest.write_bytes(manifest_text({("..", "x"): Kept("link", 0, 0, target=b"/")}))
    with pytest.raises(SnapshotFailed, match="it has been changed"):
        fs.restore(made)
    for ref in ("", "../x", "0" * 64):
        with pytest.raises(SnapshotFailed):
            fs.restore(WorkspaceSnapshot(made.snapshot_id, NOW, ref, "/workspace"))
    assert (os.listdir(root), (root / "a").read_text()) == (["a"], "new!")


def test_another_program_restores_with_the_same_directory(
    fs: SnapshotFilesystem, files: Files, store: SnapshotStore, root: Path
) -> None:
    (root / "a").write_text("old")
    made = fs.snapshot()
    (root / "a").unlink()
    SnapshotFilesystem(files, SnapshotStore(store.directory)).restore(made)
    assert (root / "a").read_text() == "old"


def test_a_store_of_its_own_is_removed(files: Files, root: Path) -> None:
    (root / "a").write_text("x")
    with SnapshotFilesystem(files) as fs:
        made = fs.snapshot()
        opened = [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("podbot-snapshots-")]
        assert opened
    fs.close()
    with pytest.raises(SnapshotFailed, match="No such file"):
        fs.restore(made)


def test_a_store_is_this_users_alone(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    SnapshotStore(str(tmp_path / "shared"))
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o700
    (tmp_path / "link").symlink_to("shared")
    with pytest.raises(UnsafeDirectory):
        SnapshotStore(str(tmp_path / "link"))


@given(st.dictionaries(st.lists(st.text("abé\n", min_size=1), min_size=1, max_size=3).map(tuple), st.builds(
    Kept, st.sampled_from(["file", "directory", "link", "other"]), st.integers(0, 1 << 50), st.integers(0, 0o777),
    st.text("0f", max_size=4), st.binary(max_size=4), st.text("1.", max_size=4),
)))  # fmt: skip
def test_a_manifest_comes_back(entries: dict[tuple[str, ...], Kept]) -> None:
    assert entries_from(manifest_text(entries)) == entries


# --- hostile ---------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c"])
MADE = st.tuples(
    st.lists(NAMES, min_size=1, max_size=3),
    st.sampled_from(["file", "directory", "out", "up", "itself", "fifo", "remove", "deny"]),
)


@pytest.fixture(scope="module")
def beside() -> Iterator[tuple[SnapshotFilesystem, Path, Path]]:
    with tempfile.TemporaryDirectory() as place, LocalGuest.start(program=PROGRAM) as guest:
        root, outside = Path(place, "root"), Path(place, "outside")
        for directory in (root, outside):
            directory.mkdir()
        (outside / "a").write_text("SECRET")
        with files_in(guest, root) as files, SnapshotFilesystem(files) as fs:
            yield fs, root, outside


TARGETS = {"out": "../outside", "up": "..", "itself": "a"}


def change(root: Path, words: list[str], what: str) -> None:
    """As an agent would; nothing where the path leads through a file or a link."""
    path = root
    for word in words[:-1]:
        path /= word
        if not is_directory(path) and os.path.lexists(path):
            return
        path.mkdir(exist_ok=True)
        path.chmod(0o700)
    path /= words[-1]
    if what == "deny":
        if is_directory(path):
            path.chmod(0)
        return
    remove(path)
    if what == "file":
        path.write_text("/".join(words))
    elif what == "directory":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    elif what in TARGETS:
        path.symlink_to(TARGETS[what])


def is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def remove(path: Path) -> None:
    if is_directory(path):
        path.chmod(0o700)
        for below in path.iterdir():
            remove(below)
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


@given(st.lists(MADE, max_size=8), st.lists(MADE, max_size=8))
def test_a_restore_makes_the_tree_what_it_was_and_touches_nothing_outside(
    beside: tuple[SnapshotFilesystem, Path, Path],
    before: list[tuple[list[str], str]],
    after: list[tuple[list[str], str]],
) -> None:
    fs, root, outside = beside
    for name in os.listdir(root):
        change(root, [name], "remove")
    for words, what in before:
        change(root, words, "file" if what == "deny" else what)
    expected = tree(root)
    made = fs.snapshot()
    for words, what in after:
        change(root, words, what)
    fs.restore(made)
    found = tree(root)
    lost = {path for path, (_, kind) in expected.items() if kind == stat.S_IFIFO} - set(found)
    assert found == {path: what for path, what in expected.items() if path not in lost}
    assert (os.listdir(outside), (outside / "a").read_text()) == (["a"], "SECRET")
    assert sorted(os.listdir(root.parent)) == ["outside", "root"]


def test_no_descriptor_stays_open(fs: SnapshotFilesystem, store: SnapshotStore, root: Path) -> None:
    fill(root)
    fs.restore(fs.snapshot())
    assert open_below(store.directory) == []

"""What a hostile agent, or a files worker that lies, does to snapshots."""

from __future__ import annotations

import itertools
import mmap
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podbot.errors import SnapshotFailed
from podbot.guest.local import LocalGuest
from podbot.tools import SnapshotFilesystem, SnapshotStore
from podbot.tools.files import Files
from podbot.tools.results import Entry
from tests.tools.workers import patient
from tests.waiting import wait_until

BITS = 0o777


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(str(tmp_path / "store"))


@pytest.fixture
def fs(files: Files, store: SnapshotStore) -> SnapshotFilesystem:
    return SnapshotFilesystem(files, store)


def bits(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_change_that_the_kernel_does_not_note_is_restored_by_reading_all(
    files: Files, store: SnapshotStore, root: Path
) -> None:
    """The kernel notes the first write to a page of a mapped file, and not the next ones."""
    (root / "a").write_text("old")
    with (root / "a").open("r+b") as file, mmap.mmap(file.fileno(), 3) as mapped:
        mapped[0:3] = b"old"
        wait_until(lambda: files.piece(("a",)).stamp != "")
        with SnapshotFilesystem(files, store, reads_all=True) as fs:
            made = fs.snapshot()
            mapped[0:3] = b"new"
            assert fs.snapshot().commit_ref != made.commit_ref
            fs.restore(made)
    assert (root / "a").read_text() == "old"


def test_a_root_that_denies_access_is_restored(fs: SnapshotFilesystem, root: Path) -> None:
    (root / "a").write_text("x")
    made = fs.snapshot()
    (root / "a").unlink()
    root.chmod(0o055)
    fs.restore(made)
    assert (bits(root), (root / "a").read_text()) == (0o755, "x")


def test_permissions_are_restored_on_no_other_name_of_the_file(
    fs: SnapshotFilesystem, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    outside.chmod(0o600)
    for name in ("a", "b"):
        (root / name).write_text("x")
    (root / "a").chmod(0o755)
    made = fs.snapshot()
    for name in ("a", "b"):
        (root / name).unlink()
        (root / name).hardlink_to(outside)
    fs.restore(made)
    assert (bits(root / "a"), bits(root / "b"), bits(outside)) == (0o755, 0o644, 0o600)


def test_permissions_of_files_are_not_changed_in_place(files: Files, root: Path) -> None:
    (root / "a").touch(mode=0o600)
    with pytest.raises(ValueError, match="not a directory"):
        files.set_bits(("a",), BITS)
    assert bits(root / "a") == 0o600


def test_any_number_of_entries_is_restored(guest: LocalGuest, store: SnapshotStore, root: Path) -> None:
    """More than one directory's names that a worker holds, of which each answer has the first."""
    with patient(guest, root) as files:
        fs = SnapshotFilesystem(files, store)
        (root / "z").mkdir()
        (root / "z" / "kept").write_text("x")
        made = fs.snapshot()
        for number in range(4005):
            (root / "z" / f"{number}").symlink_to("x")
            (root / f"{number}").symlink_to("x")
        for number in range(1001):
            os.symlink("x", os.fsencode(root) + b"/z/\xff%d" % number)
        fs.restore(made)
    assert (os.listdir(root), os.listdir(root / "z")) == (["z"], ["kept"])


class Lying(Files):
    """Says that there are the entries ``rows``."""

    def __init__(self, rows: Iterator[Entry]) -> None:
        self._rows = rows
        self.asked = 0

    def inventory(self, *, after: str = "", clear: bool = False) -> tuple[tuple[Entry, ...], bool]:
        del after, clear
        self.asked += 1
        page = tuple(itertools.islice(self._rows, 2000))
        return page, bool(page)

    def rm(self, path: Any, *, recursive: bool = True, unlock: bool = False) -> Any:
        del path, recursive, unlock


def test_a_list_without_an_end_ends_a_restore(store: SnapshotStore) -> None:
    made = SnapshotFilesystem(Lying(iter(())), store).snapshot()
    inside = (Entry(("d", f"{number:09}"), "file", 0, 0o644, "", b"") for number in itertools.count())
    lying = Lying(itertools.chain((Entry(("d",), "directory", 0, 0o755, "", b""),), inside))
    with pytest.raises(SnapshotFailed, match="more than 1,000,000 entries too many"):
        SnapshotFilesystem(lying, store).restore(made)
    assert lying.asked == 501


def test_a_snapshot_whose_list_no_restore_would_read_is_refused(store: SnapshotStore) -> None:
    words = ("é" * 127,) * 63
    rows = (Entry((*words, f"{number:09}"), "directory", 0, 0o755, "", b"") for number in range(100_000))
    with pytest.raises(SnapshotFailed, match="too long together"):
        SnapshotFilesystem(Lying(rows), store).snapshot()

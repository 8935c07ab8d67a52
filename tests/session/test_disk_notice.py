"""A session that starts on a nearly full disk reports that."""

from __future__ import annotations

from pathlib import Path

import pytest

from podbot.container_spec import Mount
from podbot.machine import Disk
from podbot.session.disk_notice import LOW_MEGABYTES, full_disks, low_disks, written

WORKSPACE = Mount("/src/shop", "/src/shop")
STORE = "/store/overlay/0a1b/diff"
LOW = LOW_MEGABYTES * 1_000_000 - 1


@pytest.fixture
def disks() -> dict[str, Disk]:
    return {WORKSPACE.source: Disk(WORKSPACE.source, LOW + 1, 1), STORE: Disk(STORE, LOW + 1, 2)}


def low(found: dict[str, Disk], path: str, device: int) -> None:
    found[path] = Disk(path, LOW, device)


def test_enough_room_gives_no_notice(disks: dict[str, Disk]) -> None:
    assert list(low_disks(WORKSPACE, STORE, look=disks.get)) == []


def test_each_file_system_that_runs_low(disks: dict[str, Disk]) -> None:
    low(disks, WORKSPACE.source, 1)
    (event,) = low_disks(WORKSPACE, STORE, look=disks.get)
    assert (event.level, event.kind, event.fields) == (
        "notice",
        "disk.low",
        {"path": "/src/shop", "free": LOW, "inodes": None},
    )
    assert "999 MB are free on the file system of the workspace (/src/shop)" in event.message
    low(disks, STORE, 2)
    assert [event.fields["path"] for event in low_disks(WORKSPACE, STORE, look=disks.get)] == [STORE, "/src/shop"]


def test_a_file_system_without_a_free_inode_is_reported_however_much_room_it_has(disks: dict[str, Disk]) -> None:
    disks[STORE] = Disk(STORE, LOW + 1, 2, inodes=0)
    (event,) = low_disks(WORKSPACE, STORE, look=disks.get)
    place = f"the file system of the sandbox's own files ({STORE})"
    assert (event.kind, event.message) == ("disk.low", f"no inode is free on {place}, so no file can be made there")
    (event,) = full_disks(written(WORKSPACE), STORE, look=disks.get)
    said = f"out of inodes: no file can be made on {place}, although 1000 MB are free"
    assert (event.kind, event.message, event.fields["inodes"]) == ("disk.full", said, 0)
    disks[STORE] = Disk(STORE, 0, 2, inodes=0)
    (event,) = full_disks(written(WORKSPACE), STORE, look=disks.get)
    assert event.message == f"the disk is full: 0 MB are free on {place}"
    disks[STORE] = Disk(STORE, LOW + 1, 2, inodes=1)
    assert list(full_disks(written(WORKSPACE), STORE, look=disks.get)) == []


def test_one_file_system_is_reported_once(disks: dict[str, Disk]) -> None:
    low(disks, WORKSPACE.source, 1)
    low(disks, STORE, 1)
    assert len(list(low_disks(WORKSPACE, STORE, look=disks.get))) == 1


def test_directories_that_the_agent_cannot_write_do_not_matter(disks: dict[str, Disk]) -> None:
    low(disks, WORKSPACE.source, 1)
    assert list(low_disks(Mount("/src/shop", "/src/shop", read_only=True), "", look=disks.get)) == []
    assert list(low_disks(None, "", look=disks.get)) == []
    assert [written(None), written(Mount("/src", "/w", read_only=True)), written(WORKSPACE)] == ["", "", "/src/shop"]


def test_a_directory_that_cannot_be_checked_gives_no_notice(disks: dict[str, Disk]) -> None:
    disks.clear()
    assert list(low_disks(WORKSPACE, STORE, look=disks.get)) == []


def test_the_real_one(tmp_path: Path) -> None:
    (event,) = low_disks(Mount(str(tmp_path), "/w"), str(tmp_path / "gone" / "diff"), low_megabytes=1 << 40)
    assert event.fields["free"] > 0

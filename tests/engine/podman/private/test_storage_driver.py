"""Which driver an ordinary user's new store gets, and the storage.conf that tells the user's own podman."""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.engine.podman.private.storage_driver import driver_to_request, storage_is_chosen, write_storage_conf
from tests.faults import full_disk

WORKSTATION = PodmanFacts(uid=1000, programs={"podman": "/usr/bin/podman"})
DEBIAN = (4, 3)  # Debian 12's Podman


@pytest.mark.parametrize(
    ("change", "chosen", "driver"),
    [
        ({}, False, "overlay"),
        ({}, True, ""),
        ({"uid": 0}, False, ""),
        ({"kernel": (5, 10)}, False, ""),
        ({"kernel": (5, 10), "programs": {"fuse-overlayfs": "/f"}}, False, "overlay"),
        ({"kernel": (5, 10), "programs": {"fuse-overlayfs": "/f"}, "dev_fuse": False}, False, ""),
    ],
)
def test_an_ordinary_user_does_not_get_the_vfs_driver(change: dict[str, Any], chosen: bool, driver: str) -> None:
    assert driver_to_request(replace(WORKSTATION, **change), chosen=chosen) == driver


@pytest.mark.parametrize("driver", ["vfs", "btrfs"])
def test_a_storage_conf_or_a_store_with_another_driver_counts_as_chosen(tmp_path: Path, driver: str) -> None:
    environ = {"HOME": str(tmp_path), "STORAGE_DRIVER": "btrfs"}
    root = str(tmp_path / "machine")
    assert storage_is_chosen(environ, root)
    del environ["STORAGE_DRIVER"]
    store(tmp_path, "overlay")
    assert not storage_is_chosen(environ, root)
    store(tmp_path, driver)
    assert storage_is_chosen(environ, root)


def store(home: Path, driver: str) -> None:
    """The user's Podman store."""
    (home / ".local/share/containers/storage" / f"{driver}-images").mkdir(parents=True)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Of a user with an overlay store."""
    store(tmp_path, "overlay")
    return {"HOME": str(tmp_path)}


@pytest.mark.parametrize("chosen", [False, True])
def test_the_storage_conf_that_podbot_writes_names_the_driver_and_is_a_choice(
    environ: dict[str, str], tmp_path: Path, chosen: bool
) -> None:
    environ |= {"XDG_CONFIG_HOME": str(tmp_path / "c")} if chosen else {}
    path = Path(write_storage_conf(environ, WORKSTATION, DEBIAN, "overlay"))
    assert path == tmp_path / ("c" if chosen else ".config") / "containers" / "storage.conf"
    assert tomllib.loads(path.read_text()) == {"storage": {"driver": "overlay"}}
    assert os.listdir(path.parent) == ["storage.conf"]
    assert storage_is_chosen(environ, str(tmp_path / "machine"))


@pytest.mark.parametrize(
    ("kernel", "version", "written"),
    [
        ((6, 1), (4, 0), True),
        ((6, 1), (4, 5), True),
        ((6, 1), (4, 6), False),  # it uses the driver of the store that is there
        ((6, 1), (5, 4), False),
        ((6, 1), (), False),
        ((5, 10), (4, 0), False),  # it would not find fuse-overlayfs any more
        ((5, 10), (4, 3), True),
    ],
)
def test_a_storage_conf_is_written_where_podman_needs_it(
    environ: dict[str, str], kernel: tuple[int, int], version: tuple[int, ...], written: bool
) -> None:
    facts = replace(WORKSTATION, kernel=kernel)
    assert bool(write_storage_conf(environ, facts, version, "overlay")) is written


@pytest.mark.parametrize("other", ["btrfs", ""])
def test_none_is_written_for_a_store_with_another_driver_or_for_no_store(tmp_path: Path, other: str) -> None:
    if other:
        store(tmp_path, other)
    assert not write_storage_conf({"HOME": str(tmp_path)}, WORKSTATION, DEBIAN, "overlay")
    assert not (tmp_path / ".config").exists()


def test_a_storage_conf_of_the_users_is_never_changed(environ: dict[str, str], tmp_path: Path) -> None:
    theirs = tmp_path / ".config/containers/storage.conf"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("[storage]\n")
    assert not write_storage_conf(environ, WORKSTATION, DEBIAN, "overlay")
    assert theirs.read_text() == "[storage]\n"
    assert os.listdir(theirs.parent) == ["storage.conf"]


def test_no_link_is_followed_out_of_the_configuration(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".config/containers").mkdir(parents=True)
    (tmp_path / ".config/containers/storage.conf").symlink_to(tmp_path / "elsewhere")
    assert not write_storage_conf(environ, WORKSTATION, DEBIAN, "overlay")
    assert not (tmp_path / "elsewhere").exists()


def test_nothing_of_the_working_directory_is_read_or_written(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    (work / "here/containers/storage/vfs-images").mkdir(parents=True)
    (work / "here/containers/storage.conf").write_text("")
    monkeypatch.chdir(work)
    relative = environ | {"XDG_CONFIG_HOME": "here", "XDG_DATA_HOME": "here"}
    assert not storage_is_chosen(relative, str(tmp_path / "machine"))
    path = write_storage_conf(relative, WORKSTATION, DEBIAN, "overlay")
    assert path == str(tmp_path / ".config/containers/storage.conf")


def test_a_home_in_which_nothing_can_be_made_is_left_alone(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".config").write_text("")
    assert not write_storage_conf(environ, WORKSTATION, DEBIAN, "overlay")


@pytest.mark.parametrize("room", [0, 30])
def test_a_disk_without_room_leaves_no_part_of_a_file(environ: dict[str, str], room: int, tmp_path: Path) -> None:
    with full_disk(room):
        assert not write_storage_conf(environ, WORKSTATION, DEBIAN, "overlay")
    assert not os.listdir(tmp_path / ".config/containers")

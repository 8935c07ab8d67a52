from __future__ import annotations

import os
from pathlib import Path

import pytest

from podbot.errors import MountRefused
from podbot.launch.types import Mount
from podbot.session import workspace
from podbot.session.workspace import verified_mount


@pytest.fixture
def source(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "a" / "proj"
    made.mkdir(parents=True)
    return made


def open_handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def mount(source: Path, *, read_only: bool = False) -> Mount:
    return Mount(str(source), "/workspace", read_only)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_directory_that_stayed_what_it_was(source: Path, read_only: bool) -> None:
    before = open_handles()
    with verified_mount(mount(source, read_only=read_only)):
        (source / "work").write_text("goes on")
    assert open_handles() == before


def refused(source: Path, *, read_only: bool = False) -> MountRefused:
    before = open_handles()
    with pytest.raises(MountRefused) as caught, verified_mount(mount(source, read_only=read_only)):
        pytest.fail("the engine would have been asked")
    assert open_handles() == before
    assert caught.value.path == str(source)
    return caught.value


def test_the_directory_became_a_link(source: Path) -> None:
    elsewhere = source.parent / "elsewhere"
    source.rename(elsewhere)
    source.symlink_to(elsewhere)
    assert "no longer" in refused(source).reason


def test_a_parent_became_a_link(source: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    source.parent.rename(moved)
    source.parent.symlink_to(moved)
    assert "became a link" in refused(source).reason


def test_the_directory_became_a_file(source: Path) -> None:
    source.rmdir()
    source.write_text("x")
    refused(source)


def test_the_directory_is_gone(source: Path) -> None:
    source.rmdir()
    refused(source)


@pytest.mark.parametrize("replacement", ["nothing", "directory", "link"])
def test_a_swap_while_the_engine_was_at_work(source: Path, replacement: str) -> None:
    def swap() -> None:
        source.rename(source.parent / "aside")
        if replacement == "directory":
            source.mkdir()
        elif replacement == "link":
            source.symlink_to(source.parent / "aside")

    with pytest.raises(MountRefused, match="took its place"), verified_mount(mount(source)):
        swap()


def test_a_failure_inside_is_the_one_that_is_seen(source: Path) -> None:
    def fail() -> None:
        source.rmdir()
        raise KeyError

    with pytest.raises(KeyError), verified_mount(mount(source)):
        fail()


def test_a_read_only_source_holds_no_other_file_system(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "_mount_points", lambda: ["/", str(source), f"{source}x/y"])
    with verified_mount(mount(source, read_only=True)):
        pass
    monkeypatch.setattr(workspace, "_mount_points", lambda: ["/", f"{source}/data set"])
    assert "data set" in refused(source, read_only=True).reason
    with verified_mount(mount(source)):
        pass


def test_mount_points_are_read_from_the_kernel() -> None:
    points = workspace._mount_points()
    assert "/proc" in points
    assert all(point.startswith("/") for point in points)
    assert workspace._unescaped(rb"/a\040b\011c\134040") == "/a b\tc\\040"


def test_elsewhere_than_linux_the_path_is_resolved_again(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "_LINUX", False)
    assert workspace._mount_points() == []
    with verified_mount(mount(source)):
        pass
    moved = source.parent.parent / "moved"
    source.parent.rename(moved)
    source.parent.symlink_to(moved)
    refused(source)

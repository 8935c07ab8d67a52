"""Replacing a file whole, on file systems and with luck of every kind."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.atomic import replace_file, sweep_at
from podbot.errors import DiskFull, PathError
from tests.faults import full_disk

UMASKS = [0o000, 0o022, 0o077, 0o277, 0o777]


@pytest.fixture(params=UMASKS, ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_mode_is_the_requested_one(tmp_path: Path, umask: int, mode: int) -> None:
    path = tmp_path / "f"
    replace_file(str(path), b"one", operation="write", mode=mode)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    path.chmod(0o666)
    replace_file(str(path), b"two", operation="write", mode=mode)
    assert (stat.S_IMODE(path.stat().st_mode), path.read_bytes()) == (mode, b"two")
    assert os.listdir(tmp_path) == ["f"]


def test_a_link_is_replaced_and_its_target_is_unchanged(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("mine")
    (tmp_path / "f").symlink_to(tmp_path / "target")
    replace_file(str(tmp_path / "f"), b"new", operation="write")
    assert not (tmp_path / "f").is_symlink()
    assert (tmp_path / "target").read_text() == "mine"


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    # The kernel writes less than all of it only where a signal or the end of a disk comes at the right moment.
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    replace_file(str(tmp_path / "f"), b"0123456789", operation="write")
    assert (tmp_path / "f").read_bytes() == b"0123456789"


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "fchmod"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_failed_step_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    (tmp_path / "f").write_text("old")

    def fail(*args: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    # Each step and each error in turn; the real full disk is below.
    monkeypatch.setattr(os, call, fail)
    kind = PathError if number == errno.EIO else DiskFull
    with pytest.raises(kind) as caught:
        replace_file(str(tmp_path / "f"), b"new", operation="write the thing")
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["f"]
    assert (tmp_path / "f").read_text() == "old"
    assert "write the thing" in str(caught.value)


def test_a_real_limit_on_a_file_s_size_is_a_full_disk(tmp_path: Path) -> None:
    """As close to ENOSPC as any user gets: the kernel itself refuses the bytes, after the first of them."""
    (tmp_path / "f").write_text("old")
    with full_disk(room=10), pytest.raises(DiskFull):
        replace_file(str(tmp_path / "f"), b"x" * 100, operation="write")
    assert os.listdir(tmp_path) == ["f"]
    assert (tmp_path / "f").read_text() == "old"


def test_a_file_system_that_drops_bytes_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_text("old")
    # No such file system can be mounted without root.
    monkeypatch.setattr(os, "write", lambda fd, data: len(data))
    with pytest.raises(PathError, match="reads back differently"):
        replace_file(str(tmp_path / "f"), b"new", operation="write")
    assert (tmp_path / "f").read_text() == "old"


def test_a_file_system_without_modes_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As FAT does, which cannot be mounted without root.
    monkeypatch.setattr(os, "fchmod", lambda fd, mode: None)
    with pytest.raises(PathError, match="modes"):
        replace_file(str(tmp_path / "f"), b"new", operation="write", mode=0o640)
    assert os.listdir(tmp_path) == []


def test_without_its_directory(tmp_path: Path) -> None:
    with pytest.raises(PathError, match="No such file"):
        replace_file(str(tmp_path / "gone" / "f"), b"new", operation="write")


@given(st.binary(max_size=200_000))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "f"
    replace_file(str(path), data, operation="write")
    assert path.read_bytes() == data


KEPT = [
    "f", ".f", ".f.tmp", "f.0123456789abcdef.tmp", ".g.0123456789abcdef.tmp", ".f.0123456789abcde.tmp",
    ".f.0123456789abcdef0.tmp", ".f.0123456789abcdeF.tmp", ".f.0123456789abcdef.tmp~", ".f.0123456789abcdef.new",
    ".f..0123456789abcde.tmp",
]  # fmt: skip


def test_only_our_own_leavings_are_swept(tmp_path: Path) -> None:
    swept = [".f.0123456789abcdef.tmp", ".f.ffffffffffffffff.tmp"]
    for name in KEPT + swept:
        (tmp_path / name).touch()
    (tmp_path / ".f.aaaaaaaaaaaaaaaa.tmp").mkdir()  # cannot be unlinked: no reason to fail
    directory = os.open(tmp_path, os.O_RDONLY)
    sweep_at(directory, "f")
    os.close(directory)
    assert sorted(os.listdir(tmp_path)) == sorted([*KEPT, ".f.aaaaaaaaaaaaaaaa.tmp"])

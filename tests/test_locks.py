"""A lock in a directory that another process may remove."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from podbot.errors import PathError
from podbot.locks import ATTEMPTS, is_held, locked_in
from podbot.places import private_dir


def test_a_lock_is_taken_once_and_shared_by_those_who_share_it(tmp_path: Path) -> None:
    place, path = str(tmp_path / "s"), str(tmp_path / "s" / "lock")
    pauses: list[float] = []
    first = locked_in(place, "lock", fcntl.LOCK_EX)
    assert first is not None
    assert is_held(path)
    assert locked_in(place, "lock", fcntl.LOCK_SH, sleep=pauses.append) is None
    assert len(pauses) == ATTEMPTS - 1
    os.close(first)
    assert not is_held(path)
    shared = [locked_in(place, "lock", fcntl.LOCK_SH) for _ in range(2)]
    assert None not in shared
    assert locked_in(place, "lock", fcntl.LOCK_EX, sleep=pauses.append) is None
    for descriptor in shared:
        os.close(descriptor or 0)


def test_a_directory_that_is_removed_meanwhile_is_made_again(tmp_path: Path) -> None:
    place = str(tmp_path / "s")
    removals = [True, False]

    def make(path: str) -> None:
        private_dir(path)
        if removals.pop(0):
            shutil.rmtree(path)

    lock = locked_in(place, "lock", fcntl.LOCK_EX, sleep=lambda _seconds: None, make=make)
    assert lock is not None
    assert os.path.samestat(os.fstat(lock), os.stat(tmp_path / "s" / "lock"))
    os.close(lock)


def test_a_lock_on_a_file_that_was_replaced_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory is removed after the file was opened: such a lock excludes nobody."""
    place, removals, flock = tmp_path / "s", [True, False], fcntl.flock

    def locks(descriptor: int, kind: int) -> None:
        if removals.pop(0):
            shutil.rmtree(place)
        flock(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", locks)
    lock = locked_in(str(place), "lock", fcntl.LOCK_EX, sleep=lambda _seconds: None)
    assert lock is not None
    assert os.path.samestat(os.fstat(lock), os.stat(place / "lock"))
    os.close(lock)


def test_a_directory_that_others_keep_removing_is_theirs(tmp_path: Path) -> None:
    def removed(path: str) -> None:
        raise PathError(path=path, operation="read", reason="gone") from FileNotFoundError()

    assert locked_in(str(tmp_path / "s"), "lock", fcntl.LOCK_EX, sleep=lambda _seconds: None, make=removed) is None


def test_what_cannot_be_made_or_opened_is_an_error_with_its_path(tmp_path: Path) -> None:
    def refused(path: str) -> None:
        raise PathError(path=path, operation="read", reason="permission denied") from PermissionError()

    with pytest.raises(PathError, match="permission denied"):
        locked_in(str(tmp_path / "s"), "lock", fcntl.LOCK_EX, make=refused)
    (tmp_path / "s" / "lock").mkdir(parents=True)
    with pytest.raises(PathError, match="lock"):
        locked_in(str(tmp_path / "s"), "lock", fcntl.LOCK_EX)

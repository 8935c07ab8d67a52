from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from podbot.agents.registry import families
from podbot.credentials import login_files
from podbot.credentials.login_files import DEPTH, LIMIT, Tree, scan
from podbot.errors import CredentialUnreadable
from tests.credentials.trees import Home
from tests.faults import ordinary_user
from tests.streams.plumbing import nothing_left_open

READ = os.pread
OPEN = os.open


@pytest.fixture
def home(tmp_path: os.PathLike[str]) -> Home:
    return Home(os.path.join(os.path.realpath(tmp_path), "home"))


def scanned(home: Home) -> Tree:
    return scan(families()["claude"], os.path.join(home.path, ".claude"), limit=LIMIT)


def data(found: Tree) -> dict[str, bytes]:
    return {entry.path: entry.data for entry in found.entries if entry.kind == "file"}


def reasons(found: Tree) -> dict[str, str]:
    return {skipped.path: skipped.reason for skipped in found.skipped}


def on_open(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], None]) -> None:
    """Run a function right before ``name`` is opened, the first time.

    There is no other way to act between the check of a name and its opening.
    """
    done: list[bool] = []

    def opening(path: Any, *args: Any, **kwargs: Any) -> int:
        if path == name and not done:
            done.append(True)
            act()
        return OPEN(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", opening)


def swapped(path: str, make: Callable[[str], None]) -> Callable[[], None]:
    def act() -> None:
        os.rename(path, path + ".away")
        make(path)

    return act


@pytest.mark.parametrize("name", ["file", "directory"])
@pytest.mark.parametrize("kind", ["link", "fifo", "nothing"])
def test_a_name_that_is_swapped_after_the_check(
    home: Home, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    home.write("outside/secret", "never")
    home.write(".claude/directory/x", "x")
    home.write(".claude/file", "x")
    home.write(".claude/settings.json", "kept")
    make: dict[str, Callable[[str], None]] = {
        "link": lambda path: os.symlink(os.path.join(home.path, "outside", "" if name != "file" else "secret"), path),
        "fifo": os.mkfifo,
        "nothing": lambda _path: None,
    }
    on_open(monkeypatch, name, swapped(os.path.join(home.path, ".claude", name), make[kind]))
    found = scanned(home)
    assert data(found)["settings.json"] == b"kept"
    assert b"never" not in data(found).values()
    assert "while it was read" in reasons(found)[name]
    assert name not in {entry.path for entry in found.entries}


def test_a_top_that_became_a_link(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write("outside/secret", "never")
    home.write(".claude/x")
    top = os.path.join(home.path, ".claude")
    on_open(monkeypatch, top, swapped(top, lambda path: os.symlink("outside", path)))
    with pytest.raises(CredentialUnreadable):
        scanned(home)


def changing(monkeypatch: pytest.MonkeyPatch, path: str, *contents: bytes) -> None:
    """After each of the first reads the file is written again in place, before its size is checked."""
    waiting = list(contents)

    def reading(*args: Any) -> bytes:
        part = READ(*args)
        if waiting:
            with open(path, "r+b") as file:
                file.write(new := waiting.pop(0))
                file.truncate(len(new))
            os.utime(path, ns=(0, len(waiting)))
        return part

    monkeypatch.setattr(os, "pread", reading)


def test_a_file_that_changes_once_is_read_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    changing(monkeypatch, home.write(".claude/a", "old"), b"new and longer")
    found = scanned(home)
    assert data(found) == {"a": b"new and longer"}
    assert found.skipped == ()


def test_a_file_that_keeps_changing_is_copied_as_it_was_read(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    changing(monkeypatch, home.write(".claude/a", "0123456789"), *(b"x" * n for n in range(9, 0, -1)))
    found = scanned(home)
    assert set(data(found)["a"]) == set(b"x")
    assert "changed" in reasons(found)["a"]
    assert all(skipped.notify for skipped in found.skipped)


def test_a_shrinking_file_has_the_length_that_was_read(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write(".claude/a", "0123456789")
    # As when it is truncated after the check of its size.
    monkeypatch.setattr(os, "pread", lambda handle, size, offset: READ(handle, min(size, max(0, 4 - offset)), offset))
    assert data(scanned(home)) == {"a": b"0123"}


@pytest.mark.parametrize("name", ["file", "directory"])
def test_an_unreadable_file_is_an_error_that_names_it(open_directory: str, name: str) -> None:
    home = a_strangers(open_directory)
    home.write(".claude/directory/x", mode=0o644)
    home.write(".claude/file", mode=0o644)
    os.chmod(os.path.join(home.path, ".claude", name), 0)
    with ordinary_user(), pytest.raises(CredentialUnreadable) as caught:
        scanned(home)
    assert caught.value.path == os.path.join(home.path, ".claude", name)
    assert caught.value.reason == "Permission denied"


def a_strangers(directory: str) -> Home:
    """A home that any user can read, except for the closed parts in it."""
    return Home(os.path.join(os.path.realpath(directory), "home"))


def test_a_read_that_fails(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def reading(*_args: Any) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    home.write(".claude/file", "x")
    # Of what a test can make, only a broken disk answers so.
    monkeypatch.setattr(os, "pread", reading)
    with pytest.raises(CredentialUnreadable, match="Input/output error"):
        scanned(home)


def test_directories_are_read_to_a_limited_depth(home: Home) -> None:
    home.write(".claude/" + "d/" * (DEPTH + 3) + "x", "x")
    home.write(".claude/y", "y")
    found = scanned(home)
    assert data(found) == {"y": b"y"}
    assert reasons(found) == {"/".join("d" * (DEPTH + 1)): f"it lies more than {DEPTH} directories deep"}


def test_the_order_is_of_the_names_and_not_of_the_directory(home: Home) -> None:
    letters = "badcfehgjilknmporqtsvuxwzy"  # in no file system's order: neither by name nor by age
    for name in (*letters, "directory/e", "directory/d"):
        home.write(f".claude/{name}")
    there = os.listdir(os.path.join(home.path, ".claude"))
    assert there != sorted(there), "or nothing is shown"
    expected = sorted([*letters, "directory", "directory/d", "directory/e"])
    assert [entry.path for entry in scanned(home).entries] == ["", *expected]


def test_no_descriptor_is_left_open(open_directory: str) -> None:
    home = a_strangers(open_directory)
    closed = home.write(".claude/a/b/c", "x", mode=0)
    with nothing_left_open():
        with ordinary_user(), pytest.raises(CredentialUnreadable):
            scanned(home)
        os.chmod(closed, 0o644)
        scanned(home)


def test_an_entrys_repr_does_not_show_its_content() -> None:
    assert "canary" not in repr(Tree((login_files.Entry("a", "file", 0o600, b"canary"),), ()))

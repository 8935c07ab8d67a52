from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from podbot.agents.registry import families
from podbot.credentials import tree
from podbot.credentials.tree import DEPTH, Tree, scan
from podbot.errors import CredentialUnreadable
from tests.credentials.trees import Home

READ = os.pread
OPEN = os.open


@pytest.fixture
def home(tmp_path: os.PathLike[str]) -> Home:
    return Home(os.path.join(os.path.realpath(tmp_path), "home"))


def scanned(home: Home) -> Tree:
    return scan(families()["claude"], os.path.join(home.path, ".claude"))


def data(found: Tree) -> dict[str, bytes]:
    return {entry.path: entry.data for entry in found.entries if entry.kind == "file"}


def reasons(found: Tree) -> dict[str, str]:
    return {skipped.path: skipped.reason for skipped in found.skipped}


def on_open(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], None]) -> None:
    """Do something right before ``name`` is opened, the first time."""
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
def test_a_name_that_is_swapped_after_it_was_looked_at(
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
    """Each of the first reads is followed by the file being written again in place."""
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


def test_a_file_that_keeps_changing_goes_along_as_it_was(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    changing(monkeypatch, home.write(".claude/a", "0123456789"), *(b"x" * n for n in range(9, 0, -1)))
    found = scanned(home)
    assert set(data(found)["a"]) == set(b"x")
    assert "changed" in reasons(found)["a"]
    assert all(skipped.told for skipped in found.skipped)


def test_a_file_that_shrinks_is_as_long_as_what_was_read(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write(".claude/a", "0123456789")
    monkeypatch.setattr(os, "pread", lambda handle, size, offset: READ(handle, min(size, max(0, 4 - offset)), offset))
    assert data(scanned(home)) == {"a": b"0123"}


def failing(monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> None:
    def act() -> None:
        raise OSError(number, os.strerror(number))

    on_open(monkeypatch, name, act)


@pytest.mark.parametrize("name", ["file", "directory"])
def test_what_cannot_be_read_is_an_error_that_names_it(home: Home, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    home.write(".claude/directory/x")
    home.write(".claude/file")
    failing(monkeypatch, name, errno.EACCES)
    with pytest.raises(CredentialUnreadable) as caught:
        scanned(home)
    assert caught.value.path == os.path.join(home.path, ".claude", name)
    assert caught.value.reason == "Permission denied"


def test_a_read_that_fails(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def reading(*_args: Any) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    home.write(".claude/file", "x")
    monkeypatch.setattr(os, "pread", reading)
    with pytest.raises(CredentialUnreadable, match="Input/output error"):
        scanned(home)


def test_directories_are_followed_so_deep_and_no_deeper(home: Home) -> None:
    home.write(".claude/" + "d/" * (DEPTH + 3) + "x", "x")
    home.write(".claude/y", "y")
    found = scanned(home)
    assert data(found) == {"y": b"y"}
    assert reasons(found) == {"/".join("d" * (DEPTH + 1)): f"it lies more than {DEPTH} directories deep"}


def test_the_order_is_of_the_names_and_not_of_the_directory(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b", "a", "c/e", "c/d"):
        home.write(f".claude/{name}")
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda handle: sorted(listed(handle), reverse=True))
    assert [entry.path for entry in scanned(home).entries] == ["", "a", "b", "c", "c/d", "c/e"]


def test_no_descriptor_is_left_open(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write(".claude/a/b/c", "x")
    failing(monkeypatch, "c", errno.EACCES)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(CredentialUnreadable):
        scanned(home)
    scanned(home)
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_entry_does_not_show_what_is_in_it() -> None:
    assert "canary" not in repr(Tree((tree.Entry("a", "file", 0o600, b"canary"),), ()))

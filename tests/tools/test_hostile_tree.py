"""Entries that are no plain files, and trees that change or are larger than memory should hold."""

from __future__ import annotations

import functools
import os
import socket
import tempfile
import threading
from pathlib import Path

import pytest

from podbot.guest.local import LocalGuest
from podbot.tools.files import Files
from tests.inside import PROGRAM
from tests.tools.workers import files_in, patient, refused


@pytest.fixture
def odd(root: Path) -> list[str]:
    """One of each kind that is no file and no directory. Devices: only root makes them."""
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        directory = os.open(root, os.O_PATH)
        bound.bind(f"/proc/self/fd/{directory}/socket")  # the path of a temporary directory may be too long
        os.close(directory)
    names = ["fifo", "socket"]
    if os.getuid() == 0:
        try:
            os.mknod(root / "device", 0o020666, os.makedev(1, 5))  # /dev/zero, which would never end
            names.append("device")
        except OSError:
            pass
    return names


def test_nothing_waits_for_a_fifo_or_reads_a_device(files: Files, root: Path, odd: list[str]) -> None:
    for name in odd:
        refused(functools.partial(files.read, (name,)), "not_a_file")
        refused(functools.partial(files.edit, (name,), "a", "b"), "not_a_file")
        refused(functools.partial(files.write, (name,), "text"), "exists")
        refused(functools.partial(files.grep, "x", (name,)), "not_a_file")
        refused(functools.partial(files.ls, (name,)), "not_a_directory")
        assert files.stat((name,)).kind == "other"
    (root / "file").write_text("x")
    assert [match.path for match in files.grep("").matches] == ["file"]
    assert [match.path for match in files.glob("**").matches] == ["file"]
    for name in odd:
        assert files.rm((name,)).kind == "other"


def test_links_are_not_followed_by_anything(files: Files, root: Path) -> None:
    outside = root.parent / "outside"
    (outside / "d").mkdir(parents=True)
    (outside / "secret").write_text("secret")
    targets = {"file": "../outside/secret", "directory": str(outside), "inside": "real", "loop": "loop"}
    for name, target in targets.items():
        (root / name).symlink_to(target)
    (root / "real").write_text("secret")
    for name in ("file", "directory", "inside", "loop"):
        for call in (
            functools.partial(files.read, (name,)), functools.partial(files.edit, (name,), "secret", "x"),
            functools.partial(files.grep, "secret", (name,)), functools.partial(files.glob, "**", (name,)),
            functools.partial(files.ls, (name,)), functools.partial(files.read, (name, "secret")),
            functools.partial(files.write, (name, "new"), "x"), functools.partial(files.rm, (name, "secret")),
            functools.partial(files.stat, (name, "d")),
        ):  # fmt: skip
            assert "symbolic link" in str(refused(call, "link"))
        refused(functools.partial(files.write, (name,), "x"), "exists")
        assert files.stat((name,)).kind == "link"
    assert [match.path for match in files.grep("secret").matches] == ["real"]
    assert [match.path for match in files.glob("**").matches] == ["real"]
    assert sorted(os.listdir(outside)) == ["d", "secret"]


def test_sparse_files_are_refused_by_their_size(files: Files, root: Path) -> None:
    with (root / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert "larger than 67108864 bytes" in str(refused(lambda: files.read(("sparse",)), "too_large"))
    assert "larger than 16777216 bytes" in str(refused(lambda: files.edit(("sparse",), "a", "b"), "too_large"))
    found = files.grep("x")
    assert (found.matches, found.skipped) == ((), 1)
    assert files.stat(("sparse",)).size_bytes == 1 << 40


def test_limits_of_sizes_one_under_and_one_over(files: Files, root: Path) -> None:
    limit = 16 << 20
    with (root / "file").open("wb") as file:
        file.write(b"needle\n")
        file.truncate(limit)
    assert files.edit(("file",), "needle", "noodle").size_bytes == limit
    refused(lambda: files.edit(("file",), "noodle", "noodles"), "too_large")
    assert files.grep("noodle").skipped == 0
    with (root / "file").open("r+b") as file:
        file.truncate(limit + 1)
    refused(lambda: files.edit(("file",), "noodle", "n"), "too_large")
    assert files.grep("noodle").skipped == 1


def test_an_edit_that_would_fill_the_memory_is_refused_before_it_does(files: Files, root: Path) -> None:
    (root / "file").write_text("a" * (8 << 20))
    refused(lambda: files.edit(("file",), "a", "b" * 48_000, replace_all=True), "too_large")
    assert os.listdir(root) == ["file"]


def test_a_request_that_is_too_long_is_not_sent(files: Files, root: Path) -> None:
    (root / "file").write_text("a")
    refused(lambda: files.edit(("file",), "a", "b" * (2 << 20)), "too_large")
    assert files.edit(("file",), "a", "b" * (1 << 20)).size_bytes == 1 << 20


def test_a_directory_with_100_000_entries(guest: LocalGuest) -> None:
    in_memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # 0.5 s instead of 7 to make them
    with tempfile.TemporaryDirectory(dir=in_memory) as place, patient(guest, Path(place)) as files:
        many = os.path.join(place, "many")
        os.mkdir(many)
        directory = os.open(many, os.O_RDONLY)
        for number in range(100_000):
            os.mknod(f"{number:06}", 0o100644, dir_fd=directory)
        os.close(directory)
        listing = files.ls(("many",))
        assert (len(listing.entries), listing.truncated) == (2000, True)
        assert listing.entries[-1].path == "many/001999"
        assert files.glob("**/0999*").matches[0].path == "many/099900"
        assert files.grep("x", glob="*9").matches == ()
        assert files.rm(("many",)).entries == 100_001


def test_a_tree_deeper_than_a_walk_goes_is_counted(files: Files, root: Path) -> None:
    fd = os.open(root, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    assert files.glob("**").skipped == 1
    assert files.grep("x").skipped == 1


def test_files_that_grow_and_vanish_meanwhile(files: Files, root: Path) -> None:
    over = threading.Event()

    def change() -> None:
        while not over.is_set():
            with (root / "log").open("a") as file:
                file.write("abc\n" * 100)  # the end of a page is the end of a line: a reader may see a part of this
            for number in range(20):
                (root / str(number)).write_text("line")
            for number in range(20):
                (root / str(number)).unlink()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(50):
            read = files.read(("log",)) if (root / "log").exists() else None
            assert read is None or set(read.content.split("\n")) <= {"abc", ""}
            assert {match.line for match in files.grep("abc|line").matches} <= {"abc", "line"}
            assert all(match.size_bytes >= 0 for match in files.glob("*").matches)
            assert all(entry.kind == "file" for entry in files.ls().entries)
    finally:
        over.set()
        thread.join()


def test_what_may_not_be_read_is_denied_or_counted(open_directory: str) -> None:
    """By a worker of another user, because root may read everything."""
    root = Path(open_directory)
    (root / "d").mkdir(mode=0o700)
    (root / "file").write_text("x")
    (root / "file").chmod(0o600)
    (root / "listed").mkdir()
    (root / "listed" / "file").write_text("x")
    (root / "listed").chmod(0o711)
    if os.getuid() != 0:
        return
    program = root / "python-of-nobody"
    program.write_text(f'#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups "{_python()}" "$@"\n')
    program.chmod(0o755)
    with LocalGuest.start(cwd="/", program=PROGRAM) as guest, files_in(guest, root, python=str(program)) as files:
        for call in (
            functools.partial(files.read, ("file",)), functools.partial(files.ls, ("d",)),
            functools.partial(files.rm, ("file",)), functools.partial(files.write, ("new",), ""),
            functools.partial(files.edit, ("listed", "file"), "x", "y"), functools.partial(files.ls, ("listed",)),
            functools.partial(files.read, ("d", "x")),
        ):  # fmt: skip
            assert "Permission denied" in str(refused(call, "denied"))
        assert files.read(("listed", "file")).content == "x"
        assert [match.path for match in files.glob("**").matches] == ["file", "python-of-nobody"]
        assert files.glob("**").skipped == 2
        assert files.grep("x").skipped == 3


def _python() -> str:
    """An interpreter that every user may start."""
    return "/usr/bin/python3"


def test_a_directory_that_another_process_keeps_locked(guest: LocalGuest, root: Path) -> None:
    import fcntl

    (root / "file").write_text("a")
    lock = os.open(root, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with files_in(guest, root, seconds=0.2) as files:
        refused(lambda: files.edit(("file",), "a", "b"), "busy")
    os.close(lock)
    with files_in(guest, root) as files:
        files.edit(("file",), "a", "b")


def test_a_full_file_system_leaves_the_workspace_as_it_was(guest: LocalGuest, root: Path) -> None:
    """A limit of the size of files stands in for a full disk, which only root can make."""
    program = root.parent / "python-with-a-limit"
    program.write_text(f'#!/bin/sh\nulimit -f 8\nexec "{_python()}" "$@"\n')
    program.chmod(0o755)
    (root / "file").write_text("a")
    with files_in(guest, root, python=str(program)) as files:
        for call in (
            functools.partial(files.write, ("new",), "x" * 48_000),
            functools.partial(files.edit, ("file",), "a", "x" * 48_000),
        ):
            assert "File too large" in str(refused(call, "failed"))
        files.write(("small",), "x")
    assert sorted(os.listdir(root)) == ["file", "small"]
    assert (root / "file").read_text() == "a"


def test_a_worker_that_is_terminated_leaves_no_temporary_file(guest: LocalGuest, root: Path) -> None:
    (root / "file").write_bytes(b"a" * (15 << 20) + b"b")
    for _ in range(3):
        files = files_in(guest, root)
        thread = threading.Thread(target=lambda files=files: files.edit(("file",), "b", "b"))
        thread.start()
        thread.join(0.05)
        files.close()
        thread.join()
    assert os.listdir(root) == ["file"]

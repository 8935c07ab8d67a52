"""Creating and editing files by a real files worker."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from podbot.guest.local import LocalGuest
from podbot.tools.files import Files
from tests.inside import PROGRAM
from tests.tools.workers import files_in, refused, together


def test_a_file_is_created_with_its_directories(files: Files, root: Path) -> None:
    made = files.write(("a", "b", "new.txt"), "grüße\r\n\0")
    path = root / "a" / "b" / "new.txt"
    assert path.read_bytes() == "grüße\r\n\0".encode()
    assert (made.path, made.mode, made.size_bytes, made.replacements) == ("a/b/new.txt", "create", 10, 0)
    assert made.version == path.stat().st_mtime_ns // 1000
    assert os.listdir(path.parent) == ["new.txt"]


def test_the_mode_is_0644_less_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with LocalGuest.start(program=PROGRAM) as guest, files_in(guest, tmp_path) as files:
            files.write(("file",), "")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o7777 == 0o640


def test_nothing_that_exists_is_overwritten(files: Files, root: Path) -> None:
    (root / "file").write_text("old")
    (root / "directory").mkdir()
    (root / "link").symlink_to("none")
    for name in ("file", "directory", "link"):
        assert f"{name} already exists" in str(refused(functools.partial(files.write, (name,), "new"), "exists"))
    assert (root / "file").read_text() == "old"
    assert not (root / "none").exists()
    refused(lambda: files.write(("file", "below"), ""), "not_a_directory")
    refused(lambda: files.write(("link", "below"), ""), "link")
    refused(lambda: files.write((), ""), "is_root")
    refused(lambda: files.write(("text",), "\ud800"), "not_text")
    assert sorted(os.listdir(root)) == ["directory", "file", "link"]


def test_one_of_many_who_create_a_file_succeeds(guest: LocalGuest, root: Path) -> None:
    created: list[int] = []

    def create(number: int) -> None:
        with files_in(guest, root) as files:
            for name in range(20):
                try:
                    files.write((str(name),), str(number) * 1000)
                    created.append(name)
                except ValueError:
                    continue

    together(create, 4)
    assert sorted(created) == list(range(20))
    assert all(len(set((root / str(name)).read_text())) == 1 for name in range(20))


def test_an_edit_keeps_mode_line_endings_and_all_other_bytes(files: Files, root: Path) -> None:
    path = root / "file"
    path.write_bytes(b"one\r\ntwo\nthree\r\n\xc3\xa9\0 no end")
    path.chmod(0o6751)
    before = files.stat(("file",))
    edited = files.edit(("file",), "two", "2")
    assert path.read_bytes() == b"one\r\n2\nthree\r\n\xc3\xa9\0 no end"
    assert path.stat().st_mode & 0o7777 == 0o6751
    assert (edited.mode, edited.replacements, edited.size_bytes) == ("edit", 1, path.stat().st_size)
    assert edited.version > before.version
    assert os.listdir(root) == ["file"]


def test_a_version_increases_with_each_edit_however_fast(files: Files, root: Path) -> None:
    (root / "file").write_text("0")
    versions = [files.edit(("file",), str(number), str(number + 1)).version for number in range(20)]
    assert versions == sorted(set(versions))
    os.utime(root / "file", (4_000_000_000, 4_000_000_000))  # in the future
    assert files.edit(("file",), "20", "x").version == 4_000_000_000_000_001


def test_an_edit_in_a_file_with_carriage_returns_speaks_of_newlines(files: Files, root: Path) -> None:
    (root / "file").write_bytes(b"a\r\nb\r\nc\r\n")
    files.edit(("file",), "a\nb\n", "x\ny\nz\n")
    assert (root / "file").read_bytes() == b"x\r\ny\r\nz\r\nc\r\n"
    files.edit(("file",), "z\r\nc", "z\nc")  # literal: it names the carriage return
    assert (root / "file").read_bytes() == b"x\r\ny\r\nz\nc\r\n"
    refused(lambda: files.edit(("file",), "x\ny", ""), "no_match")  # the lines no longer end alike


def test_an_edit_that_is_not_clear_changes_nothing(files: Files, root: Path) -> None:
    (root / "file").write_text("a a a")
    refused(lambda: files.edit(("file",), "", "x"), "no_match")
    refused(lambda: files.edit(("file",), "b", "x"), "no_match")
    assert "occurs 3 times" in str(refused(lambda: files.edit(("file",), "a", "x"), "several_matches"))
    refused(lambda: files.edit(("none",), "a", "x"), "missing")
    refused(lambda: files.edit((), "a", "x"), "is_root")
    assert (root / "file").read_text() == "a a a"
    assert files.edit(("file",), "a", "xy", replace_all=True).replacements == 3
    assert (root / "file").read_text() == "xy xy xy"


def test_an_edit_through_a_link_is_refused(files: Files, root: Path) -> None:
    (root / "file").write_text("a")
    (root / "link").symlink_to("file")
    refused(lambda: files.edit(("link",), "a", "b"), "link")
    assert (root / "link").is_symlink()


def test_extended_attributes_stay(files: Files, root: Path) -> None:
    (root / "file").write_text("a")
    try:
        os.setxattr(root / "file", "user.podbot", b"kept")
    except OSError:
        return  # a file system without them
    files.edit(("file",), "a", "b")
    assert os.getxattr(root / "file", "user.podbot") == b"kept"


def test_eight_edits_by_eight_workers_all_survive(guest: LocalGuest, root: Path) -> None:
    (root / "file").write_text("".join(f"[{number}]\n" for number in range(8)))

    def edit(number: int) -> None:
        with files_in(guest, root) as files:
            for step in range(5):
                old = f"[{number}{'x' * step}]"
                files.edit(("file",), old, f"[{number}{'x' * (step + 1)}]")

    together(edit, 8)
    assert (root / "file").read_text() == "".join(f"[{number}xxxxx]\n" for number in range(8))
    assert os.listdir(root) == ["file"]

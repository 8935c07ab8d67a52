"""The Filesystem of a workspace, on a real files worker."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podbot.errors import FileRefused, WorkerLost
from podbot.guest.local import LocalGuest
from podbot.tools import READ_ENTIRE_FILE, Filesystem, SnapshotableFilesystem, WorkspaceFilesystem
from podbot.tools.files import Files
from podbot.tools.worker_frames import PIECE_BYTES
from tests.tools.workers import files_in, liar, patient

MIB = 1 << 20


@pytest.fixture
def fs(files: Files) -> WorkspaceFilesystem:
    return WorkspaceFilesystem(files)


def failed(call: Callable[[], object], error: type[Exception], words: str = "", number: int = 0) -> Exception:
    """The error that the call raises, of exactly that class."""
    with pytest.raises(error, match=words or None) as caught:
        call()
    assert type(caught.value) is error
    if number:
        assert getattr(caught.value, "errno", None) == number
    return caught.value


def test_it_is_what_the_protocol_says(fs: WorkspaceFilesystem) -> None:
    assert isinstance(fs, Filesystem)
    assert not isinstance(fs, SnapshotableFilesystem)
    assert (fs.root, fs.read_only) == ("/workspace", False)


def test_a_file_from_its_creation_to_its_removal(fs: WorkspaceFilesystem, root: Path) -> None:
    made = fs.write("src/a.py", "one\ntwo\n")
    assert (made.path, made.bytes_written, made.mode) == ("src/a.py", 8, "overwrite")
    assert stat.S_IMODE((root / "src" / "a.py").stat().st_mode) == 0o644
    read = fs.read("/workspace/src/a.py", offset=1)
    assert (read.content, read.total_lines, read.offset, read.limit, read.truncated) == ("two", 2, 1, 1, False)
    facts = fs.stat("src/a.py")
    assert (facts.path, facts.is_file, facts.is_directory, facts.size_bytes, facts.created_at) == (
        "src/a.py", True, False, 8, None
    )  # fmt: skip
    assert facts.modified_at is not None
    assert facts.modified_at.timestamp() == pytest.approx((root / "src" / "a.py").stat().st_mtime, abs=1e-3)
    assert [(entry.name, entry.path, entry.is_directory) for entry in fs.list()] == [("src", "src", True)]
    assert [(entry.name, entry.path) for entry in fs.list("src")] == [("a.py", "src/a.py")]
    assert [match.path for match in fs.glob("*.py", path="src")] == ["src/a.py"]
    (line,) = fs.grep("w(o)", path="src")
    assert (line.path, line.line_number, line.line_content, line.match_start, line.match_end) == (
        "src/a.py", 2, "two", 1, 3
    )  # fmt: skip
    fs.delete("src", recursive=True)
    assert not fs.exists("src")
    assert os.listdir(root) == []


def test_a_new_content_keeps_the_attributes_and_an_appended_one_the_file(fs: WorkspaceFilesystem, root: Path) -> None:
    file = root / "a"
    file.write_bytes(b"old")
    file.chmod(0o751)
    os.setxattr(file, "user.kept", b"1")
    before = file.stat()
    fs.write("a", "new")
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode), os.getxattr(file, "user.kept")) == (
        b"new",
        0o751,
        b"1",
    )
    assert file.stat().st_mtime_ns > before.st_mtime_ns
    middle = file.stat()
    assert fs.write_bytes("a", b"\xff", mode="append").bytes_written == 1
    after = file.stat()
    assert (file.read_bytes(), after.st_ino) == (b"new\xff", middle.st_ino)
    assert after.st_mtime_ns > middle.st_mtime_ns
    failed(lambda: fs.write("a", "x", mode="create"), FileExistsError, "a already exists", errno.EEXIST)
    assert os.listdir(root) == ["a"]


@pytest.mark.parametrize("size", [0, PIECE_BYTES, PIECE_BYTES + 1, 3 * MIB + 5])
def test_any_size_comes_back(guest: LocalGuest, root: Path, size: int) -> None:
    data = os.urandom(size)
    with patient(guest, root) as files:
        fs = WorkspaceFilesystem(files)
        fs.write_bytes("a", data)
        fs.write_bytes("a", data, mode="append")
        assert (root / "a").read_bytes() == 2 * data
        whole = fs.read_bytes("a")
        assert whole.content == 2 * data
        assert (whole.size_bytes, whole.offset, whole.limit, whole.truncated) == (2 * size, 0, 2 * size, False)
        part = fs.read_bytes("a", offset=1, limit=7)
        assert part.content == (2 * data)[1:8]
        assert part.truncated == (2 * size > 8)
        with fs.open_write("b", mode="create") as writer:
            for at in range(0, size, 100_001):
                writer.write(data[at : at + 100_001])
            assert writer.bytes_written == size
        assert (root / "b").read_bytes() == data
        with fs.open_read("b") as reader:
            assert b"".join(reader) == data
            assert (reader.size, reader.position) == (size, size)
    assert sorted(os.listdir(root)) == ["a", "b"]


def test_a_write_that_fails_leaves_nothing(fs: WorkspaceFilesystem, root: Path) -> None:
    (root / "a").write_text("old")
    writer = fs.open_write("a")
    writer.write(b"x" * (PIECE_BYTES + 1))
    assert len(os.listdir(root)) == 2
    writer.__exit__(RuntimeError, RuntimeError(), None)
    assert (os.listdir(root), (root / "a").read_text()) == (["a"], "old")
    late = fs.open_write("b", mode="create")
    late.write(b"mine")
    (root / "b").write_text("another's")
    failed(late.close, FileExistsError, "b already exists")
    assert (late.closed, sorted(os.listdir(root)), (root / "b").read_text()) == (True, ["a", "b"], "another's")
    changed = fs.open_write("a")
    changed.write(b"x" * PIECE_BYTES)
    (staged,) = set(os.listdir(root)) - {"a", "b"}
    (root / staged).write_text("not what was written")
    failed(changed.close, OSError, "another process changed it", errno.EBUSY)
    assert (sorted(os.listdir(root)), (root / "a").read_text()) == (["a", "b"], "old")
    (root / "a").unlink()
    linked = fs.open_write("a")
    (staged,) = set(os.listdir(root)) - {"b"}
    (root / staged).unlink()
    (root / staged).symlink_to("b")
    linked.write(b"mine")
    failed(linked.close, PermissionError, "symbolic link")
    assert (os.listdir(root), (root / "b").read_text()) == (["b"], "another's")


def test_each_failure_is_an_error_of_pythons(fs: WorkspaceFilesystem, root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("SECRET")
    (root / "d" / "e").mkdir(parents=True)
    (root / "file").write_bytes(b"\xff\n")
    (root / "link").symlink_to(outside / "secret")
    (root / "out").symlink_to(outside)
    os.mkfifo(root / "fifo")
    no_file: tuple[tuple[Any, type[Exception]], ...] = (
        ("missing", FileNotFoundError), ("d", IsADirectoryError), (".", IsADirectoryError),
        ("file/x", NotADirectoryError), ("link", PermissionError), ("out/secret", PermissionError),
        ("fifo", PermissionError), ("../outside/secret", PermissionError), ("a\0", ValueError), ("x" * 256, ValueError),
    )  # fmt: skip
    for path, error in no_file:
        for read in (fs.read, fs.read_bytes, fs.open_read, fs.open_text):
            failed(lambda: read(path), error)  # noqa: B023 - called at once
    for path, error in (("d", IsADirectoryError), ("link", PermissionError), ("out/x", PermissionError),
                        ("fifo", PermissionError), ("file/x", NotADirectoryError)):  # fmt: skip
        for write in (fs.write, lambda path, _: fs.open_write(path)):
            failed(lambda: write(path, ""), error)  # noqa: B023
    for path in ("missing", "file/x", "out/secret", "../outside"):
        assert not fs.exists(path)
    assert fs.exists("link")
    assert (fs.stat("link").is_file, fs.stat("link").is_directory, fs.stat("fifo").is_file) == (False, False, False)
    failed(lambda: fs.list("missing"), FileNotFoundError, "missing does not exist", errno.ENOENT)
    failed(lambda: fs.list("file"), NotADirectoryError)
    failed(lambda: fs.list("out"), PermissionError)
    failed(lambda: fs.read("file"), ValueError, r"binary content.*read_bytes")
    failed(lambda: fs.delete("d"), IsADirectoryError, "not empty", errno.ENOTEMPTY)
    failed(lambda: fs.delete("/"), PermissionError, "root")
    failed(lambda: fs.mkdir("d", exist_ok=False), FileExistsError)
    failed(lambda: fs.mkdir("file"), FileExistsError)
    failed(lambda: fs.mkdir("link"), FileExistsError)
    failed(lambda: fs.mkdir("x/y", parents=False), FileNotFoundError)
    failed(lambda: fs.grep("["), ValueError, "Invalid regex pattern")
    failed(lambda: fs.glob(""), ValueError, "pattern is not valid")
    assert (fs.glob("*", path="missing"), fs.glob("*", path="file"), fs.grep("x", path="missing")) == ((), (), ())
    for call in (
        lambda: fs.read("file", offset=-1), lambda: fs.read("file", limit=-2),
        lambda: fs.read("file", encoding="latin-1"),
        lambda: fs.read_bytes("file", limit=-1), lambda: fs.grep("x", max_matches=2001),
        lambda: fs.grep("x", max_matches=-1), lambda: fs.write("x", "", mode="w"),  # type: ignore[arg-type]
        lambda: fs.write("x", "\ud800"), lambda: fs.open_read("file").seek(-1),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"."):
            call()
    fs.delete("link")
    fs.delete("d", recursive=True)
    assert (outside / "secret").read_text() == "SECRET"
    assert isinstance(failed(lambda: fs.read("missing"), FileNotFoundError).__cause__, FileRefused)


def test_without_parents_nothing_is_made(fs: WorkspaceFilesystem, root: Path) -> None:
    for call in (lambda: fs.write("d/a", "", create_parents=False), lambda: fs.open_write("d/a", create_parents=False)):
        failed(call, FileNotFoundError, "d does not exist")
    assert os.listdir(root) == []


def test_a_read_only_one_changes_nothing(files: Files, root: Path) -> None:
    (root / "a").write_text("x")
    fs = WorkspaceFilesystem(files, read_only=True)
    assert (fs.read_only, fs.read("a").content) == (True, "x")
    for call in (
        lambda: fs.write("a", "y"), lambda: fs.write_bytes("b", b""), lambda: fs.open_write("a"),
        lambda: fs.delete("a"), lambda: fs.mkdir("d"), lambda: fs.mkdir("/"), lambda: fs.delete("missing"),
    ):  # fmt: skip
        failed(call, PermissionError, "read-only")
    assert (os.listdir(root), (root / "a").read_text()) == (["a"], "x")


def test_a_content_over_the_limit_is_refused_and_a_stream_has_none(files: Files, root: Path) -> None:
    fs = WorkspaceFilesystem(files, write_limit=100)
    fs.write("a", "é" * 50)
    failed(lambda: fs.write("a", "é" * 50 + "x"), ValueError, "Content exceeds maximum")
    failed(lambda: fs.write_bytes("a", b"x" * 101), ValueError, "Content exceeds maximum")
    with fs.open_write("b") as writer:
        writer.write_all([b"x" * 101])
    assert ((root / "a").stat().st_size, (root / "b").stat().st_size) == (100, 101)


def test_lines_beyond_one_answer_are_read_too(fs: WorkspaceFilesystem, root: Path) -> None:
    (root / "many").write_text("\n".join(map(str, range(2500))))
    assert fs.read("many").limit == 2000
    assert fs.read("many", limit=2400).content.endswith("\n2399")
    whole = fs.read("many", limit=READ_ENTIRE_FILE, offset=1)
    assert (whole.limit, whole.total_lines, whole.truncated) == (2499, 2500, False)
    (root / "long").write_text("a" * (MIB + 1) + "\nb\n")
    long = fs.read("long", limit=1)
    assert (len(long.content), long.total_lines, long.truncated) == (MIB + 1, 2, True)
    assert fs.read("long", limit=0, offset=5).offset == 2
    (root / "empty").write_text("")
    empty = fs.read("empty", limit=READ_ENTIRE_FILE)
    assert (empty.content, empty.total_lines, empty.limit, empty.truncated) == ("", 0, 0, False)
    (root / "returns").write_bytes(b"a\r\nb\r\n")
    assert fs.read("returns", limit=READ_ENTIRE_FILE).content == fs.read("returns").content == "a\r\nb\r"
    (root / "binary").write_bytes(b"\xff" * (MIB + 1))
    failed(lambda: fs.read("binary", limit=READ_ENTIRE_FILE), ValueError, r"binary content.*read_bytes")


def test_a_file_that_is_too_large_for_one_call_is_refused(fs: WorkspaceFilesystem, root: Path) -> None:
    with (root / "a").open("wb") as file:
        file.truncate((64 << 20) + 1)
    failed(lambda: fs.read_bytes("a"), OSError, "use open_read", errno.EFBIG)
    failed(lambda: fs.read("a"), OSError, "", errno.EFBIG)
    assert fs.read_bytes("a", offset=64 << 20).content == b"\0"
    with fs.open_read("a") as reader:
        assert reader.seek(-1, 2) == 64 << 20
        assert reader.read() == b"\0"


def test_a_list_and_a_glob_have_all_there_is(fs: WorkspaceFilesystem, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d-").mkdir()
    names = [f"{number:04}" for number in range(4100)]
    for name in names:
        (root / "d" / name).touch()
    (root / "d-" / "x").touch()
    assert [entry.name for entry in fs.list("d")] == names
    found = [match.path for match in fs.glob("**")]
    assert found == sorted([*(f"d/{name}" for name in names), "d-/x"])
    assert len(fs.glob("*", path="d")) == 4100


def test_a_search_that_would_be_incomplete_fails(fs: WorkspaceFilesystem, root: Path) -> None:
    (root / "a").write_text("x\n" * 1500)
    assert len(fs.grep("x")) == 1000
    assert len(fs.grep("x", max_matches=1200)) == 1200
    assert fs.grep("x", max_matches=0) == ()
    (root / "b").write_text(("y" * 300_000 + "\n") * 4)
    failed(lambda: fs.grep("y"), OSError, "too long together", errno.EFBIG)
    assert len(fs.grep("y", max_matches=3)) == 3


def test_a_file_that_is_replaced_is_not_read_half(fs: WorkspaceFilesystem, root: Path) -> None:
    (root / "a").write_bytes(b"1" * (MIB + 1))
    with fs.open_read("a") as reader:
        assert reader.read(MIB) == b"1" * MIB
        (root / "b").write_bytes(b"2" * (MIB + 1))
        (root / "b").rename(root / "a")
        with pytest.raises(OSError, match="another file has taken its place"):
            reader.read(1)
    with fs.open_read("a") as reader:
        with (root / "a").open("ab") as file:
            file.write(b"3")
        assert reader.read()[-2:] == b"23"


def test_text_is_read_by_lines_which_only_a_newline_ends(fs: WorkspaceFilesystem, root: Path) -> None:
    (root / "a").write_bytes("é\r\n\u2028b\n\nlast".encode())
    with fs.open_text("a") as reader:
        assert list(reader) == ["é\r\n", "\u2028b\n", "\n", "last"]
        assert (reader.line_number, reader.readline()) == (4, "")
    failed(reader.readline, ValueError, "closed")
    (root / "b").write_bytes(b"a\n\xff\n")
    with fs.open_text("b") as reader, pytest.raises(UnicodeDecodeError):
        list(reader)


def test_a_worker_that_is_lost_is_said_as_ever(guest: LocalGuest, root: Path) -> None:
    with (
        files_in(guest, root, python=liar(root, "sys.exit(3)\n")) as files,
        pytest.raises(WorkerLost, match="status 3"),
    ):
        WorkspaceFilesystem(files).exists("a")

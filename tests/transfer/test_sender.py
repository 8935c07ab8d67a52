"""Packing files of this host."""

from __future__ import annotations

import io
import os
import socket
import tarfile
from pathlib import Path

import pytest

from podbot.transfer.limits import CopyLimits, CopyReport, TooMuch
from podbot.transfer.sender import send


def sent(path: Path, name: str = "it", limits: CopyLimits = CopyLimits()) -> tuple[tarfile.TarFile, CopyReport]:  # noqa: B008
    report, data = CopyReport(), bytearray()
    fd = os.open(path.parent, os.O_RDONLY)
    try:
        send(fd, path.name, name, data.extend, report, limits=limits)
    finally:
        os.close(fd)
    return tarfile.open(fileobj=io.BytesIO(data)), report


def test_a_tree(tmp_path: Path) -> None:
    top = tmp_path / "src"
    (top / "d").mkdir(parents=True)
    (top / "a").write_bytes(b"x" * 700)
    (top / "d" / ("n" * 150)).write_text("long")
    (top / "l").symlink_to("/etc/passwd")
    os.chmod(top / "a", 0o4777)
    found, report = sent(top)
    assert found.getnames() == ["it", "it/a", "it/d", f"it/d/{'n' * 150}", "it/l"]
    assert found.getmember("it/a").mode == 0o755
    assert (found.getmember("it/l").type, found.getmember("it/l").linkname) == (tarfile.SYMTYPE, "/etc/passwd")
    content = found.extractfile("it/a")
    assert content is not None
    assert content.read() == b"x" * 700
    assert (report.files, report.size, report.left_out) == (2, 704, [])


def test_the_content_of_a_directory_has_no_entry_for_itself(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a").touch()
    assert sent(tmp_path / "src", ".")[0].getnames() == ["./a"]


def test_special_files_are_left_out(tmp_path: Path) -> None:
    top = tmp_path / "src"
    top.mkdir()
    os.mkfifo(top / "p")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(top / "s"))
    found, report = sent(top)
    assert found.getnames() == ["it"]
    assert [left.path for left in report.left_out] == ["it/p", "it/s"]


def test_a_name_that_is_no_utf_8(tmp_path: Path) -> None:
    top = tmp_path / "src"
    top.mkdir()
    with open(os.fsencode(top) + b"/\xff", "wb"):
        pass
    assert sent(top)[0].getnames() == ["it", "it/\udcff"]


def test_limits(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in "ab":
        (tmp_path / "src" / name).write_bytes(b"x" * 60)
    with pytest.raises(TooMuch, match="100 bytes"):
        sent(tmp_path / "src", limits=CopyLimits(size=100))
    with pytest.raises(TooMuch, match="2 files"):
        sent(tmp_path / "src", limits=CopyLimits(entries=2))


def test_a_file_that_shrinks_keeps_the_archive_valid(tmp_path: Path) -> None:
    (tmp_path / "src").write_bytes(b"x" * 3000)
    report, data = CopyReport(), bytearray()
    fd = os.open(tmp_path, os.O_RDONLY)

    def write(piece: bytes) -> None:
        if not data:  # the header has been written: its size is a promise
            os.truncate(tmp_path / "src", 1000)
        data.extend(piece)

    send(fd, "src", "it", write, report)
    os.close(fd)
    with tarfile.open(fileobj=io.BytesIO(data)) as found:
        assert found.getmember("it").size == 3000
    assert "changed while it was read" in report.left_out[0].reason

"""The scripts on this machine's own shell and programs, and what their messages mean."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.integrations import file_scripts
from podbot.integrations.file_scripts import read_command, read_error, write_command, write_error

NAMES = st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=60).filter(
    lambda name: name not in (".", "..")
)


def done(words: list[str], data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        words, input=data, env={**os.environ, **file_scripts.ENVIRONMENT}, capture_output=True, timeout=60, check=False
    )


def read(path: Path, limit: int = 1000) -> bytes:
    found = done(read_command(str(path), limit))
    if found.returncode:
        raise read_error(str(path), found.returncode, found.stderr.decode())
    return found.stdout


def write(path: str, data: bytes) -> None:
    found = done(write_command(path), data)
    if found.returncode:
        raise write_error(path, found.returncode, found.stderr.decode())


@pytest.mark.parametrize("data", [b"", b"\0\xff\r\n", b"x" * 300_000])
def test_bytes_go_there_and_back(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a" / "b" / "c"
    write(str(path), data)
    assert path.read_bytes() == data
    assert read(path, len(data) + 1) == data
    write(str(path), b"other")
    assert path.read_bytes() == b"other"


@given(name=NAMES, parent=NAMES)
def test_any_name(tmp_path_factory: pytest.TempPathFactory, name: str, parent: str) -> None:
    path = tmp_path_factory.getbasetemp() / "names" / parent / name
    write(str(path), name.encode())
    assert path.read_bytes() == read(path) == name.encode()
    path.unlink()
    path.parent.rmdir()


def test_no_more_than_the_limit_is_printed(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * 1001)
    assert len(read(tmp_path / "big", 1000)) == 1000


def test_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    for path in ("missing", "missing/below", "file/below", "loop", "n" * 300):
        with pytest.raises(FileNotFoundError) as caught:
            read(tmp_path / path)
        assert caught.value.filename == str(tmp_path / path)
    with pytest.raises(IsADirectoryError, match="directory"):
        read(tmp_path)
    for path in ("pipe", "/dev/zero"):
        with pytest.raises(PermissionError):
            read(tmp_path / path)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path), f"{tmp_path}/new/"):
        with pytest.raises(IsADirectoryError, match="directory"):
            write(path, b"x")
    with pytest.raises(PermissionError):
        write(str(tmp_path / "pipe"), b"x")
    with pytest.raises(NotADirectoryError):
        write(str(tmp_path / "file" / "below" / "this"), b"x")
    with pytest.raises(NotADirectoryError):
        write(str(tmp_path / "file" / "below"), b"x")
    with pytest.raises(OSError, match="too long"):
        write(str(tmp_path / ("n" * 300)), b"x")


@pytest.mark.parametrize("mode", [0o000, 0o222])
def test_a_file_that_nobody_may_read_is_refused_to_root_too(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    path.chmod(mode)
    with pytest.raises(PermissionError) as caught:
        read(path)
    assert "file" in str(caught.value)


@pytest.mark.parametrize("mode", [0o000, 0o555])
def test_a_file_that_nobody_may_write_is_refused_to_root_too(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    path.chmod(mode)
    with pytest.raises(PermissionError):
        write(str(path), b"y")
    path.chmod(0o600)
    assert path.read_text() == "x"


MESSAGES = [
    ("cat: can't open 'x': Permission denied", PermissionError),  # BusyBox
    ("head: cannot open 'x' for reading: Permission denied", PermissionError),
    ("sh: 1: cannot create /x: Permission denied", PermissionError),  # dash
    ("sh: line 1: /x: Read-only file system", PermissionError),
    ("sh: can't create /x: Is a directory", IsADirectoryError),
    ("head: error reading 'x': Is a directory", IsADirectoryError),
    ("sh: 5: cannot create /a/x: Directory nonexistent", FileNotFoundError),
    ("mkdir: cannot create directory '/f': File exists", NotADirectoryError),
]


@pytest.mark.parametrize(("message", "kind"), MESSAGES)
def test_messages_of_other_programs(message: str, kind: type[OSError]) -> None:
    assert type(write_error("x", 1, f"{message}\n")) is kind


@given(st.integers(1, 255), st.text())
def test_any_message_is_an_error_with_the_name(code: int, message: str) -> None:
    for made in (read_error("the/name", code, message), write_error("the/name", code, message)):
        assert isinstance(made, OSError)
        assert made.filename == "the/name"
        assert len(str(made)) < 400

"""By which clock the times of files are, and where they show that a content was changed."""

from __future__ import annotations

import mmap
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.guard.filesystem import file_clock, is_stamped, mount_of, type_of
from podbot.guard.walk import Scan
from tests.guard.trees import PATIENT, left_by, said, write

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:20 /a\\040-\\040b /w rw - tmpfs tmpfs rw
24 22 0:21 / /x rw shared:2 master:1 - fuse.sshfs a@b:/ rw
25 22 0:22 / /y
"""


@pytest.mark.parametrize(
    ("mount", "kind"), [("22", "ext4"), ("23", "tmpfs"), ("24", "fuse.sshfs"), ("25", ""), ("2", ""), ("", "")]
)
def test_the_type_of_a_mount(mount: str, kind: str) -> None:
    assert type_of(MOUNTS, mount) == kind


@given(st.text(), st.text())
def test_any_other_line_has_no_type(text: str, mount: str) -> None:
    assert isinstance(type_of(text, mount), str)
    assert isinstance(mount_of(text), str)


def test_the_mount_of_a_descriptor() -> None:
    assert mount_of("pos:\t0\nflags:\t0100000\nmnt_id:\t29\nino:\t5\n") == "29"
    assert mount_of("pos:\t0\n") == ""


@pytest.mark.parametrize("where", ["/", "/dev/shm", "/proc"])
def test_the_type_is_the_one_that_stat_reports(where: str) -> None:
    said_by_stat = subprocess.run(
        ["stat", "--file-system", "--format=%T", where], capture_output=True, text=True, check=True
    ).stdout.strip()
    handle = os.open(where, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert is_stamped(handle) == (said_by_stat in {"ext2/ext3", "xfs", "btrfs", "f2fs"})
    finally:
        os.close(handle)


def test_no_later_change_of_a_file_has_an_earlier_time(tmp_path: Path) -> None:
    """By ``time.time``, most have: a conversation of a few milliseconds was by chance not offered to be continued."""
    for number in range(1000):
        before = file_clock()
        os.close(os.open(tmp_path / str(number), os.O_CREAT | os.O_WRONLY))
        assert (tmp_path / str(number)).stat().st_mtime_ns >= before


def through_a_mapping(path: Path) -> None:
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        assert mapped[0]  # the page exists when it is written
        mapped[0:4] = b"evil"


def written(work: Path) -> None:
    for name in (".envrc", "Makefile"):
        through_a_mapping(work / name)


def test_a_write_through_a_mapping_is_detected_on_tmpfs() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as base:
        for name in (".envrc", "Makefile", ".vscode/tasks.json"):
            write(Path(base, name), "good and long\n")
        left = left_by(Path(base), written)
    assert said(left) == [(1, ".envrc"), (4, "Makefile")]


def test_files_that_act_at_cd_are_read_again_on_every_file_system(tmp_path: Path) -> None:
    write(tmp_path / ".envrc", "x")
    first = Scan(PATIENT, modes=False).directories(str(tmp_path))
    wrong = {path: (stamp, "wrong", "wrong") for path, (stamp, _, _) in first.values.items()}
    assert Scan(PATIENT, wrong).directories(str(tmp_path)).marks == first.marks

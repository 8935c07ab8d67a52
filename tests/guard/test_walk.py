"""Trees that are made to hold a scan up, or to lead it elsewhere."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import podbot
from podbot.guard.compare import compare
from podbot.guard.tree import Limits
from podbot.guard.walk import Scan
from tests.guard.trees import checkout, left_by, said, write


def test_a_fifo_where_a_file_is_expected_does_not_hold_it_up(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")

    def act(_: Path) -> None:
        for name in (".envrc", ".git/config", ".git/hooks/pre-commit", "src/package.json"):
            if (work / name).exists():
                (work / name).unlink()
            os.mkfifo(work / name)

    assert (5, ".envrc") in said(left_by(work, act))


def test_a_very_deep_tree_ends_at_the_limit_and_is_told(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=handle)
        below = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    before = len(os.listdir("/proc/self/fd"))
    snapshot = Scan().directories(str(tmp_path))
    assert snapshot.gaps == ("directories more than 64 levels deep",)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_tree_with_more_entries_than_the_limit_is_told_and_the_dangerous_part_is_seen(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")
    limits = Limits(entries=300)

    def act(_: Path) -> None:
        write(work / ".envrc")
        for number in range(500):
            write(work / "zz" / str(number))

    left = left_by(work, act, limits=limits)
    assert (1, ".envrc") in said(left)
    assert left.gaps == ("more than 300 files and directories",)


def test_a_limit_of_time_ends_a_directory_in_the_middle(tmp_path: Path) -> None:
    for number in range(3000):
        write(tmp_path / str(number))
    snapshot = Scan(Limits(seconds=0)).directories(str(tmp_path))
    assert snapshot.gaps == ("it took longer than 0 s",)
    assert snapshot.entries < 3000


def test_what_was_beyond_an_incomplete_record_is_no_finding(tmp_path: Path) -> None:
    """Told by ctime, which nobody inside can set."""
    work = checkout(tmp_path / "work")
    before = Scan(Limits(entries=1)).directories(str(work))
    assert before.gaps
    write(work / "src" / "Makefile")
    left = compare(before, Scan().directories(str(work)))
    assert (4, "src/Makefile") in said(left)
    assert not {(3, "AGENTS.md"), (4, "Makefile"), (2, ".vscode/settings.json")} & set(said(left))


def test_many_things_to_record_and_much_to_read_are_limited(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path / str(number) / "Makefile", "x" * 1000)
    assert Scan(Limits(marks=10)).directories(str(tmp_path)).gaps == ("more than 10 things to look at",)
    assert Scan(Limits(data=10_000)).directories(str(tmp_path)).gaps == ("more than 0 MiB to read",)


def test_a_sparse_file_is_not_read_whole(tmp_path: Path) -> None:
    with open(tmp_path / "Makefile", "wb") as file:
        file.truncate(1 << 40)
    os.mkdir(tmp_path / ".git")
    os.link(tmp_path / "Makefile", tmp_path / ".git" / "config")
    snapshot = Scan().directories(str(tmp_path))
    assert {key[0] for key in snapshot.marks} == {"Makefile", ".git/config"}


def test_no_link_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write(outside / "Makefile")
    write(outside / ".git" / "hooks" / "pre-commit")
    work = checkout(tmp_path / "work")

    def act(_: Path) -> None:
        (work / "sub").symlink_to(outside)
        (work / "loop").symlink_to(".")
        (work / "lib").mkdir()
        (work / "lib" / ".git").symlink_to(outside / ".git")

    assert said(left_by(work, act)) == [(1, "lib/.git"), (5, "sub")]


def test_two_processes_find_what_one_does(tmp_path: Path) -> None:
    """In a process of its own: this one has threads, and a fork of it could wait for their locks for ever."""
    work = checkout(tmp_path / "work")
    for number in range(40):
        write(work / "bin" / f"tool{number}", "x", 0o4755)
        os.link(work / "bin" / f"tool{number}", work / "bin" / f"same{number}")
        os.link(work / "bin" / f"tool{number}", tmp_path / f"outside{number}")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from podbot.guard.walk import Scan\n"
        "one, two = (Scan(beside=beside).directories(sys.argv[2]) for beside in (False, True))\n"
        "assert len(one.marks) > 120, one.marks\n"
        "assert (one.marks, one.gaps) == (two.marks, two.gaps), (one, two)\n"
    )
    root = str(Path(podbot.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, root, str(work)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_workspace_that_cannot_be_opened_is_told_and_one_that_is_gone_has_nothing_left(tmp_path: Path) -> None:
    write(tmp_path / "file")
    (gap,) = Scan().directories(str(tmp_path / "file")).gaps
    assert "cannot be opened" in gap
    assert Scan().directories(str(tmp_path / "gone")).gaps == ()


def test_names_that_are_no_utf8_are_recorded(tmp_path: Path) -> None:
    os.makedirs(os.path.join(os.fsencode(tmp_path), b"\xff\xfe"))
    with open(os.path.join(os.fsencode(tmp_path), b"\xff\xfe", b"Makefile"), "w"):
        pass
    ((path, _),) = Scan().directories(str(tmp_path)).marks
    assert os.fsencode(path) == b"\xff\xfe/Makefile"


def test_descriptors_are_given_back_when_they_run_out(tmp_path: Path) -> None:
    place = tmp_path
    for _ in range(40):
        place = place / "d"
    place.mkdir(parents=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 20, hard))
    try:
        snapshot = Scan().directories(str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [gap.startswith("directories that cannot be") for gap in snapshot.gaps] == [True]
    assert len(os.listdir("/proc/self/fd")) == open_now

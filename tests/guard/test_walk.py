"""Directory trees that are made to block a scan, or to lead it elsewhere."""

from __future__ import annotations

import itertools
import marshal
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType

import pytest

import podbot
from podbot.guard import files
from podbot.guard.compare import compare
from podbot.guard.marks import Finding, GuardReport, from_plain, to_plain
from podbot.guard.scan import ANSWER, EARLY, bounded
from podbot.guard.tree import Limits
from podbot.guard.walk import Scan
from tests.faults import open_below
from tests.guard.trees import PATIENT, append, checkout, git, left_by, next_tick, said, write


def test_a_fifo_in_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")

    def act(_: Path) -> None:
        for name in (".envrc", ".git/config", ".git/hooks/pre-commit", "src/package.json"):
            if (work / name).exists():
                (work / name).unlink()
            os.mkfifo(work / name)

    assert (5, ".envrc") in said(left_by(work, act))


def test_a_very_deep_tree_ends_at_the_limit_and_is_reported(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=handle)
        below = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    snapshot = Scan(PATIENT).directories(str(tmp_path))
    assert snapshot.gaps == ("directories more than 64 levels deep",)
    assert open_below(tmp_path) == []


def test_a_tree_above_the_limit_is_reported_and_its_dangerous_part_is_scanned(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")
    limits = PATIENT._replace(entries=300)

    def act(_: Path) -> None:
        write(work / ".envrc")
        for number in range(500):
            write(work / "zz" / str(number))

    left = left_by(work, act, limits=limits)
    assert (1, ".envrc") in said(left)
    assert left.gaps == ("more than 300 files and directories",)


def test_a_time_limit_ends_the_scan_in_the_middle_of_a_directory(tmp_path: Path) -> None:
    for number in range(3000):
        write(tmp_path / str(number))
    snapshot = Scan(Limits(seconds=0)).directories(str(tmp_path))
    assert snapshot.gaps == ("it took longer than 0 s",)
    assert snapshot.entries < 3000


def test_files_beyond_an_incomplete_record_are_not_findings(tmp_path: Path) -> None:
    """They are recognised by ctime, which no process inside can set."""
    work = checkout(tmp_path / "work")
    next_tick()
    before = Scan(PATIENT._replace(entries=1)).directories(str(work))
    assert before.gaps
    write(work / "src" / "Makefile")
    left = compare(before, Scan(PATIENT).directories(str(work)))
    assert (4, "src/Makefile") in said(left)
    assert not {(3, "AGENTS.md"), (4, "Makefile"), (2, ".vscode/settings.json")} & set(said(left))


@pytest.mark.parametrize("gap", ["unopened", "over"])
def test_moved_directories_are_detected_with_an_incomplete_record(tmp_path: Path, gap: str) -> None:
    """Renaming a directory changes its ctime, but not that of the files in it."""
    work = checkout(tmp_path / "work")
    for name in ("docs/h/post-merge", "docs/v/tasks.json", "docs/r/.git/hooks/a", "docs/r/.git/HEAD"):
        write(work / name, mode=0o755)
    below = work
    for _ in range(70 if gap == "unopened" else 0):
        below /= "d"
    below.mkdir(parents=True, exist_ok=True)
    next_tick()
    before = Scan(PATIENT._replace(entries=1) if gap == "over" else PATIENT, modes=False).directories(str(work))
    before = from_plain(marshal.loads(marshal.dumps(to_plain(before))))
    assert before.gaps
    shutil.rmtree(work / ".git" / "hooks")
    shutil.rmtree(work / ".vscode")
    os.rename(work / "docs" / "h", work / ".git" / "hooks")
    os.rename(work / "docs" / "v", work / ".vscode")
    os.rename(work / "docs" / "r", work / "src" / "r")
    found = said(compare(before, Scan(PATIENT).directories(str(work))))
    assert {(1, ".git/hooks/post-merge"), (2, ".vscode/tasks.json"), (1, "src/r/.git/hooks/a")} <= set(found)
    assert not {(3, "AGENTS.md"), (4, "Makefile")} & set(found)


@pytest.mark.parametrize("name", ["", "/hooks", "/config"])
def test_unreadable_parts_of_a_git_directory_are_reported_each_time(tmp_path: Path, name: str) -> None:
    """As an ordinary user: root can read everything."""
    code = (
        "import hashlib, json, os, pathlib, sys\n"
        "from tests.guard.trees import left_by\n"
        "left_by(pathlib.Path(sys.argv[1]), lambda work: None)\n"  # imports what it needs
        "os.geteuid() or os.setresuid(65534, 65534, 65534)\n"
        "work = pathlib.Path(sys.argv[1])\n"
        "os.chmod(sys.argv[2], 0o111)\n"
        "print(left_by(work, lambda work: None).gaps)\n"
        "os.chmod(sys.argv[2], 0o755)\n"
    )
    # pytest's own directories are closed to other users
    with tempfile.TemporaryDirectory() as base:
        os.chmod(base, 0o755)
        work = checkout(Path(base) / "work")
        if os.geteuid() == 0:
            for path in (work, *work.rglob("*")):
                os.chown(path, 65534, 65534)
        done = subprocess.run(
            [sys.executable, "-c", code, str(work), f"{work}/.git{name}"],
            capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": os.getcwd()},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "cannot be opened" in done.stdout if not name else f".git{name} cannot be read" in done.stdout


def test_only_directories_around_a_gap_are_in_a_first_record(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")
    assert Scan(PATIENT, modes=False).directories(str(work)).directories == {}
    (work / "a" / "b" / "/".join("d" * 64)).mkdir(parents=True)
    kept = Scan(PATIENT, modes=False).directories(str(work)).directories
    assert {"", "a", "a/b", "a/b/d"} <= set(kept)
    assert kept["a/b"][0] == (work / "a" / "b").stat().st_ino
    assert "src" not in kept


def test_a_linked_git_directory_is_compared_to_its_own_top(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")
    git(work, "worktree", "add", "-q", "--detach", "../linked")
    write(work / ".git" / "modules" / "m" / "config", "[core]\nfsmonitor = x\n")
    write(work / ".git" / "modules" / "m" / "HEAD")
    for name in ("objects", "refs"):
        (work / ".git" / "modules" / "m" / name).mkdir()
    next_tick()
    linked, own = str(tmp_path / "linked"), str(work / ".git")
    before = Scan(PATIENT._replace(entries=1), modes=False).directories(linked, own)
    assert before.gaps
    after = Scan(PATIENT).directories(linked, own)
    assert (f"{own}/modules/m/config", "core.fsmonitor") in after.marks
    assert said(compare(before, after)) == []


def test_the_number_of_records_and_bytes_read_is_limited(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path / str(number) / "Makefile", "x" * 1000)
    assert Scan(PATIENT._replace(marks=10)).directories(str(tmp_path)).gaps == ("more than 10 files to check",)
    assert Scan(PATIENT._replace(data=10_000)).directories(str(tmp_path)).gaps == ("more than 0 MiB to read",)


def test_decoys_do_not_hide_files_that_git_runs(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")

    def act(work: Path) -> None:
        for number in range(60):
            write(work / f"{number}.code-workspace", "x" * 1000)
        append(work / ".git" / "config", "[core]\n\tfsmonitor = ./x\n")
        write(work / "src" / ".envrc", "x")

    for limits in (PATIENT._replace(marks=20), PATIENT._replace(data=30_000), PATIENT._replace(words=1000)):
        left = left_by(work, act, limits=limits)
        assert {(1, ".git/config"), (1, "src/.envrc")} <= set(said(left))
        assert len(left.gaps) == 1
        for path in [*work.glob("*.code-workspace"), work / "src" / ".envrc"]:
            path.unlink()
        git(work, "config", "--unset", "core.fsmonitor")


def test_the_repository_at_the_top_is_scanned_before_the_limit_of_entries(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")

    def act(work: Path) -> None:
        for number in range(3000):
            (work / str(number)).touch()
        append(work / ".git" / "config", "[core]\n\tfsmonitor = ./x\n")

    left = left_by(work, act, limits=PATIENT._replace(entries=1500))
    assert (1, ".git/config") in said(left)
    assert left.gaps == ("more than 1500 files and directories",)


def test_a_file_that_many_keys_name_is_read_once(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")
    write(work / "big")
    append(work / ".git" / "config", "".join(f'[filter "{number}"]\nclean = big\n' for number in range(200)))
    asked = []

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code is files.read_beneath.__code__:
            asked.append(frame.f_locals["path"])

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        Scan(PATIENT).directories(str(work))
    finally:
        sys.setprofile(before)
    assert [path for path in asked if path == "big"] == ["big"]


def test_files_that_configurations_name_are_limited(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")
    for number in range(260):
        write(work / f"s{number}")
        append(work / ".git" / "config", f'[filter "{number}"]\nclean = s{number}\n')
    assert Scan(PATIENT).directories(str(work)).gaps == ("more than 256 files that git's configuration names",)


def test_a_time_limit_ends_the_scan_of_a_git_directory(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")
    append(work / ".git" / "config", "".join(f'[filter "{number}"]\nclean = big\n' for number in range(200)))
    snapshot = Scan(Limits(seconds=0)).directories(str(work))
    assert (snapshot.gaps, dict(snapshot.marks)) == (("it took longer than 0 s",), {})


def test_an_answer_is_bounded_and_keeps_the_most_dangerous() -> None:
    found = [Finding(1, "\udcff" * 16_000, "x" * 20_000, "new", "git", "why") for _ in range(3000)]
    found += [Finding(5, f"{number}" * 1000, "", "new", "git", "why") for number in range(3000)]
    left = bounded(GuardReport(tuple(found), more=5))
    assert len(marshal.dumps([tuple(one) for one in left.findings])) <= ANSWER
    assert len(left.findings) + left.more == 6005
    assert {one.danger for one in left.findings} == {1}
    assert left.findings[0].path.startswith("\udcff")


def test_the_first_part_of_an_answer_fits_into_a_pipe_that_nobody_reads_yet() -> None:
    """Otherwise the scan would wait for podbot, which reads only once the container is removed."""
    found = tuple(Finding(1, f"{number}" * 200, "x" * 300, "new", "git", "why") for number in range(3000))
    left = bounded(GuardReport(found, tuple("gap" * 300 for _ in range(300))), EARLY)
    assert len(marshal.dumps(([tuple(one) for one in left.findings], left.gaps))) < (64 << 10) - 1000
    assert len(left.findings) > 20


def test_a_signal_ends_a_scan_at_a_place_where_nothing_is_lost(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")
    before = Scan(PATIENT, modes=False).directories(str(work))
    write(work / ".envrc")
    descriptors = sorted(os.listdir("/proc/self/fd"))
    scan = Scan(PATIENT, early=lambda _: scan.interrupt())
    left = compare(before, scan.directories(str(work)))
    assert left.gaps == (f"it took longer than {PATIENT.seconds:g} s",)
    assert sorted(os.listdir("/proc/self/fd")) == descriptors


def test_long_names_are_limited(tmp_path: Path) -> None:
    place = tmp_path
    for _ in range(10):
        place = place / ("d" * 200)
    for number in range(5):
        write(place / str(number) / "Makefile")
        write(place / str(number) / "tool", "x", 0o4755)
    snapshot = Scan(PATIENT._replace(words=4000)).directories(str(tmp_path))
    assert snapshot.gaps == ("more than 0 Mi characters of names and values",)
    assert sum(key[0].endswith("Makefile") for key in snapshot.marks) == 1


def test_a_sparse_file_is_not_read_completely(tmp_path: Path) -> None:
    with open(tmp_path / "Makefile", "wb") as file:
        file.truncate(1 << 40)
    os.mkdir(tmp_path / ".git")
    os.link(tmp_path / "Makefile", tmp_path / ".git" / "config")
    snapshot = Scan(PATIENT).directories(str(tmp_path))
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


@pytest.mark.parametrize("kind", ["whole", "deep", "linked"])
def test_two_processes_find_the_same_as_one(tmp_path: Path, kind: str) -> None:
    """In a separate process: this one has threads, and a fork of it could wait for their locks for ever."""
    work = checkout(tmp_path / "work")
    for number in range(20):
        part = work / f"part{number % 3}"
        place = part / f"module{number}" / "deep"
        for name in ("Makefile", ".vscode/tasks.json", "../../shallow/hooks/x"):
            write(place / name, f"{number}")
        write(place / "tool", "x", 0o4755)
        git(work, "init", "-q", f"{place}/inner")
        (place / ".claude").symlink_to("../../shallow")
        (place / "up").symlink_to("../../../../outside")
        os.mkfifo(place / "fifo")
        for path in (
            place / "same",
            work / f"top{number}",
            part / f"a{number}",
            work / ".git" / "objects" / f"link{number}",  # git names its own by two hexadecimal digits
        ):
            os.link(place / "tool", path)
        if number % 2:
            os.link(place / "tool", tmp_path / f"outside{number}")
        write(work / ".git" / "modules" / f"m{number}" / "x" / "HEAD")
        write(work / ".git" / "modules" / f"m{number}" / "x" / "config", "[core]\n\tfsmonitor = x\n")
    for depth in ("a/" * 70, "part0/module0/" + "a/" * 70) if kind == "deep" else ():
        (work / depth).mkdir(parents=True)
    roots = [str(work)]
    if kind == "linked":
        git(work, "worktree", "add", "-q", "--detach", "../wt")
        shutil.move(work / "part1", tmp_path / "wt" / "part1")
        roots = [str(tmp_path / "wt"), str(work / ".git")]
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from podbot.guard.tree import Limits\n"
        "from podbot.guard.walk import Scan\n"
        "limits = Limits(seconds=60)\n"
        "first, also = (Scan(limits, modes=False, beside=beside).directories(*sys.argv[2:]) "
        "for beside in (False, True))\n"
        "assert first._replace(began=0, entries=0) == also._replace(began=0, entries=0), (first, also)\n"
        "assert bool(first.directories) is bool(first.gaps)\n"
        "one, two = (Scan(limits, first.values, beside=beside).directories(*sys.argv[2:]) "
        "for beside in (False, True))\n"
        "assert len(one.marks) > 60 and one.values and one.directories, one\n"
        "assert one._replace(began=0, entries=0) == two._replace(began=0, entries=0), (one, two)\n"
        "assert one.entries <= two.entries\n"  # both may scan files behind links
        "print(one.gaps, any(mark.rule == 'hard link' for mark in one.marks.values()))\n"
    )
    root = str(Path(podbot.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, root, *roots], capture_output=True, text=True, check=False
    )
    gaps = ("directories more than 64 levels deep (2 times)",) if kind == "deep" else ()
    assert (done.stdout, done.stderr) == (f"{gaps} {kind != 'deep'}\n", "")


def test_a_path_that_one_of_two_processes_cannot_open_is_a_gap(tmp_path: Path) -> None:
    """Even if the other one could open it; a path that neither could open counts once."""
    for name in ("a/b", "c/d"):
        (tmp_path / name).mkdir(parents=True)
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from podbot.guard import files\n"
        "from podbot.guard.tree import Limits\n"
        "from podbot.guard.walk import Scan\n"
        "limits = Limits(seconds=60)\n"
        "me, really = os.getpid(), files.open_directory\n"
        "def opened(path, directory=None):\n"
        "    if path == 'a' and sys.argv[3] in ('both', 'first' if os.getpid() == me else 'second'): raise OSError\n"
        "    return really(path, directory)\n"
        "files.open_directory = opened\n"
        "print(*Scan(limits, beside=True).directories(sys.argv[2]).gaps)\n"
    )
    root = str(Path(podbot.__file__).parents[1])
    for which in ("first", "second", "both"):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", script, root, str(tmp_path), which],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.stdout, done.stderr) == ("directories that cannot be opened\n", "")


@pytest.mark.parametrize("name", ["work", "file"])
def test_an_error_that_ends_both_processes_is_reported_once(tmp_path: Path, name: str) -> None:
    write(tmp_path / "file")
    write(tmp_path / "work" / "a" / "b" / "c")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from podbot.guard.tree import Limits\n"
        "from podbot.guard.walk import Scan\n"
        "print(Scan(Limits(seconds=0), beside=True).directories(sys.argv[2]).gaps)\n"
    )
    root, path = str(Path(podbot.__file__).parents[1]), str(tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, root, path], capture_output=True, text=True, check=False
    )
    gaps = ("it took longer than 0 s" if name == "work" else f"{path} cannot be opened (Not a directory)",)
    assert (done.stdout, done.stderr) == (f"{gaps}\n", "")


def test_a_half_that_is_lost_is_a_gap(tmp_path: Path) -> None:
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from podbot.guard.walk import Scan\n"
        "class Lost(Scan):\n"
        "    def outline(self, handle, scope): os.kill(os.getpid(), 9)\n"
        "print(Lost(beside=True).directories(sys.argv[2]).gaps)\n"
    )
    root = str(Path(podbot.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, root, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("('half of the directories',)\n", "")


def test_a_workspace_that_cannot_be_opened_is_reported_and_a_removed_one_has_no_findings(tmp_path: Path) -> None:
    write(tmp_path / "file")
    (gap,) = Scan(PATIENT).directories(str(tmp_path / "file")).gaps
    assert "cannot be opened" in gap
    assert Scan(PATIENT).directories(str(tmp_path / "gone")).gaps == ()


@pytest.mark.parametrize("root", ["work", "git"])
def test_a_root_that_was_moved_or_replaced_is_a_gap(tmp_path: Path, root: str) -> None:
    """The sandbox has the old directory mounted, and writes there, wherever it was moved."""
    work, git_directory, away = checkout(tmp_path / "work"), tmp_path / "git", tmp_path / "away"
    os.rename(work / ".git", git_directory)
    (work / ".git").write_text(f"gitdir: {git_directory}\n")
    path = tmp_path / root

    def moved(_work: Path) -> None:
        os.rename(path, away)

    def replaced(work: Path) -> None:
        moved(work)
        shutil.copytree(away, path, symlinks=True)

    def replaced_and_back(work: Path) -> None:
        replaced(work)
        shutil.rmtree(path)
        os.rename(away, path)

    (gone,) = left_by(work, moved, linked=str(git_directory)).gaps
    assert gone.startswith(f"{path} is gone, so what the session left where it was moved")
    os.rename(away, path)
    (other,) = left_by(work, replaced, linked=str(git_directory)).gaps
    assert other.startswith(f"{path} is another directory than at the start")
    shutil.rmtree(path)
    os.rename(away, path)
    left = left_by(work, replaced_and_back, linked=str(git_directory))
    assert left.gaps == ()


def test_a_moved_root_is_a_gap_of_a_scan_in_two_processes(tmp_path: Path) -> None:
    write(tmp_path / "work" / "a" / "b" / "c")
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from podbot.guard.compare import compare\n"
        "from podbot.guard.tree import Limits\n"
        "from podbot.guard.walk import Scan\n"
        "limits = Limits(seconds=60)\n"
        "before = Scan(limits, modes=False).directories(sys.argv[2])\n"
        "print(len(compare(before, Scan(limits, beside=True).directories(sys.argv[2])).gaps))\n"
        "os.rename(sys.argv[2], sys.argv[2] + '.old'); os.mkdir(sys.argv[2])\n"
        "print(*compare(before, Scan(limits, beside=True).directories(sys.argv[2])).gaps)\n"
    )
    root, work = str(Path(podbot.__file__).parents[1]), str(tmp_path / "work")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, root, work], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    unmoved, moved = done.stdout.splitlines()
    assert unmoved == "0"
    assert moved.startswith(f"{work} is another directory")


def test_a_root_that_a_limit_kept_from_being_looked_at_is_not_called_gone(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")
    before = Scan(PATIENT, modes=False).directories(str(work), str(work / ".git"))
    after = Scan(PATIENT._replace(entries=1)).directories(str(work), str(work / ".git"))
    assert compare(before, after).gaps == ("more than 1 files and directories",)


def test_names_that_are_not_utf8_are_recorded(tmp_path: Path) -> None:
    os.makedirs(os.path.join(os.fsencode(tmp_path), b"\xff\xfe"))
    with open(os.path.join(os.fsencode(tmp_path), b"\xff\xfe", b"Makefile"), "w"):
        pass
    ((path, _),) = Scan(PATIENT).directories(str(tmp_path)).marks
    assert os.fsencode(path) == b"\xff\xfe/Makefile"


def test_descriptors_are_closed_when_they_run_out(tmp_path: Path) -> None:
    place = tmp_path
    for _ in range(40):
        place = place / "d"
    place.mkdir(parents=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = set(map(int, os.listdir("/proc/self/fd")))
    unused = (number for number in itertools.count() if number not in open_now)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next(itertools.islice(unused, 20, None)), hard))
    try:
        snapshot = Scan(PATIENT).directories(str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [gap.startswith("directories that cannot be") for gap in snapshot.gaps] == [True]
    assert open_below(tmp_path) == []

"""Hostile workspaces: what is not a file, what is swapped, what grows, and every limit one over and one under."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podbot.children import sweep
from podbot.suites.git_patch import Content, patch_of
from podbot.suites.hostile_files import Skip, opened_file
from podbot.suites.patch_export import export_patch
from podbot.suites.patch_process import run_helper
from tests.faults import ordinary_user
from tests.suites.workspaces import Workspace, changes, git_apply, reasons, tree, write
from tests.tools.swapping import SWAPPER

ROUNDS = int(os.environ.get("PODBOT_SWAP_ROUNDS", "3000"))


def nothing() -> None:
    """A check that never ends the work."""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """With a file, one in a directory, and a secret beside it."""
    (tmp_path / "secret").write_text("SECRET")
    return Workspace(tmp_path, {b"a": (b"old\n", False), b"d/b": (b"old\n", False), b"kept": (b"old\n", False)})


@pytest.fixture
def no_sigio() -> Iterator[None]:
    """The holder of a lease gets this signal, which would end it."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGIO, before)


def replace(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def bind(path: Path) -> None:
    directory = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{directory}/{path.name}")  # a socket's path has at most 107 bytes
    os.close(directory)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (os.mkfifo, "it is a FIFO, a socket or a device"), (bind, "it is a FIFO, a socket or a device"),
        (lambda path: path.symlink_to("../secret"), "it is a symbolic link"),
        (lambda path: path.symlink_to("kept"), "it is a symbolic link"),
    ],
)  # fmt: skip
def test_what_is_no_file_is_left_out_where_one_was_copied_and_where_it_is_new(
    make: Callable[[Path], object], reason: str, workspace: Workspace
) -> None:
    replace(workspace.path / "a", make)
    make(workspace.path / "new")
    write(workspace.path, b"kept", b"new\n")
    patch = export_patch(workspace.plan, str(workspace.path))
    assert reasons(patch) == {"a": reason, "new": reason}
    assert changes(patch) == {"kept": "modified"}
    assert "SECRET" not in patch.text


def test_a_link_in_the_place_of_a_directory_is_not_followed(workspace: Workspace) -> None:
    (workspace.path / "d").rename(workspace.path / "e")
    write(workspace.path, b"e/b", b"new\n")
    (workspace.path / "d").symlink_to("e")
    patch = workspace.export()
    assert changes(patch) == {"e/b": "added"}
    assert reasons(patch) == {
        "d": "it is a symbolic link", "d/b": "a directory that it is in cannot be opened: it is a symbolic link"
    }  # fmt: skip


def test_directories_of_git_are_listed_once(workspace: Workspace) -> None:
    for name in (b".git/config", b".git/objects/ab/cd", b"d/.git", b"sub/.GIT/hooks/pre-commit", b"sub/git~1/x"):
        write(workspace.path, name, b"x")
    write(workspace.path, b".gitignore", b"x")
    patch = workspace.export()
    assert changes(patch) == {".gitignore": "added"}
    assert list(reasons(patch)) == [".git", "d/.git", "sub/.GIT", "sub/git~1"]


def test_a_git_directory_that_was_copied_is_not_exported(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, {b".git/config": (b"old", False), b"a": (b"old", False)})
    write(workspace.path, b".git/config", b"[core]\nfsmonitor = evil\n")
    write(workspace.path, b"a", b"new")
    patch = workspace.export()
    assert changes(patch) == {"a": "modified"}
    assert list(reasons(patch)) == [".git"]


def test_a_lease_does_not_delay_the_export(workspace: Workspace, no_sigio: None) -> None:
    fd = os.open(workspace.path / "a", os.O_RDWR)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    patch = workspace.export()
    os.close(fd)
    assert list(reasons(patch)) == ["a"]
    assert "Resource temporarily unavailable" in reasons(patch)["a"]


def test_what_may_not_be_read_is_left_out_and_not_taken_for_deleted(open_directory: str) -> None:
    with ordinary_user():
        place = Path(open_directory, "own")
    place.mkdir()
    workspace = Workspace(place, {b"a": (b"old\n", False), b"d/b": (b"old\n", False), b"e/c": (b"old\n", False)})
    for name, mode in (("a", 0), ("d", 0), ("e", 0o444)):
        (workspace.path / name).chmod(mode)
    with ordinary_user():
        patch = workspace.export()
    for name in ("d", "e"):
        (workspace.path / name).chmod(0o755)
    assert patch.files == ()
    assert sorted(reasons(patch)) == ["a", "d", "d/b", "e/c"]
    assert all("Permission denied" in reason for reason in reasons(patch).values())


@pytest.mark.parametrize(
    "edit",
    [
        lambda path: path.write_bytes(b"x" * 1000), lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"y" * 10), lambda path: path.chmod(0o755),
    ],
    ids=["grow", "shrink", "rewrite", "mode"],
)  # fmt: skip
def test_a_file_that_is_changed_while_it_is_read_is_refused(edit: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    path.chmod(0o644)
    fd = os.open(tmp_path, os.O_RDONLY)
    with opened_file(fd, b"file", one_device=True) as file:
        edit(path)
        os.utime(path, ns=(5, 5))  # the kernel's clock may not have moved on
        with pytest.raises(Skip, match="it was changed while it was read"):
            file.content(100, nothing)
    os.close(fd)


def test_a_file_that_grows_for_ever_is_read_to_its_first_size_only(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    fd = os.open(tmp_path, os.O_RDONLY)

    def grow() -> None:
        with path.open("ab") as more:
            more.write(b"x" * 1000)

    with opened_file(fd, b"file", one_device=True) as file, pytest.raises(Skip):
        file.content(1 << 40, grow)
    os.close(fd)
    assert path.stat().st_size < 10_000


def test_a_sparse_file_of_a_terabyte_costs_nothing(workspace: Workspace) -> None:
    for name in ("a", "new"):
        with (workspace.path / name).open("wb") as file:
            file.truncate(1 << 40)
    patch = workspace.export()
    assert set(reasons(patch).values()) == {"it has more than 4,194,304 bytes"}
    assert list(reasons(patch)) == ["a", "new"]


def test_nothing_outside_is_exported_while_directories_and_links_are_swapped(tmp_path: Path) -> None:
    workspace = Workspace(
        tmp_path, {b"d/file": (b"old\n", False), b"file": (b"old\n", False), b"d/e/file": (b"", False)}
    )
    outside = tmp_path / "outside"
    for name in (b"file", b"e/file", b"kept", b"secret/x"):
        write(outside, name, b"OUTSIDE\n")
    words = [sys.executable, "-c", SWAPPER, str(workspace.path), str(outside), str(ROUNDS)]
    swapper = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    seen: set[str] = set()
    try:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"ready\n"
        while not select.select([swapper.stdout], [], [], 0)[0]:
            patch = workspace.export()
            assert "OUTSIDE" not in patch.text
            assert not {"kept", "secret"} & {word for path in changes(patch) for word in path.split("/")}
            seen.update(reasons(patch).values(), changes(patch).values())
    finally:
        swapper.communicate()
    # Both must occur: else nothing was swapped, or nothing was done.
    assert "it is a symbolic link" in seen
    assert seen & {"modified", "added"}


# --- limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "fits"), [(100, True), (101, False)])
@pytest.mark.parametrize("side", ["old", "new"])
def test_the_bytes_of_a_file_are_limited_on_both_sides(size: int, side: str, tmp_path: Path, *, fits: bool) -> None:
    long, short = b"x" * size, b"y"
    workspace = Workspace(tmp_path, {b"a": (long if side == "old" else short, False)})
    write(workspace.path, b"a", short if side == "old" else long)
    patch = workspace.export(file_bytes=100)
    assert changes(patch) == ({"a": "modified"} if fits else {})
    assert reasons(patch) == ({} if fits else {"a": "it has more than 100 bytes"})


def test_the_executable_bit_of_a_file_of_any_size_is_exported(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, {b"a": (b"x" * 1000, False), b"b": (b"x" * 1000, False)})
    (workspace.path / "a").chmod(0o755)
    patch = workspace.export(file_bytes=100)
    assert changes(patch) == {"a": "modified"}
    assert patch.left_out == ()
    assert git_apply(patch.text, workspace.host) == ""
    assert tree(workspace.host) == tree(workspace.path)


@pytest.mark.parametrize("fits", [True, False])
def test_the_bytes_of_the_patch_are_limited_and_smaller_changes_still_fit(workspace: Workspace, *, fits: bool) -> None:
    old, new, long = (Content(data, executable=False) for data in (b"old\n", b"new\n", b"new\n" * 99))
    room = len(patch_of(b"a", old, new, nothing)) + len(patch_of(b"d/b", old, long, nothing)) - (not fits)
    write(workspace.path, b"a", new.data)
    write(workspace.path, b"d/b", long.data)
    (workspace.path / "kept").unlink()
    patch = workspace.export(patch_bytes=room)
    assert changes(patch) == {"a": "modified", **({"d/b": "modified"} if fits else {"kept": "deleted"})}
    assert reasons(patch) == {"kept" if fits else "d/b": f"the patch would have more than {room:,} bytes with it"}
    assert (len(patch.text) == room) is fits
    assert git_apply(patch.text, workspace.host) == ""


@pytest.mark.parametrize(("files", "left"), [(3, []), (2, ["new"])])
def test_the_number_of_files_is_limited_and_copied_ones_come_first(
    files: int, left: list[str], workspace: Workspace
) -> None:
    for name in (b"a", b"kept", b"new"):
        write(workspace.path, name, b"new\n")
    patch = workspace.export(files=files)
    assert list(reasons(patch)) == left
    assert len(patch.files) == files


def test_new_files_beside_copied_ones_come_before_those_of_new_directories(workspace: Workspace) -> None:
    for number in range(20):
        write(workspace.path, b"aaa/%d" % number, b"x")
    write(workspace.path, b"d/new", b"x")
    assert list(changes(workspace.export(files=2))) == ["aaa/0", "d/new"]


@pytest.mark.parametrize(("entries", "fits"), [(7, True), (6, False)])
def test_the_number_of_names_is_limited(entries: int, workspace: Workspace, *, fits: bool) -> None:
    for name in (b"e/x", b"e/y"):  # with a, d, d/b and kept: 7 names
        write(workspace.path, name, b"x")
    patch = workspace.export(entries=entries)
    assert bool(reasons(patch)) is not fits
    assert all("there are more than 6 files and directories" in reason for reason in reasons(patch).values())


def test_directories_after_the_limit_are_named(workspace: Workspace) -> None:
    for name in (b"e/x", b"f/x", b"g/x"):  # with a, d and kept: 6 names at the top
        write(workspace.path, name, b"x")
    assert list(reasons(workspace.export(entries=6))) == ["d", "e", "f", "g"]


def test_a_directory_with_many_entries(workspace: Workspace) -> None:
    source = workspace.path / "many" / "0"
    write(source.parent, b"0", b"")
    for number in range(1, 5000):
        os.link(source, source.parent / str(number))
    write(workspace.path, b"a", b"new\n")
    patch = workspace.export(entries=3000, files=100)
    assert "there are more than 3,000 files" in reasons(patch)["many"]
    assert changes(patch)["a"] == "modified"
    assert len(patch.files) == 100
    assert (len(patch.left_out), patch.more) == (
        1000,
        3000 - 5 - 99 + 1 - 1000,
    )  # without a, d, d/b, kept, many; with many


@pytest.mark.parametrize(("depth", "fits"), [(5, True), (4, False)])
def test_the_depth_is_limited(depth: int, workspace: Workspace, *, fits: bool) -> None:
    write(workspace.path, b"1/2/3/4/5", b"x")
    patch = workspace.export(depth=depth)
    assert changes(patch) == ({"1/2/3/4/5": "added"} if fits else {})
    assert list(reasons(patch)) == ([] if fits else ["1/2/3/4"])


def test_a_tree_that_is_deeper_than_any_path(workspace: Workspace) -> None:
    fd = os.open(workspace.path, os.O_RDONLY)
    for _ in range(500):
        os.mkdir("d" * 200, dir_fd=fd)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
    try:
        for depth in (64, 10_000):
            patch = workspace.export(depth=depth)
            assert patch.files == ()
            ((path, reason),) = reasons(patch).items()
            assert path.startswith("ddd")
            assert "4,095 bytes" in reason
    finally:  # pytest's own removal recurses
        subprocess.run(["rm", "-rf", str(workspace.path)], check=True)


@pytest.mark.parametrize(("named", "more"), [(3, 0), (2, 1)])
def test_what_is_left_out_is_named_up_to_a_limit_and_then_counted(named: int, more: int, workspace: Workspace) -> None:
    for name in ("x", "y", "z"):
        (workspace.path / name).symlink_to("a")
    patch = workspace.export(named=named)
    assert (len(patch.left_out), patch.more) == (named, more)
    assert (len(workspace.export(named_bytes=named).left_out), patch.more) == (named, more)


def test_when_the_time_is_up_everything_else_is_left_out_by_name(workspace: Workspace) -> None:
    ticks = iter(range(10_000))
    for name in (b"a", b"d/b", b"kept"):
        write(workspace.path, name, b"new\n")
    taken = [len(workspace.export(seconds=seconds, clock=lambda: next(ticks)).files) for seconds in (0, 5, 12, 1000)]
    assert taken[0] == 0
    assert taken[-1] == 3
    assert taken == sorted(taken)
    patch = workspace.export(seconds=0, clock=lambda: next(ticks))
    assert list(reasons(patch))[:3] == ["a", "d/b", "kept"]
    assert reasons(patch)["a"] == "the export takes longer than 0 s"
    assert "" in reasons(patch)


def running_helpers() -> list[str]:
    """The process ids of helpers of this process."""
    found = []
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        with contextlib.suppress(OSError):
            if b"patch_helper" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def test_no_helper_is_left(workspace: Workspace) -> None:
    """Also not one that is ended before it has read its job. One that is left makes this wait for ever."""
    export_patch(workspace.plan, str(workspace.path), helper=lambda job, _: run_helper(job, 0.0))
    export_patch(workspace.plan, str(workspace.path))
    while running_helpers():
        sweep()

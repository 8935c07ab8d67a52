"""The directories of workspaces: who holds them, what a killed process left, and hostile trees."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from podbot.errors import UnsafeDirectory, WorkspaceInUse
from podbot.events import Event, ignore
from podbot.sections.host_mounts import HostMount, MountPlan
from podbot.sections.host_tree import look_at
from podbot.sections.mount_plan import plan_mounts
from podbot.suites.overlay import Overlay, remove_left, workspace_path
from tests.faults import ordinary_user


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "overlays")


def test_only_this_user_can_enter_it(root: str) -> None:
    held = Overlay.claim(root, "a")
    held.fill(MountPlan())
    assert {stat.S_IMODE(os.stat(path).st_mode) for path in (root, f"{root}/a", held.path)} == {0o700}
    assert held.path == workspace_path(root, "a")


def test_it_is_held_once_and_can_be_claimed_after_its_release(root: str) -> None:
    held = Overlay.claim(root, "a")
    with pytest.raises(WorkspaceInUse):
        Overlay.claim(root, "a")
    held.release(keep=True, emit=ignore)
    Overlay.claim(root, "a").release(keep=False, emit=ignore)
    assert os.listdir(root) == []


def test_a_link_in_its_place_is_refused(root: str, tmp_path: Path) -> None:
    os.makedirs(root)
    os.symlink(tmp_path, f"{root}/a")
    with pytest.raises(UnsafeDirectory):
        Overlay.claim(root, "a")


def leave(root: str, ident: str, *, keep: bool = False) -> None:
    """What a killed process leaves, which had a workspace with a file."""
    killed = (
        "import os, sys\n"
        "from podbot.suites.overlay import Overlay\n"
        "from podbot.sections.host_mounts import MountPlan\n"
        "held = Overlay.claim(sys.argv[1], sys.argv[2])\n"
        "held.fill(MountPlan())\n"
        "open(held.path + '/file', 'w').close()\n"
        "if sys.argv[3:]: held.keep()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", killed, root, ident, *(["keep"] if keep else [])], check=False)


def test_what_a_killed_process_left_is_not_continued_by_the_next_use_of_its_name(root: str) -> None:
    leave(root, "a")
    held = Overlay.claim(root, "a")
    assert not held.has_files()
    held.fill(MountPlan())
    remove_left(root, ignore)
    assert (os.listdir(root), os.listdir(held.path)) == (["a"], [])
    held.release(keep=False, emit=ignore)


def test_what_was_to_be_kept_survives_a_kill(root: str) -> None:
    leave(root, "a", keep=True)
    remove_left(root, ignore)
    held = Overlay.claim(root, "a")
    assert os.listdir(held.path) == ["file"]
    held.release(keep=False, emit=ignore)


def test_what_a_killed_process_left_is_removed_and_what_is_held_or_kept_is_not(root: str) -> None:
    leave(root, "killed")
    held = Overlay.claim(root, "held")
    Overlay.claim(root, "kept").release(keep=True, emit=ignore)
    assert sorted(os.listdir(root)) == ["held", "kept", "killed"]
    remove_left(root, ignore)
    assert sorted(os.listdir(root)) == ["held", "kept"]
    held.release(keep=False, emit=ignore)


def test_a_directory_that_is_being_made_is_not_taken_for_one_that_was_left(root: str) -> None:
    wrong: list[Exception] = []

    def use(name: str) -> None:
        try:
            for number in range(40):
                held = Overlay.claim(root, f"{name}-{number}")
                held.fill(MountPlan())
                remove_left(root, ignore)
                assert os.path.isdir(held.path)
                held.release(keep=False, emit=ignore)
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            wrong.append(error)

    threads = [threading.Thread(target=use, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert os.listdir(root) == []


def test_what_is_left_is_moved_away_first_so_that_its_name_is_free(root: str) -> None:
    held = Overlay.claim(root, "a")
    left = f"{root}/.removed-x"
    os.mkdir(left, 0o700)
    os.mkdir(f"{root}/b", 0o700)
    Path(root, "b", "lock").touch()
    with open(f"{left}/lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process is removing it
        remove_left(root, ignore)
        assert sorted(os.listdir(root)) == [".removed-x", "a"]
    remove_left(root, ignore)
    assert os.listdir(root) == ["a"]
    held.release(keep=False, emit=ignore)


def test_only_what_podbot_made_is_removed(root: str, tmp_path: Path) -> None:
    """A directory of workspaces may be one that a user named, with directories of theirs in it."""
    made = Overlay.claim(root, "made")
    made.fill(MountPlan())
    for name, mode in (("shop", 0o755), ("private", 0o700), ("Name", 0o700), (".removed", 0o700)):
        os.mkdir(f"{root}/{name}", mode)
        Path(root, name, "file").write_text("1")
    Path(root, "Name", "lock").touch()
    Path(root, "shop", "lock").touch()
    os.symlink(tmp_path, f"{root}/link")
    os.mkdir(f"{root}/interrupted", 0o700)  # by a kill before it was locked
    remove_left(root, ignore)
    assert sorted(os.listdir(root)) == [".removed", "Name", "link", "made", "private", "shop"]
    assert sorted(os.listdir(f"{root}/private")) == ["file"], "not even a lock is made there"
    made.release(keep=False, emit=ignore)


def test_nothing_to_remove_is_nothing(root: str) -> None:
    remove_left(root, ignore)
    assert not os.path.exists(root)


def test_a_hostile_tree_is_removed(root: str) -> None:
    """Deeper than Python's recursion and a process's descriptors allow, unreadable, with links out of it."""
    held = Overlay.claim(root, "a")
    held.fill(MountPlan())
    outside = Path(root).parent / "outside"
    outside.mkdir()
    (outside / "file").write_text("1")
    os.symlink(outside, f"{held.path}/link")
    os.mkfifo(f"{held.path}/pipe")
    os.mkdir(f"{held.path}/locked")
    (Path(held.path) / "locked" / "file").write_text("1")
    os.chmod(f"{held.path}/locked", 0)
    descriptor = os.open(held.path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    events: list[Event] = []
    held.release(keep=False, emit=events.append)
    assert (events, os.listdir(root)) == ([], [])
    assert (outside / "file").read_text() == "1"


def test_directories_that_deny_it_are_removed_by_an_ordinary_user(open_directory: str) -> None:
    """As the owner of what a sandbox of a rootless engine made. Each start of pytest closes the parents of tmp_path."""
    os.chmod(open_directory, 0o777)
    root, outside = f"{open_directory}/overlays", Path(open_directory, "outside")
    outside.mkdir()
    with ordinary_user():
        held = Overlay.claim(root, "a")
        held.fill(MountPlan())
        path = held.path
        for number in range(150):  # deeper than the removal holds descriptors, so that some are moved
            path = f"{path}/d{number}"
            os.mkdir(path)
        os.symlink(outside, f"{path}/link")
        for mode in (0o000, 0o500, 0o300):
            os.makedirs(f"{held.path}/{mode:o}/inner")
            Path(f"{held.path}/{mode:o}/file").touch()
            os.chmod(f"{held.path}/{mode:o}", mode)
        while path != os.path.dirname(held.path):
            os.chmod(path, 0)
            path = os.path.dirname(path)
        events: list[Event] = []
        held.release(keep=False, emit=events.append)
        assert (events, os.listdir(root)) == ([], [])
    assert stat.S_IMODE(outside.stat().st_mode) != 0o700


def test_an_error_while_it_is_filled_leaves_nothing_and_what_a_killed_fill_left_is_removed(
    root: str, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("a", "b"):
        (source / name).write_text("1")
    plan = plan_mounts([HostMount("source", "/")], [str(tmp_path)], look_at)
    held = Overlay.claim(root, "a")
    os.makedirs(f"{root}/a/workspace.new/half")
    (source / "b").write_text("longer")
    with pytest.raises(ValueError, match="changed"):
        held.fill(plan)
    assert sorted(os.listdir(f"{root}/a")) == ["lock"]
    assert not held.has_files()
    (source / "b").write_text("2")
    held.fill(plan)
    assert sorted(os.listdir(held.path)) == ["a", "b"]
    held.release(keep=False, emit=ignore)


def test_what_is_just_made_is_not_taken_for_what_was_left(root: str) -> None:
    """Starts at the same time: each removes what was left, while others make and remove theirs."""
    events: list[Event] = []
    errors: list[Exception] = []

    def work(number: int) -> None:
        try:
            for turn in range(40):
                held = Overlay.claim(root, f"w{number}-{turn}")
                held.fill(MountPlan())
                remove_left(root, events.append)
                assert held.has_files()
                held.release(keep=False, emit=events.append)
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert events == []
    assert os.listdir(root) == []

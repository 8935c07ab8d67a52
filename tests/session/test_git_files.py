"""Which files of a git directory are mounted read-only over themselves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podbot.container_spec import Mount
from podbot.errors import MountRefused
from podbot.launch.types import GitFile, LinkedGit
from podbot.session.mount_check import verified_mount
from podbot.session.repository import git_files


@pytest.fixture
def git(tmp_path: Path) -> Path:
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / ".git" / "config").write_text("")
    return tmp_path / ".git"


def test_existing_git_files(git: Path) -> None:
    assert git_files(str(git.parent), None) == (
        GitFile(str(git), is_file=False),
        GitFile(f"{git}/config", is_file=True),
        GitFile(f"{git}/hooks", is_file=False),
    )


def test_links_and_others_are_left_out(git: Path) -> None:
    (git / "hooks").rmdir()
    (git / "hooks").symlink_to("/etc")
    (git / "config").unlink()
    os.mkfifo(git / "config")
    assert git_files(str(git.parent), None) == (GitFile(str(git), is_file=False),)
    os.rename(git, git.parent / "aside")
    git.symlink_to("aside")
    assert git_files(str(git.parent), None) == ()
    assert git_files(str(git.parent / "no"), None) == ()


def test_of_a_linked_worktree(git: Path, tmp_path: Path) -> None:
    (tmp_path / "wt").mkdir()
    (tmp_path / "wt" / ".git").write_text("gitdir: x")
    linked = LinkedGit("x", "worktree", str(git))
    assert [found.path for found in git_files(str(tmp_path / "wt"), linked)] == [
        f"{tmp_path}/wt/.git", f"{git}/config", f"{git}/hooks",
    ]  # fmt: skip
    assert git_files(str(tmp_path / "wt"), LinkedGit("x", reason="no")) == ()


def test_a_file_is_checked_again_before_the_start(git: Path) -> None:
    mount = Mount(f"{git}/config", "/w/.git/config", read_only=True, is_file=True)
    with verified_mount(mount):
        pass
    (git / "config").rename(git / "old")
    (git / "config").symlink_to("old")
    with pytest.raises(MountRefused), verified_mount(mount):
        pass
    (git / "config").unlink()
    (git / "config").mkdir()
    with pytest.raises(MountRefused, match="no longer a file"), verified_mount(mount):
        pass


def test_a_file_that_is_replaced_while_the_sandbox_starts_is_refused(git: Path) -> None:
    mount = Mount(f"{git}/config", "/w/.git/config", read_only=True, is_file=True)

    def starts() -> None:
        with verified_mount(mount):
            (git / "config").rename(git / "old")
            (git / "config").write_text("[core]\n\tfsmonitor = x\n")

    with pytest.raises(MountRefused, match="took its place"):
        starts()

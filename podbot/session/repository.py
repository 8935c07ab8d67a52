"""Finds a workspace's git directory without running git and without trust: an agent may have written all of it.

A ``.git`` file that leads out of the workspace is followed only to a directory that points back, in a file that an
agent confined to the workspace cannot have written. Its name must be one that git gives such directories, because a
plain checkout can contain all the files of a git directory, put there by another agent or by the repository itself.
:func:`git_files` lists what of it can be mounted read-only.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Literal

from podbot.errors import MountRefused
from podbot.launch.mount_paths import UNSHOWABLE
from podbot.launch.refused_paths import within
from podbot.launch.repository import is_common, is_submodules, joined, one_path, pointed_to
from podbot.launch.types import GitFile, LinkedGit, RepositoryFacts, SandboxPlan
from podbot.places import path_of
from podbot.session.repository_settings import mode_of, open_directory, read_file, read_settings

_WORKTREES = "worktrees"
MOST_WORKTREES = 64  # linked worktrees that a sandbox has placeholders for; ADR 0017 has the figures
MOST_ENTRIES = 512  # directory entries that are read at most
_CONFIG = 1 << 20  # largest configuration of a git directory, in bytes
_GIT_SECONDS = 5
#: In a checkout that Android's `repo` made, the git directory itself contains links to other directories.
_MOUNT_IT = (
    "Mount a directory that contains it and the targets of its links with sandbox.extra_mounts, at the same path"
    " (for a checkout that `repo` made, the directory .repo)."
)

# No command: who wrote the project chose that path, and it can be any directory of the host.
_NOT_YOURS = (
    "The project's .git file names that directory, as it could name any other. If you did not put the project's"
    " repository there, do not trust the project. git does not work in this session."
)

_READ_ONLY = ("config", "config.worktree", "hooks")


class _NotFollowed(Exception):
    """The git directory is refused for ``reason``."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


def look_at_repository(workspace: str, uid: int, *, moved: bool = False) -> RepositoryFacts:
    """``workspace`` must be resolved; ``uid`` must own a git directory. Never raises, whatever the files contain.

    ``moved``: the sandbox has the workspace at another path.
    """
    try:
        with open_directory(workspace) as top:
            mode, here = mode_of(top, ".git"), (workspace, top)
            if stat.S_ISDIR(mode):
                own = joined(workspace, ".git")
                with open_directory(".git", top) as git:
                    return RepositoryFacts(None, *_worktrees(git, own), read_settings([here], own, absolute=not moved))
            if not mode:  # a bare repository, or none
                settings = read_settings([here], workspace, absolute=not moved)
                return RepositoryFacts(None, *_worktrees(top, workspace), settings)
            linked = _linked(top, mode, workspace, uid)
            if linked is None or not linked.directory:
                return RepositoryFacts(linked)
            with open_directory(linked.directory) as git:
                if path_of(git, linked.directory) != linked.directory:  # replaced since it was checked
                    return RepositoryFacts(linked)
                there = (linked.directory, git)
                settings = read_settings([there] if moved else [here, there], linked.directory, linked.names)
                return RepositoryFacts(linked, *_worktrees(git, linked.directory), settings)
    except OSError:
        return RepositoryFacts()


def check_linked_git(plan: SandboxPlan, uid: int) -> None:
    """Check again right before the container is created. Raises MountRefused when the result has changed."""
    if plan.linked_git is None or plan.workspace is None:
        return
    if _linked_now(plan.workspace.source, uid) != plan.linked_git:
        raise MountRefused(
            path=plan.linked_git.directory,
            origin="checked again right before the sandbox is created",
            reason="the workspace's .git file and this directory no longer point to each other",
            hint="Check what changed there, then start again.",
        )


def _linked_now(workspace: str, uid: int) -> LinkedGit | None:
    with contextlib.suppress(OSError), open_directory(workspace) as top:
        mode = mode_of(top, ".git")
        return _linked(top, mode, workspace, uid) if mode and not stat.S_ISDIR(mode) else None
    return None


def _linked(top: int, mode: int, workspace: str, uid: int) -> LinkedGit | None:
    """The git directory outside the workspace that its ``.git`` file or link leads to; None when it stays inside."""
    is_link = stat.S_ISLNK(mode)
    try:
        text = os.readlink(".git", dir_fd=top) if is_link else pointed_to(read_file(top, ".git"))
    except OSError as exc:
        return LinkedGit("", reason=f"it cannot be read ({exc.strerror})")
    if text is None or UNSHOWABLE.search(text):
        return LinkedGit("", reason="it is not a file that git wrote")
    named = joined(workspace, text)
    if within(named, workspace):
        return None
    relative = not os.path.isabs(text)
    git_file = joined(workspace, ".git")
    if is_link:
        remedy = _instead_of_link(named, git_file, uid)
        return LinkedGit(named, reason=".git is a symbolic link", remedy=remedy, relative=relative)
    return _followed(named, git_file, uid, relative=relative)


def _followed(named: str, git_file: str, uid: int, *, relative: bool) -> LinkedGit:
    """The git directory ``named`` in the file ``git_file``."""
    try:
        kind, directory = _pointing_back(named, git_file, uid)
    except _NotFollowed as why:
        return LinkedGit(named, reason=why.reason, remedy=why.remedy, relative=relative)
    except OSError as exc:
        remedy = "If the repository was moved, run `git worktree repair PATH` there."
        return LinkedGit(named, reason=f"it cannot be read ({exc.strerror})", remedy=remedy, relative=relative)
    return LinkedGit(named, kind, directory, relative=relative)


def _instead_of_link(named: str, git_file: str, uid: int) -> str:
    """What to do about a link to ``named``: a file in its place is proposed only if it would be followed."""
    with contextlib.suppress(OSError, _NotFollowed):
        _pointing_back(named, git_file, uid)
        return f"Replace it with a file that has the line `gitdir: {named}`."
    return _MOUNT_IT


def _pointing_back(named: str, git_file: str, uid: int) -> tuple[Literal["worktree", "submodule"], str]:
    """The workspace's kind, and the directory to mount so that ``named`` exists. Raises _NotFollowed, OSError."""
    with open_directory(named) as handle:
        _check_own(handle, named, uid)
        if not mode_of(handle, "commondir"):
            _check_is_git(handle, as_named=is_submodules(named))
            _check_submodule(handle, named, git_file)
            return "submodule", named
        common = os.path.dirname(os.path.dirname(named))
        text = one_path(read_file(handle, "commondir"))
        if text is None or joined(named, text) != common or os.path.dirname(named) != joined(common, _WORKTREES):
            raise _NotFollowed("it is not laid out as git does it")
        with open_directory(common) as git:
            _check_own(git, common, uid)
            _check_is_git(git, as_named=is_common(common))
        back = one_path(read_file(handle, "gitdir"))
        if back is None or joined(named, back) != git_file:
            remedy = "If you moved the worktree, run `git worktree repair` in it."
            raise _NotFollowed("it does not point back to this worktree", remedy)
        return "worktree", common


def _check_own(handle: int, path: str, uid: int) -> None:
    """Check that the path contains no link and that the directory belongs to the operator."""
    if path_of(handle, path) != path:
        raise _NotFollowed("there is a symbolic link in that path", "Write the path without links into the .git file.")
    if (owner := os.fstat(handle).st_uid) != uid:
        raise _NotFollowed(f"it belongs to user {owner}", _NOT_YOURS)


def _check_is_git(handle: int, *, as_named: bool) -> None:
    """``as_named``: whether its path follows git's naming of such directories."""
    if not as_named:
        raise _NotFollowed(
            "it is not named as git names such a directory (NAME.git, or .git/modules/NAME)",
            "If it is one (`git init --separate-git-dir`), mount it with sandbox.extra_mounts, at the same path.",
        )
    if mode_of(handle, ".git"):
        raise _NotFollowed("it has a .git of its own, as a checkout has")
    modes = {name: mode_of(handle, name) for name in ("HEAD", "objects", "refs")}
    if not (stat.S_ISREG(modes["HEAD"]) and stat.S_ISDIR(modes["objects"]) and stat.S_ISDIR(modes["refs"])):
        raise _NotFollowed("it is not a git directory")


def _check_submodule(handle: int, path: str, git_file: str) -> None:
    """Check that a submodule's git directory names this checkout in its configuration."""
    back = _configured_worktree(read_file(handle, "config", _CONFIG))
    if back is None or joined(path, back) != os.path.dirname(git_file):
        remedy = "If you moved the submodule's checkout, set core.worktree in that directory's configuration."
        raise _NotFollowed("it does not name this directory as its working tree", remedy)


def _configured_worktree(config: bytes) -> str | None:
    """``core.worktree`` of a configuration passed to git on stdin; git would follow includes there too (measured)."""
    import subprocess

    try:
        done = subprocess.run(
            ["git", "config", "--no-includes", "--null", "--file", "-", "--get", "core.worktree"],
            env={"PATH": os.environ.get("PATH", os.defpath), "GIT_DIR": "/dev/null"},
            cwd="/",
            input=config,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return one_path(done.stdout.rstrip(b"\0")) if done.returncode == 0 else None


def _worktrees(git: int, path: str) -> tuple[tuple[str, ...], int]:
    """Paths of a git directory's linked worktrees that `git worktree prune` checks, and how many were left out."""
    found: list[str] = []
    more = 0
    with contextlib.suppress(OSError), open_directory(_WORKTREES, git) as handle, os.scandir(handle) as entries:
        for _, entry in zip(range(MOST_ENTRIES), entries, strict=False):
            place = _worktree(handle, entry.name, joined(path, f"{_WORKTREES}/{entry.name}"))
            if place is None:
                continue
            if len(found) < MOST_WORKTREES:
                found.append(place)
            else:
                more += 1
    return tuple(sorted(set(found))), more


def _worktree(worktrees: int, name: str, path: str) -> str | None:
    """The path of one linked worktree; None if it is locked, because git does not prune it, or unreadable."""
    with contextlib.suppress(OSError), open_directory(name, worktrees) as handle:
        text = None if mode_of(handle, "locked") else one_path(read_file(handle, "gitdir"))
        if text is not None:
            place, name = os.path.split(joined(path, text))
            return place if name == ".git" else None
    return None


def git_files(workspace: str, linked: LinkedGit | None) -> tuple[GitFile, ...]:
    """``workspace`` must be resolved. Links are skipped: an agent may have made one, and its target is never mounted.

    The git directory, or the ``.git`` file, comes first.
    """
    own = joined(workspace, ".git")
    if linked is not None and linked.reason is None:
        return (*_found(own), *(found for name in _READ_ONLY for found in _found(joined(linked.directory, name))))
    top = _found(own)
    if not top or top[0].is_file:
        return ()
    return (*top, *(found for name in _READ_ONLY for found in _found(joined(own, name))))


def _found(path: str) -> tuple[GitFile, ...]:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return ()
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return (GitFile(path, is_file=stat.S_ISREG(mode)),)
    return ()

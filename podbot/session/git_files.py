"""Which files of a workspace's git directory can be mounted read-only over themselves."""

from __future__ import annotations

import os
import stat

from podbot.launch.gitdir import joined
from podbot.launch.types import GitFile, LinkedGit

_READ_ONLY = ("config", "config.worktree", "hooks")


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

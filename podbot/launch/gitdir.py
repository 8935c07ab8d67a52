"""Parses the small files by which a checkout and its git directory point to each other. Pure.

They are ``.git`` of a linked worktree or a submodule (``gitdir: PATH``), which anyone who can write to the workspace
controls, and ``gitdir`` and ``commondir`` in ``.git/worktrees/<id>``, which contain only a path.
"""

from __future__ import annotations

import os
import re

from podbot.launch.targets import UNSHOWABLE

LONGEST = 4096  # bytes of such a file; also the limit for a path
_PREFIX = b"gitdir: "
# No repository can track a `.git`, and an ordinary checkout has no such name.
_SUBMODULE = re.compile(r"[^/]*\.git/(?:worktrees/[^/]+/)?modules/.")


def pointed_to(data: bytes) -> str | None:
    """The path that a ``.git`` file names, as git reads it; None for anything else."""
    return one_path(data[len(_PREFIX) :]) if data.startswith(_PREFIX) else None


def one_path(data: bytes) -> str | None:
    """A file's content as one path, without line breaks at its end; None if it is not a path, or cannot be shown."""
    if len(data) > LONGEST:
        return None
    text = os.fsdecode(data.rstrip(b"\r\n"))
    return None if not text or UNSHOWABLE.search(text) else text


def joined(directory: str, path: str) -> str:
    """``path``, which may be relative to ``directory``, as an absolute and normal path. Links are not resolved."""
    return "/" + os.path.normpath(os.path.join(directory, path)).lstrip("/")


def is_submodules(path: str) -> bool:
    """Whether a git directory is where git puts those of submodules; a plain checkout never is."""
    return _SUBMODULE.search(path) is not None


def is_common(path: str) -> bool:
    """Whether a git directory's name allows it to have linked worktrees: ``.git``, ``shop.git``, or a submodule's."""
    return path.endswith(".git") or is_submodules(path)

"""The small files by which a checkout and its git directory point to each other, as text. Pure.

``.git`` of a linked worktree or a submodule (``gitdir: PATH``), and ``gitdir`` and ``commondir`` in
``.git/worktrees/<id>``, which hold a path alone. Whoever writes in a workspace writes the first one.
"""

from __future__ import annotations

import os
import re

from podbot.launch.targets import UNSHOWABLE

LONGEST = 4096  # bytes of such a file, as of a path
_PREFIX = b"gitdir: "
# A repository can track no `.git`, and a checkout that is not one of git's directories is not named so.
_SUBMODULE = re.compile(r"[^/]*\.git/(?:worktrees/[^/]+/)?modules/.")


def pointed_to(data: bytes) -> str | None:
    """The path that a ``.git`` file names, as git reads it; None for anything else."""
    return one_path(data[len(_PREFIX) :]) if data.startswith(_PREFIX) else None


def one_path(data: bytes) -> str | None:
    """The path that is all of a file but the line breaks at its end; None when it is none, or cannot be shown."""
    if len(data) > LONGEST:
        return None
    text = os.fsdecode(data.rstrip(b"\r\n"))
    return None if not text or UNSHOWABLE.search(text) else text


def joined(directory: str, path: str) -> str:
    """``path``, which may be relative to ``directory``, as an absolute and normal path. By its spelling only."""
    return "/" + os.path.normpath(os.path.join(directory, path)).lstrip("/")


def is_submodules(path: str) -> bool:
    """Whether a git directory lies where git puts those of submodules: a plain checkout never does."""
    return _SUBMODULE.search(path) is not None


def is_common(path: str) -> bool:
    """Whether a git directory is named as those that have linked worktrees: ``.git``, ``shop.git``, a submodule's."""
    return path.endswith(".git") or is_submodules(path)

"""What git takes for a git directory, by names in it."""

from __future__ import annotations

from podbot.guard import files
from podbot.guard.scope import GIT
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from podbot.guard.scope import Scope


def is_laid_out(handle: int) -> bool:
    """Whether git takes a directory for a repository. It asks for access only: links and files pass as well.

    One without a HEAD lends its configuration to a worktree's directory, which has one.
    """
    return files.look(handle, "refs") is not None and files.look(handle, "objects") is not None


def _has_head(handle: int) -> bool:
    return any(files.look(handle, name) is not None for name in ("HEAD", "config"))


def is_repository(handle: int, path: str, scope: Scope) -> bool:
    """Below ``modules`` and ``worktrees`` of a git directory less is enough: a ``.git`` file that leads there is own.

    Not in ``refs`` and ``logs``, where the names are those of branches.
    """
    if is_laid_out(handle):
        return _has_head(handle)
    parts = path.split("/") if scope is GIT else []
    if not ("modules" in parts or "worktrees" in parts) or "refs" in parts or "logs" in parts:
        return False
    return _has_head(handle)


def birth(git: int) -> int:
    """When a git directory was made, roughly: its file ``description`` is written once, or its HEAD."""
    found = files.look(git, "description") or files.look(git, "HEAD")
    return 0 if found is None else found.st_ctime_ns

"""Recognizes directories that git accepts as a git directory, by the names in them."""

from __future__ import annotations

from podbot.guard import files
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from podbot.guard.scope import Scope


def is_laid_out(handle: int) -> bool:
    """Whether git accepts a directory as a repository. Git only checks access, so links and files are enough.

    A directory without a HEAD can still provide the configuration of a worktree's directory that has one.
    """
    return files.look(handle, "refs") is not None and files.look(handle, "objects") is not None


def _has_head(handle: int) -> bool:
    return any(files.look(handle, name) is not None for name in ("HEAD", "config"))


def is_repository(handle: int, path: str, scope: Scope, known: AbstractSet[str] = frozenset()) -> bool:
    """Whether to scan a directory as a git directory. ``known``: paths of git directories around it.

    Below ``modules`` and ``worktrees`` of a git directory, a HEAD or config is enough, because ``.git`` files that lead
    there are not reported. This excludes its ``refs`` and ``logs``, where names are those of branches; not a worktree
    or a submodule of such a name, nor a checkout below a directory of such a name.
    """
    if is_laid_out(handle):
        return _has_head(handle)
    parts = path.split("/") if scope.is_git else []
    if not ("modules" in parts or "worktrees" in parts):
        return False
    around = ("/".join(parts[:at]) for at, part in enumerate(parts) if part in ("refs", "logs"))
    return _has_head(handle) and not any(f"/{path}".endswith("/.git") or path in known for path in around)


def birth(git: int) -> int:
    """The approximate time when a git directory was made: its ``description`` is written only once; else its HEAD."""
    found = files.look(git, "description") or files.look(git, "HEAD")
    return 0 if found is None else found.st_ctime_ns

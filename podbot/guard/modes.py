"""Finds setuid programs, file capabilities and hard links, which requires a stat of every file.

For 50,000 files that takes 70 ms of the 120 ms of the second scan (measured, processor time). An unchanged directory
cannot be skipped, because a file's mode can change without it.
"""

from __future__ import annotations

import os
import stat

from podbot.guard import files
from podbot.guard.marks import Mark
from podbot.guard.scope import GIT, INSTALLED, ORDINARY, Scope
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from podbot.guard.marks import Key

_CAPABILITY = "security.capability"

_MOST = 20_000  # files
_MARKED = 4 << 20  # characters of their paths in all
_LINKED = 64 << 20  # characters of the paths of files with several names


class Modes:
    """The findings. ``gaps``: as in a walk."""

    def __init__(self) -> None:
        self.marks: dict[Key, Mark] = {}
        self.links: dict[tuple[int, int], list[tuple[str, int, int]]] = {}
        self.gaps: dict[str, int] = {}
        self._marked = self._linked = 0

    def look(self, handle: int, path: str, name: str, found: os.stat_result, scope: Scope) -> None:
        """Examine one file whose mode or link count is unusual."""
        mode = found.st_mode
        if mode & (stat.S_ISUID | stat.S_ISGID):
            shown = f"mode {stat.S_IMODE(mode):o}, user {found.st_uid}, group {found.st_gid}"
            self._mark(path, "mode", "setuid", shown, found)
        if mode & 0o111 and _has_capability(handle, name):
            self._mark(path, "capability", "capability", "it has file capabilities", found)
        if found.st_nlink > 1 and scope.is_git and "/objects/" not in f"/{path}":
            self._mark(path, "links", "git.hard link", f"{found.st_nlink} names", found)
        elif found.st_nlink > 1:
            own = path if not scope.is_git and scope is not INSTALLED else ""
            self._linked += len(own)
            if self._linked > _LINKED:
                self.gaps["more hard links than are compared"] = 1
                return
            key = (found.st_dev, found.st_ino)
            self.links.setdefault(key, []).append((own, found.st_nlink, found.st_ctime_ns))

    def _mark(self, path: str, detail: str, rule: str, shown: str, found: os.stat_result) -> None:
        self._marked += len(path)
        if len(self.marks) >= _MOST or self._marked > _MARKED:
            self.gaps["more setuid programs and files with capabilities than are listed"] = 1
            return
        self.marks[path, detail] = Mark(rule, str(files.stamp_of(found)), shown, files.changed(found))

    def to_plain(self) -> dict[str, Any]:
        """The findings as built-in types."""
        marks = {key: tuple(mark) for key, mark in self.marks.items()}
        return {"marks": marks, "links": self.links, "gaps": self.gaps}

    def add(self, other: Mapping[str, Any]) -> None:
        """Add another process's findings, from its :meth:`to_plain`."""
        self.marks |= {key: Mark(*mark) for key, mark in other["marks"].items()}
        self.gaps |= other["gaps"]
        for key, names in other["links"].items():
            self.links.setdefault(key, []).extend(names)

    def hard_links(self) -> dict[Key, Mark]:
        """Files with more names than were found. Valid only after a complete scan."""
        found: dict[Key, Mark] = {}
        for names in self.links.values():
            own = sorted(name for name, _, _ in names if name)
            more = names[0][1] - len(names)
            if own and more > 0:
                when = max(changed for _, _, changed in names)
                found[own[0], "links"] = Mark("hard link", "", f"{more} more names elsewhere", when)
        return found


def roots_of(workspace: str, git: str) -> list[tuple[str, str, Scope]]:
    """The directories to scan: a workspace, and a git directory outside it, if any."""
    return [(workspace, "", ORDINARY), *([(git, git, GIT)] if git else [])]


def _has_capability(directory: int, name: str) -> bool:
    if not hasattr(os, "getxattr"):
        return False
    try:  # there is no getxattrat; the descriptor stands for the directory, and no link is followed
        return bool(os.getxattr(f"/proc/self/fd/{directory}/{name}", _CAPABILITY, follow_symlinks=False))
    except OSError:
        return False

"""What only a look at each file tells: setuid, file capabilities, hard links. For two processes.

To look at each of 50,000 files takes 85 ms of 140 (measured). Each of the two walks the whole tree and looks at the
files whose names hash to its number, so that both have the same to do whatever the tree is like.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
from collections.abc import Sequence

from podbot.guard import files
from podbot.guard.marks import Key, Mark
from podbot.guard.scope import GIT, INSTALLED, ORDINARY, Scope
from podbot.guard.tree import Below, Limits, Over, Walk

_CAPABILITY = "security.capability"
_SECONDS = 30  # for the second process, which may have lost the first


_MOST = 20_000  # files
_MARKED = 4 << 20  # characters of their paths
_LINKED = 64 << 20  # of paths of files with several names


class Modes:
    """What was found of some of the files. ``share``: which, as the hash of a name modulo two; None for all.

    ``gaps``: as those of a walk.
    """

    def __init__(self, share: int | None) -> None:
        self.share = share
        self.marks: dict[Key, Mark] = {}
        self.links: dict[tuple[int, int], list[tuple[str, int, int]]] = {}
        self.gaps: dict[str, int] = {}
        self._marked = self._linked = 0

    def look(self, handle: int, path: str, name: str, found: os.stat_result, scope: Scope) -> None:
        """One file with a mode or a number of links that is worth it."""
        mode = found.st_mode
        if mode & (stat.S_ISUID | stat.S_ISGID):
            shown = f"mode {stat.S_IMODE(mode):o}, user {found.st_uid}, group {found.st_gid}"
            self._mark(path, "mode", "setuid", shown, found)
        if mode & 0o111 and _has_capability(handle, name):
            self._mark(path, "capability", "capability", "it has file capabilities", found)
        if found.st_nlink > 1:
            own = path if scope is not GIT and scope is not INSTALLED else ""
            self._linked += len(own)
            if self._linked > _LINKED:
                self.gaps["more hard links than are compared"] = 1
                return
            key = (found.st_dev, found.st_ino)
            self.links.setdefault(key, []).append((own, found.st_nlink, found.st_ctime_ns))

    def _mark(self, path: str, detail: str, rule: str, shown: str, found: os.stat_result) -> None:
        self._marked += len(path)
        if len(self.marks) >= _MOST or self._marked > _MARKED:
            self.gaps["more than are listed of setuid programs and files with capabilities"] = 1
            return
        self.marks[path, detail] = Mark(rule, str(files.stamp_of(found)), shown, files.changed(found))

    def add(self, other: Modes) -> None:
        """What the other process found."""
        self.marks |= other.marks
        for key, names in other.links.items():
            self.links.setdefault(key, []).extend(names)

    def hard_links(self) -> dict[Key, Mark]:
        """Files with more names than were found; only once everything was looked at."""
        found: dict[Key, Mark] = {}
        for names in self.links.values():
            own = sorted(name for name, _, _ in names if name)
            more = names[0][1] - len(names)
            if own and more > 0:
                when = max(changed for _, _, changed in names)
                found[own[0], "links"] = Mark("hard link", "", f"{more} more names elsewhere", when)
        return found


class Half(Walk):
    """A walk for :class:`Modes` alone."""

    def __init__(self, limits: Limits, modes: Modes) -> None:
        super().__init__(limits)
        self._modes = modes

    def directories(self, roots: Sequence[tuple[str, str, Scope]]) -> None:
        """``roots``: path, how it is called, and scope."""
        with contextlib.suppress(Over):
            for path, name, scope in roots:
                with self.top(path) as handle:
                    if handle is not None:
                        self.tree(handle, name, scope)

    def listing(self, handle: int, path: str, scope: Scope) -> Below:
        share = self._modes.share
        below: Below = []
        prefix = f"{path}/" if path else ""
        count = 0
        with contextlib.suppress(OSError), os.scandir(handle) as entries:
            for entry in entries:
                count += 1
                if not count & 1023:
                    self.check(count)
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    below.append((name, GIT if name == ".git" else scope.child(name)))
                elif hash(name) & 1 == share and entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    if found.st_mode & 0o6111 or found.st_nlink > 1:
                        self._modes.look(handle, prefix + name, name, found, scope)
        self.entries += count
        self.check(0)
        return below


class Beside:
    """The second process: a fork of the one that scans, which has one thread and nothing to lose."""

    def __init__(self, limits: Limits, roots: Sequence[tuple[str, str, Scope]]) -> None:
        self._read, write = os.pipe()
        self._process = os.fork()
        if self._process:
            os.close(write)
            return
        try:
            signal.alarm(_SECONDS)
            modes = Modes(1)
            half = Half(limits, modes)
            half.directories(roots)
            data = [
                [[*key, *mark] for key, mark in modes.marks.items()],
                [[*key, names] for key, names in modes.links.items()],
                list({**half.gaps, **modes.gaps}.items()),
            ]
            with open(write, "w", encoding="utf-8") as file:
                json.dump(data, file)
        finally:
            os._exit(0)  # noqa: TID251 - a fork must not return into its parent's work

    def result(self) -> tuple[Modes, dict[str, int]]:
        """What it found, and its gaps. Waits for its end."""
        with open(self._read, encoding="utf-8") as file:
            data = file.read()
        os.waitpid(self._process, 0)
        modes = Modes(1)
        try:
            marks, links, gaps = json.loads(data)
        except ValueError:
            return modes, {"the modes of half of the files": 1}
        modes.marks = {(path, detail): Mark(*mark) for path, detail, *mark in marks}
        modes.links = {(device, inode): [tuple(name) for name in names] for device, inode, names in links}
        return modes, dict(gaps)


def can_fork() -> bool:
    """Whether a second process helps: where all processors are busy it only reads each directory twice."""
    return hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > max(1.0, os.getloadavg()[0])


def roots_of(workspace: str, git: str) -> list[tuple[str, str, Scope]]:
    """The directories of a scan: a workspace, and a git directory elsewhere."""
    return [(workspace, "", ORDINARY), *([(git, git, GIT)] if git else [])]


def _has_capability(directory: int, name: str) -> bool:
    if not hasattr(os, "getxattr"):
        return False
    try:  # there is no getxattrat; the descriptor stands for the directory, and no link is followed
        return bool(os.getxattr(f"/proc/self/fd/{directory}/{name}", _CAPABILITY, follow_symlinks=False))
    except OSError:
        return False

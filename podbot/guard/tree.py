"""Walking directories: one descriptor for each level, no link followed, and an end to it whatever is there."""

from __future__ import annotations

import os
import time

from podbot.guard import files
from podbot.guard.marks import directories_above
from podbot.guard.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from podbot.guard.scope import Scope

    Below = list[tuple[str, Scope]]
    """Directories to go into, each with its scope."""


class Limits(NamedTuple):
    """What one scan may cost. ``marks``: recorded things; ``data``: bytes that are read; ``words``: characters kept."""

    seconds: float = 5.0
    entries: int = 500_000
    depth: int = 64
    marks: int = 20_000
    data: int = 64 << 20
    words: int = 4 << 20


class Room:
    """What is left of some limits."""

    def __init__(self, marks: int, data: int, words: int) -> None:
        self.marks, self.data, self.words = marks, data, words


class Over(Exception):
    """A limit is reached."""


SHARED = 2
"""Levels down, where two processes share the directories among them."""


class Walk:
    """``gaps``: why something was not looked at, and how often.

    ``opened``: inode and ctime of each that was opened, by path; ``at``: the one that is being looked at.
    ``half``: of two processes which one this is; the second, 1, looks at nothing above the directories that are shared.
    ``above``: its gaps there, and limits that it reached, which the first one mostly has as well.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._end = time.monotonic() + limits.seconds
        self.gaps: dict[str, int] = {}
        self.entries = 0
        self.opened: dict[str, tuple[int, int]] = {}
        self.at = ""
        self._gaps_at: set[str] = set()
        self.half: int | None = None
        self.above: dict[str, int] = {}
        self._above = False

    def listing(self, handle: int, path: str, scope: Scope) -> Below:
        """What is to be done in one directory. Raises :class:`Over`."""
        raise NotImplementedError

    def outline(self, handle: int, scope: Scope) -> Below:
        """The directories in one that the other process looks at."""
        raise NotImplementedError

    def gap(self, text: str) -> None:
        """Something was not looked at."""
        self.gaps[text] = self.gaps.get(text, 0) + 1
        self._gaps_at.add(self.at)
        if self._above:
            self.above[text] = self.above.get(text, 0) + 1

    def around_gaps(self) -> dict[str, tuple[int, int]]:
        """Of ``opened``, those in or below which something was not looked at."""
        around = {above for path in self._gaps_at for above in (path, *directories_above(path))}
        return {path: self.opened[path] for path in around if path in self.opened}

    def once(self, text: str) -> None:
        """A limit was reached; how often does not matter."""
        self.gaps[text] = self.above[text] = 1

    def over(self, text: str) -> None:
        """Look at nothing more."""
        self.gap(text)
        self.above[text] = 1
        raise Over

    def check(self, count: int) -> None:
        """``count``: entries of a directory that is still being read."""
        if self.entries + count > self._limits.entries:
            self.over(f"more than {self._limits.entries} files and directories")
        if time.monotonic() > self._end:
            self.over(f"it took longer than {self._limits.seconds:g} s")

    def top(self, path: str) -> int | None:
        """A directory by its path; None when it is gone, and, with a gap, when it cannot be opened."""
        try:
            return files.open_directory(path)
        except FileNotFoundError:
            return None  # what is not there does nothing
        except OSError as exc:
            self.gap(f"{path} cannot be opened ({exc.strerror})")
            return None

    def tree(self, top: int, name: str, scope: Scope) -> None:
        """Depth first: what is open at a time is one directory a level."""
        found = os.fstat(top)
        device = found.st_dev
        self.at, self.opened[name] = name, (found.st_ino, found.st_ctime_ns)
        pending: list[tuple[int, str, Below]] = []
        try:
            self._enter(os.dup(top), name, scope, pending)
            while pending:
                handle, path, below = pending[-1]
                if not below:
                    os.close(handle)
                    pending.pop()
                    continue
                child, scope = below.pop()
                where = f"{path}/{child}" if path else child
                self.at = path
                if self.half is not None and len(pending) == SHARED and hash(where) & 1 != self.half:
                    continue
                if len(pending) > self._limits.depth:
                    self.gap(f"directories more than {self._limits.depth} levels deep")
                    continue
                self._above = self.half == 1 and len(pending) < SHARED
                below_it = self._open(child, handle, device, where)
                if below_it is not None:
                    self._enter(below_it, where, scope, pending)
        finally:
            for handle, _, _ in pending:
                os.close(handle)

    def _enter(self, handle: int, path: str, scope: Scope, pending: list[tuple[int, str, Below]]) -> None:
        """Look at an open directory, which is closed unless there are more in it."""
        self.at = path
        try:
            self._above = self.half == 1 and len(pending) < SHARED
            below = self.outline(handle, scope) if self._above else self.listing(handle, path, scope)
        except BaseException:
            os.close(handle)
            raise
        if below:
            pending.append((handle, path, below))
        else:
            os.close(handle)

    def _open(self, name: str, parent: int, device: int, path: str) -> int | None:
        try:
            handle = files.open_directory(name, parent)
        except OSError:
            self.gap("directories that cannot be opened")
            return None
        found = os.fstat(handle)
        if found.st_dev != device:
            os.close(handle)
            self.gap("other file systems mounted in it")
            return None
        self.opened[path] = (found.st_ino, found.st_ctime_ns)
        return handle

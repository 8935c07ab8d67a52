"""Walks directories with one descriptor for each level, without following links, within fixed limits."""

from __future__ import annotations

import os
import time

from podbot.guard import files
from podbot.guard.marks import MISSING, directories_above
from podbot.guard.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from podbot.guard.scope import Scope

    Below = list[tuple[str, Scope]]
    """Directories to go into, each with its scope."""


class Limits(NamedTuple):
    """The limits of one scan. ``marks``: recorded items; ``data``: bytes read; ``words``: characters stored."""

    seconds: float = 5.0
    entries: int = 500_000
    depth: int = 64
    marks: int = 20_000
    data: int = 64 << 20
    words: int = 4 << 20


class Room:
    """What remains of some limits."""

    def __init__(self, marks: int, data: int, words: int) -> None:
        self.marks, self.data, self.words = marks, data, words


class Over(Exception):
    """A limit was reached."""


SHARED = 2
"""The level at which directories are divided between two processes."""


class Walk:
    """``gaps``: why parts were not scanned, and how often.

    ``opened``: inode and ctime of each opened directory, by path; ``at``: the directory being scanned.
    ``roots``: see ``Snapshot``.
    ``half``: which of two processes this is; the second one, 1, records nothing above the level that is divided.
    ``parsing``: whether a parser runs, which an exception may end.
    ``above``: its gaps above that level, and limits that it reached, most of which the first process has too.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._end = time.monotonic() + limits.seconds
        self.gaps: dict[str, int] = {}
        self.entries = 0
        self.parsing = False
        self.opened: dict[str, tuple[int, int]] = {}
        self.roots: dict[str, tuple[int, int]] = {}
        self.at = ""
        self._gaps_at: set[str] = set()
        self.half: int | None = None
        self.above: dict[str, int] = {}
        self._above = False

    def listing(self, handle: int, path: str, scope: Scope) -> Below:
        """Record one directory; returns the subdirectories to walk. Raises :class:`Over`."""
        raise NotImplementedError

    def outline(self, handle: int, scope: Scope) -> Below:
        """The subdirectories of a directory that the other process records."""
        raise NotImplementedError

    def gap(self, text: str) -> None:
        """Note that something was not scanned."""
        self.gaps[text] = self.gaps.get(text, 0) + 1
        self._gaps_at.add(self.at)
        if self._above:
            self.above[text] = self.above.get(text, 0) + 1

    def around_gaps(self) -> dict[str, tuple[int, int]]:
        """The ``opened`` directories that contain a gap at any depth."""
        around = {above for path in self._gaps_at for above in (path, *directories_above(path))}
        return {path: self.opened[path] for path in around if path in self.opened}

    def once(self, text: str) -> None:
        """Note that a limit was reached, without counting how often."""
        self.gaps[text] = self.above[text] = 1

    def over(self, text: str) -> None:
        """Stop the scan."""
        self.gap(text)
        self.above[text] = 1
        raise Over

    def interrupt(self) -> None:
        """End the scan now: in the middle of a parser, or else at the next look at the clock. For a signal's handler.

        Only there, because an exception at any other place could leave descriptors open, or close them twice.
        """
        self._end = 0.0
        if self.parsing:
            self.parsing = False
            self.check(0)

    def check(self, count: int) -> None:
        """Stop the scan if a limit is reached. ``count``: entries of a directory that is still being read."""
        if self.entries + count > self._limits.entries:
            self.over(f"more than {self._limits.entries} files and directories")
        if time.monotonic() > self._end:
            self.over(f"it took longer than {self._limits.seconds:g} s")

    def top(self, path: str) -> int | None:
        """Open a root by its path; None if it is missing, or, with a gap, if it cannot be opened."""
        try:
            handle = files.open_directory(path)
        except FileNotFoundError:
            self.roots[path] = MISSING  # whether that is a gap depends on the other scan: see ``compare``
            return None
        except OSError as exc:
            self.gap(f"{path} cannot be opened ({exc.strerror})")
            return None
        found = os.fstat(handle)
        self.roots[path] = (found.st_dev, found.st_ino)
        return handle

    def tree(self, top: int, name: str, scope: Scope) -> None:
        """Walk depth first, with one open directory for each level."""
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
        """Record an open directory, and close it unless it has subdirectories to walk."""
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

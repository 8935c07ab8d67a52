"""Walks through directories in the order of their paths' segments, and finds the regular files that match."""

from __future__ import annotations

import errno
import operator
import os

from podbot.tools import worker_frames as limits
from podbot.tools.inside import beneath
from podbot.tools.inside.refusals import Clock, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from podbot.tools.inside.glob_pattern import Glob

    Found = Generator[tuple[str, int, str], None, None]

_FIRST = operator.itemgetter(0)


class Walk:
    """``skipped``: directories that could not be read, or that are too deep."""

    def __init__(self, glob: Glob, clock: Clock) -> None:
        self.skipped = 0
        self._glob, self._clock = glob, clock
        self._held = 0

    def files(self, fd: int) -> Found:
        """The path relative to the directory ``fd``, a descriptor of the file's directory, and its name there.

        The descriptor is closed afterwards. Raises Refused.
        """
        return self._in(fd, "", self._glob.start, 0)

    def _in(self, fd: int, prefix: str, places: frozenset[int], depth: int) -> Found:
        chosen = self._chosen(fd, places)
        for shown, name, below in chosen:
            if below is None:
                yield prefix + shown, fd, name
                continue
            child = self._entered(fd, name, depth)
            if child >= 0:
                try:
                    yield from self._in(child, f"{prefix}{shown}/", below, depth + 1)
                finally:
                    os.close(child)
        self._held -= len(chosen)

    def _chosen(self, fd: int, places: frozenset[int]) -> list[tuple[str, str, frozenset[int] | None]]:
        """The files that match, with None, and the directories in which one may, with their places. Sorted."""
        chosen: list[tuple[str, str, frozenset[int] | None]] = []
        matches, into = self._glob.matches, self._glob.below
        self._clock.check()
        with os.scandir(fd) as entries:
            for number, entry in enumerate(entries, 1):
                name = entry.name
                shown = name if name.isascii() else beneath.shown(name)
                if entry.is_dir(follow_symlinks=False):
                    below = into(places, shown)
                    if below:
                        chosen.append((shown, name, below))
                elif matches(places, shown) and entry.is_file(follow_symlinks=False):
                    chosen.append((shown, name, None))
                if not number % 1000:
                    self._check(len(chosen))
        self._check(len(chosen))
        self._held += len(chosen)
        chosen.sort(key=_FIRST)
        return chosen

    def _check(self, more: int) -> None:
        self._clock.check()
        if self._held + more > limits.NAMES_HELD:
            raise Refused("too_large", what="names", limit=limits.NAMES_HELD)

    def _entered(self, fd: int, name: str, depth: int) -> int:
        """A descriptor of a directory, or -1 for one that is skipped, or has been removed or replaced since."""
        if depth < limits.DEPTH:
            try:
                return beneath.listable_child(fd, name)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    return -1
        self.skipped += 1
        return -1

"""``inventory``: all entries below the root, for snapshots."""

from __future__ import annotations

import binascii
import heapq
import os
import time

from podbot.tools import worker_frames as limits
from podbot.tools.inside import beneath
from podbot.tools.inside.finding import Budget
from podbot.tools.inside.pieces import stamp
from podbot.tools.inside.refusals import Clock, Refused, refused
from podbot.tools.inside.removal import allow, allow_root, remove_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    Found = Generator[tuple[list[str], int, str], None, None]

_HELD = limits.ENTRIES + 2  # names of one directory: an answer has no more, and the one after it, and ``after``
_FOREIGN = 1000  # names that are not UTF-8, which are held at once


def inventory(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """The first entries behind the path ``after``, each directory before what is in it.

    ``clear``: for a restore. Let the owner list and change directories that deny it, and remove what no snapshot has:
    names that are not UTF-8, and what is more than 64 levels deep.
    """
    budget, now = Budget(), time.time_ns()
    after = args["after"].split("/") if args["after"] else []
    if args["clear"]:
        allow_root(root)
    try:
        fd = beneath.listable(root)
    except OSError as error:
        raise refused(error) from None
    walk = _Entries(clock, clear=args["clear"])
    entries = walk.below(fd, [], after)
    try:
        for path, at, name in entries:
            row = _row("/".join(path), at, name, now)
            if row is not None and not budget.add(row, row[0], row[5]):
                break
    finally:
        entries.close()
        os.close(fd)
    return {"entries": budget.found, "truncated": budget.full or walk.is_cut}


def _row(path: str, fd: int, name: str, now: int) -> list[Any] | None:
    """None for an entry that has been removed since."""
    try:
        found = beneath.look(fd, name)
        kind, size, _ = beneath.facts(found)
        target = os.readlink(os.fsencode(name), dir_fd=fd) if kind == "link" else b""
    except OSError:
        return None
    return [path, kind, size, found.st_mode & 0o777, stamp(found, now), _text(target)]


def _text(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


class _Entries:
    """``is_cut``: whether it ended at a directory of which more names are than are held."""

    def __init__(self, clock: Clock, *, clear: bool) -> None:
        self._clock, self._clear = clock, clear
        self.is_cut = False

    def below(self, fd: int, prefix: list[str], after: list[str]) -> Found:
        """The entries of ``fd`` behind ``after``: their paths, and where each is. Raises Refused."""
        names = self._names(fd, prefix, after[0] if after else "")
        for name, is_directory in names:
            path = [*prefix, name]
            begins = bool(after) and name == after[0]
            if not begins:
                yield path, fd, name
            if is_directory:
                yield from self._inside(fd, path, after[1:] if begins else [])
                if self.is_cut:
                    return
        self.is_cut = len(names) == _HELD

    def _inside(self, fd: int, path: list[str], after: list[str]) -> Found:
        if self._clear:
            allow(fd, path[-1])
        try:
            child = beneath.listable_child(fd, path[-1])
        except (FileNotFoundError, NotADirectoryError):  # it has been removed or replaced since
            return
        except OSError as error:
            raise refused(error) from None
        try:
            if len(path) < limits.SEGMENTS:
                yield from self.below(child, path, after)
            else:
                self._end_of_path(child)
        finally:
            os.close(child)

    def _end_of_path(self, fd: int) -> None:
        """A directory in which no path of a request leads."""
        for name in os.listdir(fd):
            if not self._clear:
                raise Refused("failed", reason=f"a directory is more than {limits.SEGMENTS} levels deep")
            self._remove(fd, name)

    def _remove(self, fd: int, name: str) -> None:
        try:
            remove_entry(fd, name, self._clock)
        except OSError as error:
            raise refused(error) from None

    def _names(self, fd: int, prefix: list[str], first: str) -> list[tuple[str, bool]]:
        """The first names from ``first`` on, sorted, and which are directories."""
        while True:
            foreign: list[str] = []
            names = heapq.nsmallest(_HELD, self._listed(fd, first, foreign))
            if not foreign:
                return names
            for name in foreign:
                if not self._clear:
                    shown = "/".join([*prefix, beneath.shown(name)])
                    raise Refused("failed", reason=f"the name {shown} is not UTF-8")
                self._remove(fd, name)

    def _listed(self, fd: int, first: str, foreign: list[str]) -> Iterator[tuple[str, bool]]:
        """The names from ``first`` on. Those that are not UTF-8 are put into ``foreign``, until it is full."""
        with os.scandir(fd) as entries:
            for entry in entries:
                self._clock.check()
                if beneath.shown(entry.name) != entry.name:
                    foreign.append(entry.name)
                    if len(foreign) == _FOREIGN:
                        return
                elif entry.name >= first:
                    yield entry.name, entry.is_dir(follow_symlinks=False)

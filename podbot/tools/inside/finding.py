"""``glob``."""

from __future__ import annotations

import os
import stat

from podbot.tools import worker_frames as limits
from podbot.tools.inside import beneath
from podbot.tools.inside.glob_pattern import Glob
from podbot.tools.inside.refusals import Clock, refused
from podbot.tools.inside.walking import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Budget:
    """How much one answer may still carry. ``full``: whether something did not fit, which ends the search.

    ``most``: entries that it may have.
    """

    def __init__(self, most: int = limits.ENTRIES) -> None:
        self.found: list[list[Any]] = []
        self.full = False
        self._bytes, self._most = limits.TEXT_BYTES, min(most, limits.ENTRIES)

    def add(self, entry: list[Any], *texts: str) -> bool:
        """Whether ``entry``, which has these texts, fitted."""
        self._bytes -= sum(len(text.encode("utf-8")) for text in texts)
        self.full = self._bytes < 0 or len(self.found) == self._most
        if not self.full:
            self.found.append(entry)
        return not self.full


def glob(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """The first regular files whose path below ``path`` matches; with ``after``, a path, the first behind that."""
    after = args.get("after", "").split("/")
    path, walk, budget = beneath.segments(args["path"]), Walk(Glob(args["pattern"]), clock), Budget()
    with beneath.directory(root, path) as through:
        try:
            fd = beneath.listable(through)
        except OSError as error:
            raise refused(error, at=len(path)) from None
        files = walk.files(fd)
        try:
            for relative, at, name in files:
                if relative.split("/") > after and not _add(budget, relative, at, name):
                    break
        finally:
            files.close()
            os.close(fd)
    return {"matches": budget.found, "truncated": budget.full, "skipped": walk.skipped}


def _add(budget: Budget, relative: str, fd: int, name: str) -> bool:
    try:
        found = beneath.look(fd, name)
    except OSError:  # it has been removed since
        return True
    if not stat.S_ISREG(found.st_mode):
        return True
    return budget.add([relative, *beneath.facts(found)[1:]], relative)

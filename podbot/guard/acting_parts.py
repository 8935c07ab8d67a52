"""Reads the files that a rule names, and reduces each to the value of the part that acts."""

from __future__ import annotations

from podbot.guard import files, gitdirs
from podbot.guard.catalogue import RULES
from podbot.guard.content import PARTIAL, Budget, most, value
from podbot.guard.marks import GIT_OR_SHELL, Mark
from podbot.guard.tree import Over
from podbot.guard.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from podbot.guard.marks import Known
    from podbot.guard.walk import Scan


class _Read(NamedTuple):
    """A file that was read and has yet to be parsed."""

    path: str
    name: str
    rule: str
    known: Known
    data: bytes
    changed: int


class Reading:
    """``known``: values that an earlier scan read. ``reuse``: whether an unchanged stamp shows unchanged content.

    ``values``: those of this scan, by path.
    """

    def __init__(self, known: Mapping[str, Known]) -> None:
        self._known = known
        self.reuse = False
        self.values: dict[str, Known] = {}
        self._later: list[_Read] = []  # at most as many bytes as a scan reads
        self._budget = Budget()

    def record(self, scan: Scan, handle: int, path: str, rule: str, found: os.stat_result) -> None:
        """Record the part that acts, by ``rule``, of the file at ``path`` in the open directory ``handle``."""
        if self.again(scan, path, rule, found):
            return
        name = path.rpartition("/")[2]
        stamp, known = files.stamp_of(found), self._known.get(path)
        if not scan.has_room(rule, min(found.st_size, most(rule))):
            return
        read = files.read(handle, name, most(rule))
        if read is None:
            scan.gap("files that cannot be read")
            self._note(scan, path, rule, (stamp, "", str(stamp)), files.changed(found))
            return
        whole = gitdirs.content(read)
        if known is not None and known[1] == whole:  # not parsed again: this scan's budget may be spent otherwise
            self._note(scan, path, rule, (stamp, whole, known[2]), files.changed(found))
        elif rule in PARTIAL and read.whole:
            self._later.append(_Read(path, name, rule, (stamp, whole, ""), read.data, files.changed(found)))
        else:
            self._note(scan, path, rule, (stamp, whole, whole), files.changed(found))

    def again(self, scan: Scan, path: str, rule: str, found: os.stat_result) -> bool:
        """Record a file without reading it, if the stamp shows that it is as an earlier scan read it."""
        known = self._known.get(path)
        if known is None or not self.reuse or known[0] != files.stamp_of(found) or RULES[rule].danger == GIT_OR_SHELL:
            return False
        self._note(scan, path, rule, known, files.changed(found))
        return True

    def unread(self, scan: Scan, path: str, rule: str, found: os.stat_result) -> None:
        """Record a file by its times and size, whatever is in it. A file that an earlier scan read may be unchanged."""
        stamp, known = files.stamp_of(found), self._known.get(path)
        same = known is not None and known[0] == stamp
        self._note(scan, path, rule, known if known and same else (stamp, "", str(stamp)), files.changed(found))

    def parse(self, scan: Scan) -> None:
        """The files that need a parser come last, so that none of them can use up the time for the rest.

        Of those for which there is no time left every byte counts. Raises Over.
        """
        later = iter(self._later)
        for read in later:
            path, name, rule, known, data, changed = read
            try:
                scan.check(0)
                self._note(scan, path, rule, (*known[:2], self.parsed(scan, rule, name, data)), changed)
            except Over:
                for rest in (read, *later):
                    self.values[rest.path] = (*rest.known[:2], rest.known[1])
                    scan.keep(rest.path, "", Mark(rest.rule, rest.known[1], "", rest.changed))
                raise

    def parsed(self, scan: Scan, rule: str, name: str, data: bytes) -> str:
        """The value of a file that was read. Raises Over, also in the middle of a parser."""
        scan.parsing = True
        try:
            return value(rule, name, data, self._budget)
        finally:
            scan.parsing = False

    def _note(self, scan: Scan, path: str, rule: str, known: Known, changed: int) -> None:
        if not known[2] or scan.mark(path, "", Mark(rule, known[2], "", changed)):
            self.values[path] = known

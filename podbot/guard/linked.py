"""Links in place of a file or directory that a rule names, such as `CLAUDE.md` or `.vscode`.

A program that acts on the link follows it, so the target's content counts if it is inside the scanned roots. A
directory is walked once for each scope that links give it, and reported under its own path.
"""

from __future__ import annotations

import os

from podbot.guard import files, gitdirs, locations, mercurial
from podbot.guard.catalogue import RULES
from podbot.guard.content import most
from podbot.guard.marks import Mark
from podbot.guard.scope import ORDINARY, Scope
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from podbot.guard.tree import Below
    from podbot.guard.walk import Scan

_DIRECTORIES = 256  # targets of links, in one scan


class Links:
    """The directories that links lead to. They are walked last, so that they cannot use up the limits of the rest."""

    def __init__(self) -> None:
        self._found: list[tuple[locations.Location, Scope]] = []
        self._seen: set[tuple[str, str, int]] = set()

    def look(self, scan: Scan, where: str, leads: str, rule: str, scope: Scope) -> None:
        """Record the link at the path ``where``, in a directory of ``scope``, to which ``rule`` applies.

        With an empty rule it is in place of a directory in which rules name some files, such as ``docs``.
        """
        path, _, name = where.rpartition("/")
        place = gitdirs.behind(scan, leads, os.path.join(scan.root, path))
        if not rule:
            if place is not None:
                self._add(scan, place, scope.below[name])
            return
        found = None if place is None else locations.read(place, most(rule))
        text = f"link:{leads}"
        if found is not None and scan.has_room(rule, len(found.data)):
            text += " " + (scan.reading.parsed(scan, rule, name, found.data) if found.whole else gitdirs.content(found))
        scan.mark(where, "", Mark(rule, text, f"a link to {leads[:80]}"))
        below = scope if scope.everything else scope.below.get(name)
        if place is not None and found is None and below is not None:
            self._add(scan, place, below)

    def _add(self, scan: Scan, place: locations.Location, scope: Scope) -> None:
        key = (place.root, place.path, id(scope))
        if key not in self._seen:
            self._seen.add(key)
            if len(self._seen) > _DIRECTORIES:
                scan.once(f"more than {_DIRECTORIES} directories behind links")
            else:
                self._found.append((place, scope))

    def walk(self, scan: Scan) -> None:
        """Walk the directories, and those that links in them lead to. Raises ``Over``."""
        while self._found:
            place, scope = self._found.pop()
            try:
                handle = locations.open_directory(place)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                scan.gap("directories that cannot be opened")
                continue
            try:
                scan.root = place.root
                scan.tree(handle, place.name, scope)
            finally:
                os.close(handle)

    def listing(self, scan: Scan, handle: int, path: str, scope: Scope) -> Below:
        """Record what applies in a directory because of the link. The rest was recorded at the directory's own path."""
        below: Below = []
        try:
            with os.scandir(handle) as entries:
                for entry in entries:
                    scan.entries += 1
                    scan.check(0)
                    if not entry.is_dir(follow_symlinks=False):
                        self._entry(scan, handle, path, entry, scope)
                    elif scope.everything or entry.name in scope.below:
                        below.append((entry.name, scope.child(entry.name)))
        except OSError:
            scan.gap("directories that cannot be read")
        return below

    def _entry(self, scan: Scan, handle: int, path: str, entry: os.DirEntry[str], scope: Scope) -> None:
        name = entry.name
        where = f"{path}/{name}" if path else name
        rule = scope.rule_of(name)
        if entry.is_symlink():
            leads = files.link(handle, name)
            rule = rule or (scope.below[name].rule if name in scope.below else "")
            if leads is not None and (rule in RULES or name in scope.below):
                self.look(scan, where, leads, rule, scope)
        elif entry.is_file(follow_symlinks=False) and rule in RULES and rule != ORDINARY.rule_of(name):
            self._file(scan, handle, where, name, rule)

    @staticmethod
    def _file(scan: Scan, handle: int, path: str, name: str, rule: str) -> None:
        """The file is read again, because ``values`` of the first scan are for another rule."""
        found = files.read(handle, name, most(rule))
        if found is None:
            scan.gap("files that cannot be read")
        elif scan.has_room(rule, len(found.data)):
            text = scan.reading.parsed(scan, rule, name, found.data) if found.whole else gitdirs.content(found)
            if text:
                shown = "by a link to its directory"
                scan.mark(path, f"link:{rule}", Mark(rule, text, shown, files.changed(found.found)))
        if rule == "hg":
            mercurial.follow(scan, handle, path)

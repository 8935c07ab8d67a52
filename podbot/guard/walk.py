"""The scan of a workspace: its names, links and git directories and, through ``modes``, every file's mode."""

from __future__ import annotations

import os
import stat
from itertools import islice

from podbot.guard import files, gitdirs, gitfiles, githidden, gitsteps, mercurial, repositories
from podbot.guard.acting_parts import Reading
from podbot.guard.catalogue import RULES
from podbot.guard.deceiving import are_plain, deceives, leads_out
from podbot.guard.filesystem import file_clock, is_stamped
from podbot.guard.halves import Half, interrupt_after
from podbot.guard.linked import Links
from podbot.guard.marks import GIT_OR_SHELL, Mark, Snapshot
from podbot.guard.modes import Modes, roots_of
from podbot.guard.scope import BARE, COMMON, GIT, GIT_FILE, MODULES, WORKTREE_CONFIG, Scope, scoped
from podbot.guard.tree import Limits, Over, Room, Walk
from podbot.guard.unnamed import Unnamed
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from podbot.guard.marks import Key, Known
    from podbot.guard.tree import Below

_KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
_MODULE = "python.module"  # counts only beside a source of the same name
_MANY = 1024  # entries of a directory that are read at once


class Scan(Walk):
    """One scan. ``known``: values that an earlier scan read, so that they are not read again.

    ``modes``: examine every file; a first scan need not, because files older than that scan had their mode before.
    ``beside``: scan half of the directories in a second process, a fork, so the caller must have one thread. Each
    process has the full limits, and both end at the same time.
    ``early``: called with what is known once the repository at the top has been scanned, before anything else is.
    ``root``: the directory being scanned. ``known_roots``: all of them. ``scripts``: files that were read because git's
    configurations name them. ``links``: directories that links lead to. ``reading``: the files that rules name.
    ``git_room``: bytes of indexes and lists of references that may still be read: each linked worktree has an index.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        known: Mapping[str, Known] | None = None,
        *,
        modes: bool = True,
        beside: bool = False,
        early: Callable[[Snapshot], None] | None = None,
    ) -> None:
        super().__init__(limits or Limits())
        self._began = file_clock()
        self._marks: dict[Key, Mark] = {}
        self.reading = Reading(known or {})
        self._early = early
        self._modes = Modes() if modes else None
        self._beside = beside
        # Class 1 has its own limits, so that no amount of other files can hide its findings.
        self._rooms = {first: Room(*self._limits[3:]) for first in (True, False)}
        self.git_room = 4 * self._limits.data
        self._looked: set[str] = set()
        self.scripts: set[str] = set()
        self.links = Links()
        self._follows = False
        self._unnamed = Unnamed(self)
        self.root = ""
        self.known_roots: Sequence[str] = ()

    def directories(self, workspace: str, git: str = "") -> Snapshot:
        """Scan the workspace, whose paths are relative, and a git directory outside it. Never raises OSError."""
        self.known_roots = (workspace, *([git] if git else []))
        self._looked.update(self.known_roots)
        roots = roots_of(workspace, git)
        other = Half(lambda: self._second_half(roots)) if self._beside else None
        self.half = None if other is None else 0
        self._walk(roots, linked=(workspace, git) if git else None)
        if other is not None:
            self._join(other.result())
        if self._modes is not None:
            self._add(self._modes)
        gaps = tuple(text if count == 1 else f"{text} ({count} times)" for text, count in self.gaps.items())
        found = self.around_gaps() if self._modes is None else self.opened
        return Snapshot(self._began, self._marks, gaps, self.entries, self.reading.values, found, self.roots)

    def _tell(self) -> None:
        early, self._early = self._early, None
        if early is not None:
            early(Snapshot(self._began, dict(self._marks), tuple(self.gaps), self.entries, roots=dict(self.roots)))

    def _walk(self, roots: Sequence[tuple[str, str, Scope]], linked: tuple[str, str] | None = None) -> None:
        """``linked``: a workspace and its git directory outside it, which is scanned first."""
        try:
            # The most dangerous comes first, so that nothing in the workspace can use up the time for it.
            if linked is not None:
                self._linked(*linked)
            for path, name, scope in roots:
                self._root(path, name, scope)
            if self.half != 1:
                self._unnamed.top(roots[0][0])
            self._unnamed.projects(roots[0][0])
            self.half = None
            self._follows = True
            self.links.walk(self)
            self.reading.parse(self)
        except Over:
            return  # a gap records this

    def _second_half(self, roots: Sequence[tuple[str, str, Scope]]) -> dict[str, Any]:
        self.half = 1
        interrupt_after(self._limits.seconds, self.interrupt)
        self._walk(roots)
        return {
            "marks": {key: tuple(mark) for key, mark in self._marks.items()},
            "values": self.reading.values,
            "gaps": self.gaps,
            "above": self.above,
            "gaps_at": list(self._gaps_at),
            "entries": self.entries,
            "opened": self.opened,
            "roots": self.roots,
            "modes": None if self._modes is None else self._modes.to_plain(),
        }

    def _join(self, found: dict[str, Any] | None) -> None:
        if found is None or any(self.roots.get(path, root) != root for path, root in found["roots"].items()):
            self.gap("half of the directories")
            return
        for (path, detail), mark in found["marks"].items():
            self.keep(path, detail, Mark(*mark))
        self.reading.values |= found["values"]
        self.opened |= found["opened"]
        self._gaps_at.update(found["gaps_at"])
        self.entries += found["entries"]
        for text, count in found["gaps"].items():
            own = self.gaps.get(text, 0)
            self.gaps[text] = own + count - min(own, found["above"].get(text, 0))
        if self._modes is not None:
            self._modes.add(found["modes"])

    def outline(self, handle: int, scope: Scope) -> Below:
        """See Walk."""
        try:
            with os.scandir(handle) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            self.gap("directories that cannot be read")
            return []
        self.check(len(names))
        return scoped(names, scope, bare=not scope.is_git and repositories.is_repository(handle, "", scope))

    def _root(self, path: str, name: str, scope: Scope) -> None:
        self._above = self.half == 1
        handle = self.top(path)
        if handle is None:
            return
        try:
            self.root = path
            self.reading.reuse = is_stamped(handle)
            if self.half != 1:
                self._first(handle, scope)
                self._tell()
            self.tree(handle, name, scope)
        finally:
            os.close(handle)

    def _add(self, modes: Modes) -> None:
        self.gaps = {**modes.gaps, **self.gaps}
        self._marks |= modes.marks
        if not self.gaps:  # otherwise a missing name may be in a part that was not scanned
            self._marks |= modes.hard_links()

    def mark(self, path: str, detail: str, found: Mark) -> bool:
        """Record one item, unless a limit is reached. Raises :class:`Over` when the time is up."""
        self.check(0)
        room = self._rooms[RULES[found.rule].danger == GIT_OR_SHELL]
        room.marks -= 1
        room.words -= len(path) + len(detail) + len(found.value) + len(found.shown)
        if room.marks < 0:
            self.once(f"more than {self._limits.marks} files to check")
        elif room.words < 0:
            self.once(f"more than {self._limits.words >> 20} Mi characters of names and values")
        else:
            self.keep(path, detail, found)
            return True
        return False

    def keep(self, path: str, detail: str, found: Mark) -> None:
        """Record one item whatever the limits. Of two rules for a file, as for a hook in `.husky`, the worse counts."""
        before = self._marks.get((path, detail))
        if before is None or RULES[found.rule].danger <= RULES[before.rule].danger:
            self._marks[path, detail] = found

    def _first(self, handle: int, scope: Scope) -> None:
        """Scan the repository at the top of a workspace first, so that other files cannot use up its limits."""
        found = files.look(handle, ".git")
        if scope is GIT:
            return
        if found is not None and stat.S_ISDIR(found.st_mode):
            self._repository(handle, ".git", ".git", "")
        elif found is not None:
            gitdirs.git_file(self, handle, ".git", "")
        if repositories.is_repository(handle, "", scope):
            self._repository(handle, ".", ".", None)

    def _linked(self, workspace: str, git: str) -> None:
        try:
            handle = files.open_directory(git)
        except OSError:
            return  # its own walk records the gap
        try:
            self.root = workspace
            self._contents(handle, git, "")
        finally:
            os.close(handle)

    def listing(  # noqa: C901, PLR0912 - the one loop over all entries: a function call for each would double its time
        self, handle: int, path: str, scope: Scope
    ) -> Below:
        """Record one directory; returns its subdirectories, each with its scope."""
        if self._follows:
            return self.links.listing(self, handle, path, scope)
        names, everything = scope.names, scope.everything
        look = None if self._modes is None else self._modes.look
        prefix = f"{path}/" if path else ""
        below: list[str] = []
        links: list[str] = []
        mine, odd = [], []
        refs, bare = scope.is_git, False
        count, text = 0, ""
        try:
            with os.scandir(handle) as entries:
                while some := list(islice(entries, _MANY)):
                    count += len(some)
                    if len(some) == _MANY:
                        self.check(count)
                    text = "/".join([entry.name for entry in some])
                    if not are_plain(text):
                        odd += [entry.name for entry in some if deceives(entry.name)]
                    refs = refs or "refs" in text
                    ends = scope.ends if scope.has_end(text) else ()
                    for entry in some:
                        if entry.is_file(follow_symlinks=False):
                            name = entry.name
                            if look is not None:
                                found = entry.stat(follow_symlinks=False)
                                if found.st_mode & 0o6111 or found.st_nlink > 1:
                                    look(handle, prefix + name, name, found, scope)
                            if name in names or everything or (ends and name.endswith(ends)):
                                mine.append((name, entry.stat(follow_symlinks=False)))
                        elif entry.is_dir(follow_symlinks=False):
                            below.append(entry.name)
                        elif entry.is_symlink():
                            links.append(entry.name)
                        else:
                            self._special(handle, prefix + entry.name, entry.name, scope)
        except OSError:
            self.gap("directories that cannot be read")
        self.entries += count
        self.check(0)
        for name in odd:
            self.mark(prefix + name, "name", Mark("name", ""))
        for name, found in mine:
            self._file(handle, prefix, name, scope, found)
        self._unnamed.note(handle, path, scope, [name for name, _ in mine], text if count < _MANY else None)
        if ".git" in below:
            self._repository(handle, ".git", f"{prefix}.git", path)
        known = path == ".git" or path.endswith("/.git")
        if refs and not known and repositories.is_repository(handle, path, scope, self._looked):
            self._repository(handle, ".", path or ".", None, inside=scope.is_git)
            bare = not scope.is_git
        for name in links:
            self._link(handle, path, name, scope, bare=bare)
        below.sort(key=".git".__eq__)  # the last one is walked first
        return scoped(below, scope, bare=bare)

    def _file(self, handle: int, prefix: str, name: str, scope: Scope, found: os.stat_result) -> None:
        """Record a file to which a rule applies."""
        rule, path = scope.rule_of(name), prefix + name
        if rule == GIT_FILE:
            gitdirs.git_file(self, handle, path, prefix.rstrip("/"))
        elif rule == COMMON:
            gitdirs.common_directory(self, handle, path)
        elif rule == WORKTREE_CONFIG:
            gitdirs.config(self, handle, name, path)
        elif rule == MODULES:
            gitdirs.modules(self, handle, path)
        elif rule and (rule != _MODULE or files.look(handle, f"{name.partition('.')[0]}.py") is not None):
            self.reading.record(self, handle, path, rule, found)
            if rule == "hg":
                mercurial.follow(self, handle, path)

    def has_room(self, rule: str, size: int) -> bool:
        """Count ``size`` bytes to be read for ``rule``; returns false, with a gap, if a limit is reached."""
        room = self._rooms[RULES[rule].danger == GIT_OR_SHELL]
        if room.marks <= 0:
            self.once(f"more than {self._limits.marks} files to check")
            return False
        room.data -= size
        if room.data < 0:
            self.once(f"more than {self._limits.data >> 20} MiB to read")
            return False
        return True

    def _repository(self, handle: int, name: str, path: str, top: str | None, *, inside: bool = False) -> None:
        """``top``: the path of its working tree; None for a directory with the layout of a bare repository.

        ``inside``: it is in another git directory, as a submodule's is.
        """
        if path in self._looked:
            return
        self._looked.add(path)
        try:
            git = files.open_directory(name, handle)
        except OSError:
            self.gap("directories that cannot be opened")
            return
        try:
            kept = inside and (
                "/modules/" in path or not repositories.is_laid_out(git)
            )  # git made it, so only its content counts
            if path not in (".git", *self.known_roots) and not kept:
                self.mark(path, "repository", Mark("git.repository", "", "", repositories.birth(git)))
            if path not in self.known_roots:
                self._contents(git, path, top)
        finally:
            os.close(git)

    def _contents(self, git: int, path: str, top: str | None) -> None:
        plain, tree = gitdirs.GitDirectory(self, git, path, top).look()
        gitfiles.look(self, git, path)
        gitsteps.steps(self, git, path)
        githidden.look(self, git, path, plain, tree)

    def _link(self, handle: int, path: str, name: str, scope: Scope, *, bare: bool) -> None:
        leads = files.link(handle, name)
        if leads is None:
            return
        where = f"{path}/{name}" if path else name
        if bare or scope is BARE:
            self._link_of_git(handle, where, name, leads)
        rule = scope.rule_of(name)
        if rule == GIT_FILE:
            gitdirs.git_file(self, handle, where, path)
            return
        if rule == COMMON:
            gitdirs.common_directory(self, handle, where)
        elif rule in (WORKTREE_CONFIG, MODULES):
            gitdirs.config(self, handle, name, where)
            return
        rule = scope.rule_of_link(name)
        if rule or name in scope.below:
            self.links.look(self, where, leads, rule, scope)
        if rule == "hg":
            mercurial.follow(self, handle, where)
        if not rule:
            self._other_link(handle, path, name, scope, leads)

    def _other_link(self, handle: int, path: str, name: str, scope: Scope, leads: str) -> None:
        """A link to which no rule applies."""
        where = f"{path}/{name}" if path else name
        if scope.is_git:
            self._link_of_git(handle, where, name, leads)
        elif scope.links and mercurial.is_led_elsewhere(where):
            self.mark(where, "link", Mark("hg", leads, f"a link to {leads[:80]}"))
        elif scope.links and leads_out(self.root, path, leads) and (where, "") not in self._marks:
            found = files.look(handle, name)
            self.mark(where, "link", Mark("link", leads, f"to {leads[:80]}", files.changed(found) if found else 0))

    def _link_of_git(self, handle: int, where: str, name: str, leads: str) -> None:
        """Record a link in a git directory, at any depth, also one that stays in it; hooks have their own mark.

        git follows links when it writes logs, FETCH_HEAD or COMMIT_EDITMSG: with one from ``logs/HEAD`` to
        ``hooks/post-checkout``, a checkout appends the agent's text to a hook that was there, and runs it.
        """
        if not gitfiles.is_own_link(name, leads) and (where, "") not in self._marks:
            found = files.look(handle, name)
            when = files.changed(found) if found else 0
            self.mark(where, "", Mark("git.link", leads, f"a link to {leads[:80]}", when))

    def _special(self, handle: int, path: str, name: str, scope: Scope) -> None:
        found = files.look(handle, name)
        if found is None or (scope.is_git and name.startswith("fsmonitor--daemon")):
            return
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no file")
        self.mark(path, "", Mark("special", kind, kind, files.changed(found)))

"""Compares a workspace with the host's files that it was made from, and makes the patches; runs in a helper process."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import Any

from podbot.suites.git_patch import Content, is_refused, mode_patch, patch_of
from podbot.suites.hostile_files import LIST, Opened, Skip, is_at, opened_file
from podbot.suites.new_files import NewFiles
from podbot.suites.patch_job import Base, Job, Place, Report

_HEAD = 100  # bytes that every new file needs besides its name


class _Over(Exception):
    """The time is up."""


class Comparison:
    """One export. Raises OSError if the workspace cannot be opened.

    When something else removes the workspace, its files are missing one after another, as if they had been deleted.
    So deletions are reported at the end, if the workspace is still in its place; so is what needs them.
    """

    def __init__(self, job: Job, report: Report, clock: Callable[[], float] = time.monotonic) -> None:
        self._job, self._limits, self._report, self._clock = job, job.limits, report, clock
        self._end = clock() + job.limits.seconds
        self._room, self._files = job.limits.patch_bytes, job.limits.files
        self._names, self._name_bytes, self._more = job.limits.named, job.limits.named_bytes, 0
        self._deleted: set[bytes] = set()
        self._held: list[tuple[Any, ...]] = []
        self._roots: dict[bytes, int] = {}
        self._start = job.within.target if job.within else b""
        self._top = os.open(job.directory, LIST)

    def run(self) -> None:
        """Report everything. Files that were copied come first, so no number of new ones can use up their limits."""
        try:
            for base in self._job.bases:
                if base.shown and not any(is_refused(name) for name in base.target.split(b"/")):
                    self._guarded(base.shown, self._compare, base)
            for target in self._new() if self._job.new_files else []:
                self._guarded(self._shown(target), self._add, target)
            self._finish()
        finally:
            for fd in (self._top, *self._roots.values()):
                os.close(fd)

    def _finish(self) -> None:
        if not is_at(self._job.directory, self._top):
            self._report(("failed", "it was removed, renamed or replaced meanwhile"))
            return
        for record in self._held:
            self._report(record)
        self._report(("end", self._more))

    def _guarded(self, shown: bytes, work: Callable[..., None], *what: object) -> None:
        try:
            self._check()
            work(*what)
        except Skip as skip:
            self._leave_out(shown, str(skip))
        except _Over:
            self._leave_out(shown, f"the export takes longer than {self._limits.seconds:g} s")

    def _check(self) -> None:
        if self._is_late():
            raise _Over

    def _is_late(self) -> bool:
        return self._clock() > self._end

    def _leave_out(self, shown: bytes, reason: str) -> None:
        self._names -= 1
        self._name_bytes -= len(shown)
        if self._names < 0 or self._name_bytes < 0:
            self._more += 1
        else:
            self._report(("left", shown, reason))

    def _compare(self, base: Base) -> None:
        """Report what has changed of a file that was copied."""
        old = new = None
        with opened_file(self._top, base.target, one_device=True) as mine, self._host(base) as theirs:
            if mine.fd < 0 and theirs.fd < 0:
                return
            same = mine.has_content_of(theirs, self._check)
            if same and mine.executable == theirs.executable:
                return
            self._check_base(base, theirs)
            if not same:
                old = self._content(theirs)
                new = self._content(mine) if mine.fd >= 0 else None
            bit = mine.executable
        patch = mode_patch(base.shown, executable=bit) if same else patch_of(base.shown, old, new, self._check)
        change = "modified" if same or new else "deleted"
        self._take(base.shown, change, patch)
        if change == "deleted":
            self._deleted.add(base.shown)

    def _check_base(self, base: Base, theirs: Opened) -> None:
        """Raises Skip if the host's file is no longer what was copied, so that no patch would fit it."""
        if theirs.fd < 0:
            raise Skip("the host has removed or replaced it since it was copied")
        was = base.size, base.mtime_ns, base.ctime_ns, base.executable  # programs can set mtime, not ctime
        if (theirs.size, theirs.mtime_ns, theirs.ctime_ns, theirs.executable) != was:
            raise Skip("the host has changed it since it was copied")
        if base.linked:
            raise Skip("on the host it lies behind a symbolic link, where git applies nothing")

    def _host(self, base: Base) -> Opened:
        try:
            if base.root not in self._roots:
                self._roots[base.root] = os.open(base.root, LIST)
            return _of_host(self._roots[base.root], base.source)
        except OSError as error:
            raise Skip(f"the host's directory cannot be opened: {error.strerror}") from error

    def _content(self, file: Opened) -> Content:
        return Content(file.content(self._limits.file_bytes, self._check), file.executable)

    def _take(self, shown: bytes, change: str, patch: bytes) -> None:
        if patch:
            self._check_room(len(patch))
            self._files -= 1
            self._room -= len(patch)
            record = ("file", shown, change, patch)
            if change == "deleted" or self._is_below_deleted(shown):
                self._held.append(record)
            else:
                self._report(record)

    def _is_below_deleted(self, shown: bytes) -> bool:
        return any(shown[:at] in self._deleted for at, byte in enumerate(shown) if byte == ord("/"))

    def _check_room(self, size: int) -> None:
        if self._files <= 0:
            raise Skip(f"the patch has {self._limits.files:,} files without it")
        if size > self._room:
            raise Skip(f"the patch would have more than {self._limits.patch_bytes:,} bytes with it")

    def _new(self) -> list[bytes]:
        """The paths of the new files in the workspace."""
        known = {base.target for base in self._job.bases}

        def leave_out(target: bytes, reason: str) -> None:
            self._leave_out(self._shown(target), reason)

        try:
            found = NewFiles(known, self._limits, leave_out, self._is_late).below(self._top, self._start)
        except FileNotFoundError:
            return []
        except Skip as skip:
            self._leave_out(b"", str(skip))
            return []
        within = self._job.within
        return [target for target in found if within is None or within in self._places(target)]

    def _shown(self, target: bytes) -> bytes:
        return target[len(self._start) :].lstrip(b"/")

    def _add(self, target: bytes) -> None:
        shown = self._shown(target)
        self._check_room(_HEAD + 2 * len(shown))  # before it is read
        with opened_file(self._top, target, one_device=True) as mine:
            if mine.fd < 0 or any(self._is_there(place, target, mine) for place in self._places(target)):
                return  # removed meanwhile, or no change
            new = self._content(mine)
        self._take(shown, "added", patch_of(shown, None, new, self._check))

    def _places(self, target: bytes) -> list[Place]:
        """The innermost that a new file lies in; several, if they were copied to the same path."""
        holding = [one for one in self._job.places if not one.target or target.startswith(one.target + b"/")]
        return [one for one in holding if one.target == holding[0].target]

    def _is_there(self, place: Place, target: bytes, mine: Opened) -> bool:
        """Whether the host has the file, too.

        Raises Skip if it has anything else, and if that cannot be said: git would apply nothing at all.
        """
        try:
            return self._is_below(os.open(place.host, LIST), place, target, mine)
        except FileNotFoundError:
            return False  # it has nothing of this name, or no directory for it: git creates both
        except OSError as error:
            raise Skip(f"what the host has in its place cannot be looked at: {error.strerror}") from error

    def _is_below(self, fd: int, place: Place, target: bytes, mine: Opened) -> bool:
        """The same of the open directory of the place, which is closed after it. Raises OSError and Skip."""
        words = target[len(place.target) :].lstrip(b"/").split(b"/")
        try:
            for number, name in enumerate(words, 1):
                kind = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
                here = b"/".join((*([place.target] if place.target else []), *words[:number]))
                if stat.S_ISREG(kind) and self._shown(here) in self._deleted:
                    return False
                if number == len(words):
                    return self._is_same(fd, name, mine)
                if not stat.S_ISDIR(kind):
                    raise Skip("the host has no directory in the place of one that it is in")
                below = os.open(name, LIST, dir_fd=fd)
                os.close(fd)
                fd = below
            return False
        finally:
            os.close(fd)

    def _is_same(self, directory: int, name: bytes, mine: Opened) -> bool:
        with _of_host(directory, name) as theirs:
            if mine.executable == theirs.executable and mine.has_content_of(theirs, self._check):
                return True
        raise Skip("the host has something of this name, which was not copied")


def _of_host(directory: int, path: bytes) -> Opened:
    try:
        return opened_file(directory, path, one_device=False)
    except Skip as skip:
        raise Skip(f"of the host's own file: {skip}") from skip

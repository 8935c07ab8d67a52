"""The steps of an unfinished rebase, cherry-pick or `am`, which `git rebase --continue` carries out.

Only steps that name a program are recorded. A rebase of ordinary picks that stopped at a conflict is not a finding.
"""

from __future__ import annotations

import os
import stat

from podbot.guard import files, gitdirs, locations
from podbot.guard.gitconfig import parse
from podbot.guard.marks import Mark
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from podbot.guard.walk import Scan

STATES = ("rebase-merge", "rebase-apply", "sequencer")
_TODO = ("git-rebase-todo", "todo")
_RULE = "git.steps"
_MOST = 1 << 20  # bytes of a list of steps; a longer one is compared by its beginning, size and time
_SHOWN = 80  # characters that are shown
_STRATEGIES = frozenset({"", "ort", "recursive", "resolve", "octopus", "ours", "subtree"})
"""Git's builtin strategies. For another one, `a/x`, it runs ``git-merge-a/x`` in the working tree (git 2.39)."""


def commands(todo: bytes) -> list[str]:
    """The lines of a list of steps that run a command, as git parses them (``sequencer.c``)."""
    found = []
    for line in todo.split(b"\n"):
        step = line.lstrip(b" \t")
        for word in (b"exec", b"x"):
            if step.startswith(word) and step[len(word) : len(word) + 1] in (b"", b" ", b"\t", b"\r", b"\0"):
                found.append(step.decode("utf-8", "surrogateescape"))
                break
    return found


def steps(scan: Scan, directory: int, path: str) -> None:
    """Record the programs that the unfinished steps of one git directory run. ``path``: how it is reported."""
    for state in STATES:
        try:
            handle = _opened(scan, directory, state, f"{path}/{state}")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            scan.gap(f"{path}/{state} cannot be read")
            continue
        if handle is not None:
            try:
                _state(scan, handle, f"{path}/{state}")
            finally:
                os.close(handle)


def _opened(scan: Scan, directory: int, name: str, path: str) -> int | None:
    """Open the directory ``name``, following a link to it inside the workspace. Raises OSError."""
    leads = files.link(directory, name)
    if leads is None:
        return files.open_directory(name, directory)
    scan.mark(path, "", Mark(_RULE, f"link:{leads}", f"a link to {leads[:_SHOWN]}"))
    place = gitdirs.behind(scan, leads, gitdirs.absolute(scan, os.path.dirname(path)))
    return None if place is None else locations.open_directory(place)


def _state(scan: Scan, handle: int, path: str) -> None:
    for name in _TODO:
        found = _read(scan, handle, name, f"{path}/{name}")
        if found is None:
            continue
        when = files.changed(found.found)
        run = commands(found.data)
        if run:
            scan.mark(f"{path}/{name}", "", Mark(_RULE, "\n".join(run), run[0][:_SHOWN], when))
        if not found.whole:
            scan.mark(f"{path}/{name}", "content", Mark(_RULE, gitdirs.content(found), "it is too long", when))
    found = _read(scan, handle, "strategy", f"{path}/strategy")
    if found is not None:
        _strategy(scan, f"{path}/strategy", os.fsdecode(found.data).rstrip("\r\n"), files.changed(found.found))
    found = _read(scan, handle, "opts", f"{path}/opts")
    if found is not None:
        for key, value in parse(found.data).entries:
            if key == "options.strategy":
                _strategy(scan, f"{path}/opts", value or "", files.changed(found.found))


def _strategy(scan: Scan, path: str, name: str, when: int) -> None:
    if name not in _STRATEGIES:
        scan.mark(path, "strategy", Mark(_RULE, name, f"strategy = {name[:_SHOWN]}", when))


def _read(scan: Scan, directory: int, name: str, path: str) -> files.Read | None:
    leads = files.link(directory, name)
    if leads is None:
        found = files.read(directory, name, _MOST)
        if found is None:
            there = files.look(directory, name)
            if there is not None and stat.S_ISREG(there.st_mode):
                scan.gap(f"{path} cannot be read")
        return found
    scan.mark(path, "link", Mark(_RULE, f"link:{leads}", f"a link to {leads[:_SHOWN]}"))
    place = gitdirs.behind(scan, leads, gitdirs.absolute(scan, os.path.dirname(path)))
    return None if place is None else locations.read(place, _MOST)

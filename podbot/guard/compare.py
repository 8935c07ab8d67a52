"""Compares two scans and returns findings, the most dangerous first. Pure."""

from __future__ import annotations

from operator import itemgetter

from podbot.guard.catalogue import RULES
from podbot.guard.content import PARTIAL
from podbot.guard.marks import (
    AGENT,
    BUILD,
    EDITOR,
    MISSING,
    SETTINGS,
    Finding,
    GuardReport,
    Key,
    Mark,
    Snapshot,
    directories_above,
)
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_AT_ONCE = frozenset(
    ("core.fsmonitor", "core.hookspath", "core.sshcommand", "core.pager", "core.editor", "core.worktree")
)
"""Keys of git that act at what everybody types; an alias runs only if somebody types it."""

_UNKNOWN = ((0, 0, 0, 0), "", "unknown")

Found = tuple[Key, Mark, "Mark | None"]
"""A new or changed mark, and what it was before."""

GONE = "what counted in it is gone"

ONLY_CHANGED = frozenset({"git.address", "git.record"})
"""Ordinary where they are new: `git remote add` and `git worktree add` make them. See ``gitdirs``."""

TIMED = frozenset({"setuid", "capability", "hard link", "git.hard link"})
"""Detected by a file's ctime, which nothing inside can set, so the first scan need not examine every file."""


def compare(before: Snapshot, after: Snapshot) -> GuardReport:
    """Only files that exist afterwards can act, so a removed file is not a finding."""
    found = [
        (key, mark, old)
        for key, mark in after.marks.items()
        if (old := before.marks.get(key)) != mark
        and (_is_new(before, after, key, mark) if old is None else old[:2] != mark[:2])
    ]
    found += _emptied(before, after)
    named = {key[0] for key, mark, _ in found if RULES[mark.rule].danger != SETTINGS}
    found = [one for one in found if RULES[one[1].rule].danger != SETTINGS or one[0][0] not in named]
    # All gaps, including earlier ones: a gap hides files that were created in it since.
    gaps = (*_moved(before, after), *after.gaps)
    return GuardReport(tuple(_finding(*one) for one in ordered(found)), gaps, entries=after.entries)


def _emptied(before: Snapshot, after: Snapshot) -> list[Found]:
    """Files that are there and of which nothing acts any more: what is gone may have been a protection."""
    return [
        (key, Mark(old.rule, "", GONE, old.changed), old)
        for key, old in before.marks.items()
        if old.rule in PARTIAL and key not in after.marks and after.values.get(key[0], _UNKNOWN)[2] == ""
    ]


def ordered(found: Sequence[Found]) -> list[Found]:
    """The order in which they are shown, so that nothing of little danger can push the rest out of the list.

    Of each class, one finding of each rule comes before the second of any, and the repository at the top first.
    """
    seen: set[str] = set()
    places = []
    for one in sorted(found, key=_place):
        rule = one[1].rule
        places.append(((RULES[rule].danger, rule in seen, *_place(one)), one))
        seen.add(rule)
    return [one for _, one in sorted(places, key=itemgetter(0))]


def _place(one: Found) -> tuple[bool, int, str, int, str]:
    (path, detail), _, _ = one
    rank = 0 if detail in _AT_ONCE else 1 if detail.startswith("core.") else 2
    return not _is_at_the_top(path), path.count("/"), path, rank, detail


def _is_at_the_top(path: str) -> bool:
    """Whether it belongs to the repository at the top; the path of a linked worktree's git directory is absolute."""
    return path in (".git", ".gitmodules") or path.startswith((".git/", "/"))


def _moved(before: Snapshot, after: Snapshot) -> tuple[str, ...]:
    """Gaps for roots that are gone or others. The sandbox has the old directory, wherever that was moved."""
    changed = {path: after.roots.get(path, root) for path, root in before.roots.items()}
    return tuple(
        f"{path} is gone, so what the session left where it was moved is not checked"
        if now == MISSING
        else f"{path} is another directory than at the start, so what the session left in that one is not checked"
        for path, now in changed.items()
        if now != before.roots[path]
    )


def _is_new(before: Snapshot, after: Snapshot, key: Key, mark: Mark) -> bool:
    """Whether a mark that the first scan does not have counts as new.

    A moved or copied file is new: ``mv tests/fixtures/.vscode .`` makes a fixture act.
    """
    if mark.rule in ONLY_CHANGED:
        return False
    if mark.rule in TIMED:
        return mark.changed >= before.began
    if before.gaps and _was_there(before, after, key[0], mark):
        return False
    return RULES[mark.rule].danger not in (EDITOR, AGENT, BUILD, SETTINGS) or not _has_acted_above(before, key, mark)


def _has_acted_above(before: Snapshot, key: Key, mark: Mark) -> bool:
    """Whether a trailing part of the path had the same mark, as in a linked worktree, or when moved into ``src``."""
    path, detail = key
    while path := path.partition("/")[2]:
        old = before.marks.get((path, detail))
        if old is not None and (old.rule, old.value) == (mark.rule, mark.value):
            return True
    return False


def _was_there(before: Snapshot, after: Snapshot, path: str, mark: Mark) -> bool:
    """Whether it existed but an incomplete first scan missed it: no ctime on its path has changed.

    Nothing inside can set a ctime. Moving a directory changes its ctime but not that of its content. A directory that
    the first scan saw at the same path was not moved there; its entries may have changed.
    """
    if not 0 < mark.changed < before.began:
        return False
    above = [(name, after.directories.get(name)) for name in directories_above(path.removeprefix("./"))]
    while above and above[-1][1] is None:  # above a git directory outside the workspace
        above.pop()
    for name, found in above[:-1]:  # the last one is the mount, which cannot be moved from inside
        known = before.directories.get(name)
        if found is None or ((known is None or known[0] != found[0]) and found[1] >= before.began):
            return False
    return bool(above)


def _finding(key: Key, mark: Mark, old: Mark | None) -> Finding:
    rule = RULES[mark.rule]
    return Finding(rule.danger, key[0], mark.shown, "new" if old is None else "changed", rule.acts, rule.why)

"""What two scans differ in: findings, the most dangerous first. Pure."""

from __future__ import annotations

from podbot.guard.catalogue import RULES
from podbot.guard.marks import AGENT, BUILD, EDITOR, Finding, GuardReport, Key, Mark, Snapshot

MOST = 1000
"""Findings that are listed; more are counted."""

TIMED = frozenset({"setuid", "capability", "hard link"})
"""Told by the time of a file's last change, which nobody inside can set: the first scan need not look at each file."""

_LIMITS = ("more than", "it took")  # how a gap begins that hides things whether it was there before or not


def compare(before: Snapshot, after: Snapshot) -> GuardReport:
    """Only what is there afterwards can act: what was removed is no finding."""
    seen = {_moved(key, mark) for key, mark in before.marks.items()}
    found = [
        _finding(key, mark, old)
        for key, mark in after.marks.items()
        if (old := before.marks.get(key)) != mark and _differs(before, seen, key, mark, old)
    ]
    found.sort(key=_order)
    gaps = tuple(gap for gap in after.gaps if gap not in before.gaps or gap.startswith(_LIMITS))
    return GuardReport(tuple(found[:MOST]), gaps, len(found) - len(found[:MOST]), after.entries)


def _differs(before: Snapshot, seen: set[tuple[str, str, str]], key: Key, mark: Mark, old: Mark | None) -> bool:
    if old is not None:
        return (old.rule, old.value) != (mark.rule, mark.value)
    if mark.rule in TIMED:
        return mark.changed >= before.began
    # Where the first scan was not complete, what has not changed since was there, unseen. Nobody inside sets ctime.
    if before.gaps and 0 < mark.changed < before.began:
        return False
    # A build file that was moved or copied with its directory has the words that it had before.
    return RULES[mark.rule].danger not in (EDITOR, AGENT, BUILD) or _moved(key, mark) not in seen


def _moved(key: Key, mark: Mark) -> tuple[str, str, str]:
    return (key[0].rpartition("/")[2], mark.rule, mark.value)


def _finding(key: Key, mark: Mark, old: Mark | None) -> Finding:
    rule = RULES[mark.rule]
    return Finding(rule.danger, key[0], mark.shown, "new" if old is None else "changed", rule.acts, rule.why)


def _order(found: Finding) -> tuple[int, int, str, str]:
    return (found.danger, found.path.count("/"), found.path, found.what)

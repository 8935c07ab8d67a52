"""The values of this room: what a scan recorded, and what two of them differ in. Plain, and cheap to import."""

from __future__ import annotations

from podbot.guard.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

GIT_OR_SHELL, EDITOR, AGENT, BUILD, FILE = 1, 2, 3, 4, 5

ACTS_AT: Mapping[int, str] = {
    GIT_OR_SHELL: "at a mere `git status` or `cd`",
    EDITOR: "when an editor opens the directory",
    AGENT: "when an agent is started there",
    BUILD: "when it is built, tested or installed",
    FILE: "as files that are not what they seem",
}
"""The danger classes, the most dangerous first."""


class Mark(NamedTuple):
    """One recorded thing. ``rule``: a name in the catalogue; ``value``: equal as long as nothing changed.

    ``shown``: a few words of it for people, written by whoever wrote the workspace. ``changed``: the latest of the
    file's ctime and mtime, in nanoseconds; 0 where there is none.
    """

    rule: str
    value: str
    shown: str = ""
    changed: int = 0


Key = tuple[str, str]
"""A path, relative to the workspace or absolute, and what of it: empty for the whole file, or a git key."""

Stamp = tuple[int, int, int, int]
"""inode, size, mtime and ctime: where ``filesystem.is_stamped``, the same stamp means the same content."""


class Snapshot(NamedTuple):
    """What a scan recorded. ``began``: nanoseconds since the epoch; ``gaps``: why something was not looked at.

    ``values``: of the files whose content was read, by path, so that a later scan need not read them again.
    ``directories``: inode and ctime of directories by path; a first scan need keep only those around its gaps.
    """

    began: int
    marks: dict[Key, Mark]
    gaps: tuple[str, ...] = ()
    entries: int = 0
    values: Mapping[str, tuple[Stamp, str]] = {}
    directories: Mapping[str, tuple[int, int]] = {}


class Finding(NamedTuple):
    """One thing that is new, or different. ``danger``: its class, 1 the most dangerous; ``acts``: what acts on it."""

    danger: int
    path: str
    what: str
    change: str  # "new" or "changed"
    acts: str
    why: str


class GuardReport(NamedTuple):
    """What a session left: findings, the most dangerous first, and what could not be looked at."""

    findings: tuple[Finding, ...] = ()
    gaps: tuple[str, ...] = ()
    more: int = 0  # findings that are not listed
    entries: int = 0
    seconds: float = 0.0


def to_plain(snapshot: Snapshot) -> dict[str, Any]:
    """As values of built-in types, which ``marshal`` writes."""
    marks = {key: tuple(mark) for key, mark in snapshot.marks.items()}
    return {**snapshot._asdict(), "marks": marks, "values": dict(snapshot.values)}


def from_plain(data: Mapping[str, Any]) -> Snapshot:
    """What :func:`to_plain` made. Raises AttributeError, TypeError, ValueError for anything else."""
    return Snapshot(**{**data, "marks": {key: Mark(*mark) for key, mark in data["marks"].items()}})


def directories_above(path: str) -> Iterator[str]:
    """The directories that ``path`` lies in, the nearest first; an empty one is the workspace."""
    relative = not path.startswith("/")
    while path:
        path = path.rpartition("/")[0]
        if path or relative:  # the empty one is the workspace
            yield path

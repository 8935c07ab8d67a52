"""The data types of this room: the record of a scan, and the result of a comparison. Cheap to import."""

from __future__ import annotations

from podbot.guard.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

GIT_OR_SHELL, EDITOR, AGENT, BUILD, FILE, SETTINGS = 1, 2, 3, 4, 5, 6

ACTS_AT: Mapping[int, str] = {
    GIT_OR_SHELL: "as soon as you run `git status` or `cd`",
    EDITOR: "when an editor opens the directory",
    AGENT: "when an agent starts there",
    BUILD: "when it is built, tested or installed",
    FILE: "as files that are not what they seem",
    SETTINGS: "perhaps, if a tool takes it for its settings",
}
"""The danger classes, the most dangerous first."""


class Mark(NamedTuple):
    """One recorded item. ``rule``: a name in the catalogue; ``value``: equal as long as nothing changed.

    ``shown``: a short excerpt for people, whose text the workspace's author controls. ``changed``: the later of the
    file's ctime and mtime, in nanoseconds; 0 if it has none.
    """

    rule: str
    value: str
    shown: str = ""
    changed: int = 0


Key = tuple[str, str]
"""A path, relative to the workspace or absolute, and a part of it: empty for the whole file, or a git key."""

Stamp = tuple[int, int, int, int]
"""inode, size, mtime and ctime: if ``filesystem.is_stamped``, the same stamp means the same content."""

Known = tuple[Stamp, str, str]
"""What a scan knows of a file that it read: a digest of all its content, and the value of the part that acts."""


MISSING = (0, 0)
"""Instead of the device and inode of a directory that does not exist."""


class Snapshot(NamedTuple):
    """The record of a scan. ``began``: nanoseconds since the epoch; ``gaps``: why parts were not scanned.

    ``values``: by path, of the files whose content was read, so that a later scan need not read them again.
    ``directories``: inode and ctime of directories by path; a first scan keeps only those around its gaps.
    ``roots``: device and inode of the directories at which the scan began, by path; ``MISSING`` for one that was not
    there. One that the scan did not reach, because of a limit, is not in it.
    """

    began: int
    marks: dict[Key, Mark]
    gaps: tuple[str, ...] = ()
    entries: int = 0
    values: Mapping[str, Known] = {}
    directories: Mapping[str, tuple[int, int]] = {}
    roots: Mapping[str, tuple[int, int]] = {}


class Finding(NamedTuple):
    """A new or changed file. ``danger``: its class, 1 is the most dangerous; ``acts``: which program acts on it."""

    danger: int
    path: str
    what: str
    change: str  # "new" or "changed"
    acts: str
    why: str


class GuardReport(NamedTuple):
    """The result of a session's comparison: findings, the most dangerous first, and what could not be scanned."""

    findings: tuple[Finding, ...] = ()
    gaps: tuple[str, ...] = ()
    more: int = 0  # findings that are counted, but not named
    entries: int = 0
    seconds: float = 0.0


FORMAT = 2
"""Of a written snapshot. An older podbot's cannot be compared."""


def to_plain(snapshot: Snapshot) -> dict[str, Any]:
    """The snapshot as built-in types, which ``marshal`` can write."""
    marks = {key: tuple(mark) for key, mark in snapshot.marks.items()}
    return {**snapshot._asdict(), "marks": marks, "values": dict(snapshot.values), "format": FORMAT}


def from_plain(data: Mapping[str, Any]) -> Snapshot:
    """The inverse of :func:`to_plain`. Raises AttributeError, TypeError, ValueError for anything else."""
    if data.get("format") != FORMAT:
        raise ValueError("it was written by another version of podbot")
    fields = {key: value for key, value in data.items() if key != "format"}
    return Snapshot(**{**fields, "marks": {key: Mark(*mark) for key, mark in data["marks"].items()}})


def directories_above(path: str) -> Iterator[str]:
    """The parent directories of ``path``, the nearest first; the empty one is the workspace."""
    relative = not path.startswith("/")
    while path:
        path = path.rpartition("/")[0]
        if path or relative:
            yield path

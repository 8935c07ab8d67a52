"""Files that the settings of Mercurial, Sapling and jj lead to: what they include, and another repository's.

The settings themselves are in the catalogue. What is outside the workspace is not followed, because nothing inside
writes there.
"""

from __future__ import annotations

import os

from podbot.guard import files, gitdirs, locations
from podbot.guard.content import MOST
from podbot.guard.marks import Mark
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podbot.guard.walk import Scan

_RULE = "hg"
_DIRECTORIES = frozenset((".hg", ".sl", ".jj"))
_SETTINGS = ("hgrc", "hgrc-not-shared", "config", "requires", "config.toml")
_POINTERS = frozenset(("sharedpath", "repo"))
_FILES = 64  # that one file leads to
_INCLUDE = b"%include"


def follow(scan: Scan, directory: int, path: str) -> None:
    """Record what the file at ``path``, in the open ``directory``, leads to. The file itself has a mark already."""
    where, _, name = path.rpartition("/")
    base = gitdirs.absolute(scan, where)
    leads = files.link(directory, name)
    if leads is None:
        found = files.read(directory, name, MOST)
    else:
        place = gitdirs.behind(scan, leads, base)
        found = None if place is None else locations.read(place, MOST)
    if found is None:
        return
    if name in _POINTERS:
        text = os.fsdecode(found.data).rstrip("\r\n")
        # Mercurial takes a relative path from its own directory or, without `relshared`, from where it is started.
        pending = [gitdirs.joined(at, f"{text}/{one}") for at in (base, os.path.dirname(base)) for one in _SETTINGS]
    else:
        pending = list(_included(scan, found, base, path))
    seen: set[str] = set()
    while pending:
        scan.check(0)
        wanted = pending.pop()
        place = gitdirs.behind(scan, wanted, "/")
        if place is None or place.name in seen:
            continue
        if len(seen) >= _FILES:
            scan.once(f"more than {_FILES} files that settings of Mercurial lead to")
            return
        seen.add(place.name)
        found = locations.read(place, MOST)
        if found is not None and scan.has_room(_RULE, len(found.data)):
            scan.mark(place.name, "", Mark(_RULE, gitdirs.content(found), "", files.changed(found.found)))
            pending += _included(scan, found, os.path.dirname(wanted), place.name)


def _included(scan: Scan, found: files.Read, base: str, path: str) -> Iterator[str]:
    """The absolute paths that a file of settings includes, relative to the directory that it is named in."""
    if not found.whole:
        scan.gap(f"{path} is too long for a search of what it includes")
    for line in found.data.splitlines():
        if line.startswith(_INCLUDE) and line[len(_INCLUDE) : len(_INCLUDE) + 1].isspace():
            text = os.path.expandvars(os.fsdecode(line[len(_INCLUDE) :].strip()))
            try:
                yield gitdirs.joined(base, locations.absolute(text, "")) if text else base
            except OSError:
                scan.gap(f"what {path} includes cannot be followed")


def is_led_elsewhere(where: str) -> bool:
    """Whether a link at that path is one in a repository, which they write through, and not one of their own."""
    *above, name = where.split("/")
    own = name in ("lock", "wlock") or name.startswith("checklink")
    return not own and not _DIRECTORIES.isdisjoint(above)

"""Files of a git directory, other than configuration and hooks, that have git run or read something else."""

from __future__ import annotations

import os

from podbot.guard import files, gitdirs, locations
from podbot.guard.content import MOST
from podbot.guard.marks import Mark
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from podbot.guard.walk import Scan

_FILES = {
    # Like .gitattributes it selects filters, diff and merge drivers, and it overrides them; but no diff shows it.
    "info/attributes": "git.attributes",
    # `git instaweb` runs the first one as Perl, and starts a server with the second one, if they exist.
    "gitweb/gitweb_config.perl": "git.instaweb",
    "gitweb/httpd.conf": "git.instaweb",
    "lazygit.yml": "git.script",  # lazygit reads its settings there, too
}
"""They count whatever they contain. ``info/sparse-checkout`` and ``shallow`` run, hide and lead nowhere."""
_OLD_REMOTES = ("remotes", "branches")
"""Directories of files that say where a remote is, if the configuration does not: git still reads them."""
_MOST_REMOTES = 512
_ALTERNATES = "objects/info/alternates"
_LONGEST = 4096  # bytes of a list of other object directories; a longer one is a finding
_SHOWN = 80  # characters that are shown


def look(scan: Scan, directory: int, path: str) -> None:
    """Record those of one git directory. ``path``: how it is reported."""
    for name, rule in _FILES.items():
        found = files.read_beneath(directory, name, MOST)
        if found is not None:
            value = gitdirs.content(found)
            scan.mark(f"{path}/{name}", "", Mark(rule, value, "", files.changed(found.found)))
    found = files.read_beneath(directory, _ALTERNATES, _LONGEST)
    if found is not None:
        _alternates(scan, found, path)
    for name in _OLD_REMOTES:
        _old_remotes(scan, directory, name, f"{path}/{name}")
    if os.path.basename(os.path.dirname(path)) == "worktrees":
        _checkout(scan, directory, path)


def _old_remotes(scan: Scan, directory: int, name: str, path: str) -> None:
    try:
        handle = files.open_directory(name, directory)
    except OSError:
        return  # a link has a mark of its own
    try:
        for one in gitdirs.some_files(scan, handle, _MOST_REMOTES, f"{name} of a git directory"):
            found = files.read(handle, one, MOST)
            if found is not None:
                shown = os.fsdecode(found.data[:_SHOWN].strip())
                mark = Mark("git.push", gitdirs.content(found), shown, files.changed(found.found))
                scan.mark(f"{path}/{one}", "", mark)
    except OSError:
        scan.gap(f"{path} cannot be read")
    finally:
        os.close(handle)


def _checkout(scan: Scan, directory: int, path: str) -> None:
    """Record where a linked worktree is, if that changes or is outside the roots: `git worktree remove` removes it."""
    found = files.read(directory, "gitdir", _LONGEST)
    if found is None:
        return
    text = os.fsdecode(found.data).rstrip("\r\n")
    git = gitdirs.absolute(scan, path)
    where = os.path.dirname(gitdirs.joined(git, text))
    inside = gitdirs.behind(scan, ".", where) is not None or gitdirs.is_missing(scan, where)
    rule = "git.record" if inside else "git.worktree"
    scan.mark(f"{path}/gitdir", "", Mark(rule, text, f"it leads to {text[:_SHOWN]}", files.changed(found.found)))


def _alternates(scan: Scan, found: files.Read, path: str) -> None:
    """Record other directories of objects, unless all of them are in the roots and lead no further.

    `git clone --shared` makes such a list; it is a new repository then, and a finding if that is nested.
    """
    objects = gitdirs.absolute(scan, f"{path}/objects")
    lines = [os.fsdecode(line) for line in found.data.split(b"\n") if line and not line.startswith(b"#")]
    out = next((line for line in lines if not _keeps_objects(scan, line, objects)), None)
    if out is not None or not found.whole:
        shown = "it is too long" if out is None else f"it leads to {out[:_SHOWN]}"
        mark = Mark("git.alternates", gitdirs.content(found), shown, files.changed(found.found))
        scan.mark(f"{path}/{_ALTERNATES}", "", mark)


def _keeps_objects(scan: Scan, text: str, base: str) -> bool:
    """Whether it is a directory in the roots that has no such list itself, nor a link in the place of one."""
    scan.check(0)
    place = None if text.startswith('"') else gitdirs.behind(scan, text, base)  # git unquotes
    if place is None:
        return False
    try:
        handle = locations.open_directory(place._replace(path=f"{place.path}/info"))
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        return files.look(handle, "alternates") is None
    finally:
        os.close(handle)


def is_own_link(name: str, leads: str) -> bool:
    """Whether a link in a git directory is git's own: a HEAD that names a branch (``core.preferSymlinkRefs``)."""
    return name == "HEAD" and leads.startswith("refs/") and not {"", ".", ".."} & set(leads.split("/"))

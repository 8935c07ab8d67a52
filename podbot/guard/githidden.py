"""What a git directory hides from `git status`, `git diff` and `git log`, other than by its configuration.

That is: entries of the index that git does not compare with their files, objects that stand for others, and patterns
of files that are not shown. Each is one finding, however many files it hides.
"""

from __future__ import annotations

import os
import stat

from podbot.guard import files, gitdirs, locations
from podbot.guard.content import MOST, digest
from podbot.guard.gitconfig import parse as parse_config
from podbot.guard.gitindex import Index, Unreadable, parse
from podbot.guard.marks import Mark
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podbot.guard.walk import Scan

_RULE = "git.hides"
_LONGEST = 64 << 20  # bytes of an index, or of a list of references: about 600,000 of them
_REPLACED = 512  # files in `refs/replace`
_SHOWN = 80  # characters that are shown
_NAMED = 3  # names that are shown
_CACHES = {
    b"UNTR": ("untracked", "it says which files are not tracked, and git does not look for others"),
    b"FSMN": (
        "monitor",
        "it says which files have not changed, and a monitor of files may be asked only for later ones",
    ),
}
"""Parts of an index that say what git need not look at. What they say cannot be checked, so a new one is a finding."""


def look(scan: Scan, directory: int, path: str, plain: Mapping[str, str | None], top: str) -> None:
    """Record what one git directory hides. ``path``: how it is reported.

    ``plain``: the settings in its configuration; ``top``: the absolute path of its working tree.
    """
    if files.look(directory, "commondir") is not None:
        place = gitdirs.behind(scan, "../../config", gitdirs.absolute(scan, path))
        common = None if place is None else locations.read(place, MOST)
        plain = {**(dict(parse_config(common.data).entries) if common else {}), **plain}
        checkout = files.read(directory, "gitdir", 4096)
        git = gitdirs.absolute(scan, path)
        top = os.path.dirname(gitdirs.joined(git, os.fsdecode(checkout.data).rstrip("\r\n"))) if checkout else ""
    _index(scan, directory, path, plain, top)
    _replaced(scan, directory, path)
    _patterns(scan, directory, path)


# --- the index ----------------------------------------------------------------------------------------


def _index(scan: Scan, directory: int, path: str, plain: Mapping[str, str | None], top: str) -> None:
    found = _read(scan, directory, "index", path)
    if found is None:
        return
    when, where = files.changed(found.found), f"{path}/index"
    width = 32 if plain.get("extensions.objectformat") == "sha256" else 20
    try:
        index = _parsed(scan, found, width)
        if index.shared:
            index = _with_shared(scan, directory, path, index, width)
    except Unreadable:
        shown = "podbot cannot read it, so it may hide changes"
        scan.mark(where, "content", Mark(_RULE, gitdirs.content(found), shown, when))
        return
    skipped = index.skipped
    if skipped and _is_sparse(plain):
        # In a linked worktree's session the common directory is scanned too, whose checkout is elsewhere.
        skipped = _present(scan, top, skipped) if gitdirs.is_checkout(scan, top, path) else []
    for names, kind in ((index.assumed, "assume-unchanged"), (skipped, "skip-worktree")):
        if names:
            shown = f"hides changes of {_listed(names)} from git status and git diff ({kind})"
            scan.mark(where, kind, Mark(_RULE, digest(b"\0".join(names)), shown, when))
    for name, (detail, shown) in _CACHES.items():
        if name in index.extensions:
            scan.mark(where, detail, Mark(_RULE, detail, shown, when))


def _parsed(scan: Scan, found: files.Read, width: int) -> Index:
    """Raises Unreadable, and Over."""
    if not found.whole:
        raise Unreadable
    scan.parsing = True
    try:
        return parse(found.data, width)
    finally:
        scan.parsing = False


def _with_shared(scan: Scan, directory: int, path: str, index: Index, width: int) -> Index:
    """Add the flags in the index that this one is the difference to, also those of entries that it replaces."""
    found = _read(scan, directory, f"sharedindex.{index.shared}", path)
    if found is None:
        raise Unreadable
    other = _parsed(scan, found, width)
    if other.shared:
        raise Unreadable
    assumed, skipped = (sorted({*one, *two}) for one, two in zip(index[:2], other[:2], strict=True))
    return Index(assumed, skipped, "", index.extensions | other.extensions)


def _is_sparse(plain: Mapping[str, str | None]) -> bool:
    """Whether only a part is checked out. Then git itself skips the rest, which is not there."""
    value = plain.get("core.sparsecheckout", "")
    return value is None or value.lower() not in ("false", "no", "off", "0", "")


def _present(scan: Scan, top: str, names: Sequence[bytes]) -> list[bytes]:
    """Those that are in the working tree all the same: git before 2.36 does not look at them."""
    try:
        place = gitdirs.behind(scan, ".", top) if top else None
        root = None if place is None else locations.open_directory(place)
    except OSError:
        root = None
    if root is None:
        return []
    found = []
    open_for, handle = "", os.dup(root)
    try:
        for number, name in enumerate(names):
            if not number & 255:
                scan.check(0)
            where, _, last = os.fsdecode(name).rstrip("/").rpartition("/")
            if where != open_for:
                open_for = where
                if handle >= 0:
                    os.close(handle)
                handle = _opened(root, where)
            if handle >= 0 and files.look(handle, last) is not None:
                found.append(name)
    finally:
        for one in (root, handle):
            if one >= 0:
                os.close(one)
    return found


def _opened(root: int, where: str) -> int:
    try:
        return files.open_beneath(root, where)
    except (OSError, ValueError):
        return -1


def _listed(names: Sequence[bytes]) -> str:
    shown = ", ".join(os.fsdecode(name) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)} file{'' if len(names) == 1 else 's'}: {_cut(shown)}{more}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# --- objects and patterns -----------------------------------------------------------------------------


def _replaced(scan: Scan, directory: int, path: str) -> None:
    """Record objects that git reads in place of others, which are named by references, and other parents of commits."""
    lines: list[bytes] = []
    try:
        handle = files.open_beneath(directory, "refs/replace")
    except OSError:
        handle = -1  # a link has a mark of its own
    if handle >= 0:
        try:
            lines += _loose(scan, handle, path)
        finally:
            os.close(handle)
    packed = _read(scan, directory, "packed-refs", path)
    if packed is not None:
        lines += _packed(scan, packed.data)
        if not packed.whole:
            shown = "it is too long, so it may replace objects"
            scan.mark(f"{path}/packed-refs", "", Mark(_RULE, gitdirs.content(packed), shown))
    if lines:
        shown = f"git reads other objects in place of {len(lines)}"
        scan.mark(f"{path}/refs/replace", "", Mark(_RULE, digest(b"\n".join(sorted(lines))), shown))


def _loose(scan: Scan, handle: int, path: str) -> list[bytes]:
    lines = []
    try:
        for name in gitdirs.some_files(scan, handle, _REPLACED, "refs/replace"):
            found = files.read(handle, name, 256)
            lines.append(os.fsencode(name) + b" " + (found.data.strip() if found else b""))
    except OSError:
        scan.gap(f"{path}/refs/replace cannot be read")
    return lines


def _packed(scan: Scan, data: bytes) -> list[bytes]:
    """The lines of references that replace objects; git accepts any white space in front of a name."""
    lines: list[bytes] = []
    at = data.find(b"refs/replace/")
    while at >= 0:
        scan.check(0)
        if len(lines) >= _REPLACED:
            scan.once(f"more than {_REPLACED} replaced objects in packed-refs")
            break
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        begin = data.rfind(b"\n", 0, at) + 1
        if data[at - 1 : at].isspace():
            name = data[at + len(b"refs/replace/") : end]
            lines.append(name[:256] + b" " + data[begin : min(at - 1, begin + 256)])
        at = data.find(b"refs/replace/", end)
    return lines


def _patterns(scan: Scan, directory: int, path: str) -> None:
    for name, said in (("exclude", "hides new files from git status"), ("grafts", "gives commits other parents")):
        found = files.read_beneath(directory, f"info/{name}", MOST)
        if found is None:
            continue
        lines = [line for line in found.data.split(b"\n") if line.strip() and not line.startswith(b"#")]
        if lines or not found.whole:
            value = digest(b"\n".join(lines)) if found.whole else gitdirs.content(found)
            shown = b", ".join(line.strip()[:_SHOWN] for line in lines[:_NAMED])
            mark = Mark(_RULE, value, f"{said}: {_cut(os.fsdecode(shown))}", files.changed(found.found))
            scan.mark(f"{path}/info/{name}", "", mark)


def _read(scan: Scan, directory: int, name: str, path: str) -> files.Read | None:
    """A file that may be long, also behind a link in the workspace."""
    there = files.look(directory, name)
    if there is None:
        return None
    if stat.S_ISLNK(there.st_mode):  # the link has a mark of its own
        place = gitdirs.behind(scan, files.link(directory, name) or "", gitdirs.absolute(scan, path))
        return None if place is None else locations.read(place, MOST)
    size = min(there.st_size, _LONGEST)
    if not stat.S_ISREG(there.st_mode):
        return None
    scan.git_room -= size
    if scan.git_room < 0:
        scan.once("more of git's indexes and references than are read")
        return None
    found = files.read(directory, name, size)
    if found is None:
        scan.gap(f"{path}/{name} cannot be read")
    return found

"""Reads a git directory without git: its dangerous keys, its hooks, and files that lead git elsewhere.

git itself is never run in a tree that an agent can write, because it would obey what is searched for here.
"""

from __future__ import annotations

import os
import stat

from podbot.guard import files, locations
from podbot.guard.content import MOST, digest
from podbot.guard.gitconfig import parse
from podbot.guard.gitkeys import addresses, notable, programs, rule_of
from podbot.guard.marks import Mark
from podbot.guard.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from podbot.guard.walk import Scan

_CONFIG = 256 << 10  # bytes, which take half a second; a longer configuration is compared by digest and size
_HOOKS = 512  # files in a directory of hooks
_SCRIPTS = 256  # files that configurations name, in one scan
_SHOWN = 80  # characters of a value that are shown
_UNREADABLE = "directories of hooks that cannot be read"
_NOT_FOLLOWED = "paths that cannot be followed"
_PREFIX = b"gitdir: "
_DEEPEST = 128  # components of a path that is searched for the part of it that exists


class Keys(NamedTuple):
    """Of one configuration, or of both of a git directory: the ``acting`` keys, and the last value of each other."""

    acting: dict[str, list[str]]
    plain: dict[str, str | None]


class GitDirectory:
    """One git directory, open as ``handle`` and reported as ``path``.

    ``top``: the path of the working tree; None for a bare repository and for a submodule's directory.
    """

    def __init__(self, scan: Scan, handle: int, path: str, top: str | None) -> None:
        self._scan, self._handle, self._path, self._top = scan, handle, path, top

    def look(self) -> tuple[dict[str, str | None], str]:
        """Record its contents; returns its plain settings, and where its working tree is, which may be nowhere."""
        first = config(self._scan, self._handle, "config", f"{self._path}/config")
        more = config(self._scan, self._handle, "config.worktree", f"{self._path}/config.worktree")
        keys = {**first.acting, **more.acting}
        hooks(self._scan, self._handle, f"{self._path}/hooks")
        tree = keys.pop("core.worktree", None)
        git = absolute(self._scan, self._path)
        top = git if self._top is None else os.path.join(self._scan.root, self._top)
        if tree is not None:  # in a submodule it leads to the checkout
            top = joined(git, tree[-1])
        for key, values in keys.items():
            if key == "core.hookspath":
                self._hooks_path(values[-1], top)
            elif key.startswith(("include.", "includeif.")):
                self._files(values, "git.included", git)
            elif key == "core.excludesfile":
                self._files(values, "git.hides", top)
            elif rule_of(key) == "git.key" and not key.startswith(("url.", "http.")):
                self._files(programs(values), "git.script", top)
        return {**first.plain, **more.plain}, top

    def _hooks_path(self, value: str, base: str) -> None:
        place = _place(self._scan, value, base)
        if place is None:
            return
        try:
            handle = locations.open_directory(place)
        except OSError:
            self._scan.gap(_UNREADABLE)
            return
        if place.path != os.path.normpath(value):  # it contains a link whose target may be changed
            shown = f"hooks of {place.name[:_SHOWN]}"
            self._scan.mark(f"{self._path}/config", "hooks", Mark("git.hook", place.name, shown))
        _each_hook(self._scan, handle, place.name or ".")

    def _files(self, paths: Iterable[str], rule: str, base: str) -> None:
        scan = self._scan
        for path in dict.fromkeys(paths):
            scan.check(0)
            place = _place(scan, path, base)
            if place is None or place.name in scan.scripts:
                continue
            if len(scan.scripts) >= _SCRIPTS:
                scan.once(f"more than {_SCRIPTS} files that git's configuration names")
                return
            found = locations.read(place, MOST)
            if found is not None:
                scan.scripts.add(place.name)
                scan.mark(place.name, "git", Mark(rule, content(found), "", files.changed(found.found)))


def absolute(scan: Scan, path: str) -> str:
    """The absolute path for ``path``, as used in a scan's marks."""
    return os.path.join(scan.known_roots[0], path)


def _place(scan: Scan, text: str, base: str) -> locations.Location | None:
    """Where a path in git's configuration leads from the directory ``base``; None if that is outside the roots."""
    try:
        path = locations.absolute(text, base)
    except OSError:
        scan.gap(_NOT_FOLLOWED)
        return None
    return behind(scan, path, base)


def behind(scan: Scan, leads: str, base: str) -> locations.Location | None:
    """Where a link in the directory ``base`` leads; ``~`` is not expanded. None if that is outside the roots."""
    try:
        return locations.resolve(scan.known_roots, os.path.join(base, leads))
    except (OSError, ValueError):
        scan.gap(_NOT_FOLLOWED)
        return None


def config(scan: Scan, directory: int, name: str, path: str, *, strict: bool = True) -> Keys:
    """Record the keys of one file that act, and return all.

    ``strict``: git reads all of it as the repository's, so ``core.worktree`` and keys that podbot does not know count.
    """
    leads = files.link(directory, name)
    if leads is None:
        found = files.read(directory, name, _CONFIG)
    else:
        scan.mark(path, "", Mark("git.config", f"link:{leads}", f"a link to {leads[:_SHOWN]}"))
        place = behind(scan, leads, absolute(scan, os.path.dirname(path)))
        found = None if place is None else locations.read(place, _CONFIG)
    if found is None:
        there = files.look(directory, name)
        if there is not None and stat.S_ISREG(there.st_mode):
            scan.gap(f"{path} cannot be read")
        return Keys({}, {})
    when = files.changed(found.found)
    parsed = parse(found.data)
    if not parsed.whole or not found.whole:
        scan.mark(path, "content", Mark("git.config", content(found), "it is malformed or too long", when))
    keys, unknown = notable(parsed.entries)
    for key, values in keys.items():
        rule = rule_of(key)
        if rule == "git.worktree" and (not strict or is_checkout(scan, values[-1], os.path.dirname(path))):
            continue
        scan.mark(path, key, Mark(rule, "\n".join(values), f"{key} = {values[-1][:_SHOWN]}", when))
    for key, values in unknown.items() if strict else ():
        scan.mark(path, key, Mark("git.unknown", "\n".join(values), f"{key} = {values[-1][:_SHOWN]}", when))
    for key, values in addresses(parsed.entries).items() if strict else ():
        # In a worktree's own file, which git reads second, a new one replaces or adds to what was there.
        rule = "git.address" if name == "config" else "git.push"
        if key not in keys:
            scan.mark(path, key, Mark(rule, "\n".join(values), f"{key} = {values[-1][:_SHOWN]}", when))
    return Keys(keys, dict(parsed.entries))


def is_checkout(scan: Scan, worktree: str, path: str) -> bool:
    """Whether ``core.worktree`` of the git directory at ``path`` is where its own checkout is, or was.

    The ``.git`` there has to lead back, as that of a submodule does. A place in a git directory is none, whatever leads
    back from there: `git checkout` would write hooks.
    """
    git = absolute(scan, path)
    leads = joined(git, worktree)
    place = behind(scan, leads, git)
    if place is None:
        return "/modules/" in git and is_missing(scan, leads)
    if _is_in_git(scan, place):
        return False
    top = f"{place.root}/{place.path}".rstrip("/")
    found = locations.read(place._replace(path=f"{place.path}/.git"), 4096)
    if found is None:
        leads = ".git"  # a directory, or a link to one
    elif found.data.startswith(_PREFIX):
        leads = _leads(found.data)
    else:
        return False
    back = behind(scan, joined(top, leads), top)
    if back is None:  # of a submodule that was removed, the directory may stay, empty
        return "/modules/" in git and found is None and _is_empty(place)
    own = behind(scan, ".", git)
    return own is not None and back[:2] == own[:2]


def joined(base: str, text: str) -> str:
    """Join two paths. ``base`` has no links, so ``..`` at the beginning may leave the roots on the way to another."""
    parts = [] if text.startswith("/") else text.split("/")
    count = next((number for number, part in enumerate(parts) if part not in ("..", ".", "")), len(parts))
    for _ in range(parts[:count].count("..")):
        base = os.path.dirname(base)
    return os.path.join(base, *parts[count:]) if parts else text


def _leads(data: bytes) -> str:
    """Where a ``.git`` file leads."""
    return os.fsdecode(data.removeprefix(_PREFIX).rstrip(b"\r\n"))


def some_files(scan: Scan, handle: int, most: int, what: str) -> Iterator[str]:
    """At most ``most`` names of an open directory, which is called ``what``. Raises OSError, and Over."""
    with os.scandir(handle) as entries:
        for number, entry in enumerate(entries):
            scan.check(number)
            if number >= most:
                scan.once(f"more than {most} files in {what}")
                return
            yield entry.name


def is_missing(scan: Scan, path: str) -> bool:
    """Whether there is nothing at ``path`` inside the roots; false if a link on the way leads out of them.

    `git rm` of a submodule leaves such a ``core.worktree``; git does nothing where there is no directory.
    """
    place = None
    while place is None:
        scan.check(0)
        path, _, name = path.rstrip("/").rpartition("/")
        if not 0 < path.count("/") < _DEEPEST or name.lower() == ".git":
            return False
        place = behind(scan, ".", path)
    if _is_in_git(scan, place):
        return False
    try:
        handle = locations.open_directory(place)
    except OSError:
        return False
    try:
        return files.look(handle, name) is None
    finally:
        os.close(handle)


def _is_in_git(scan: Scan, place: locations.Location) -> bool:
    return place.root != scan.known_roots[0] or ".git" in place.path.lower().split("/")


def _is_empty(place: locations.Location) -> bool:
    try:
        handle = locations.open_directory(place)
    except OSError:
        return False
    try:
        with os.scandir(handle) as entries:
            return next(entries, None) is None
    finally:
        os.close(handle)


def hooks(scan: Scan, directory: int, path: str) -> None:
    """Record the directory of hooks in a git directory, following a link to it inside the roots."""
    leads = files.link(directory, "hooks")
    try:
        if leads is None:
            handle = files.open_directory("hooks", directory)
        else:
            scan.mark(path, "", Mark("git.hook", f"link:{leads}", f"a link to {leads[:_SHOWN]}"))
            place = behind(scan, leads, absolute(scan, os.path.dirname(path)))
            if place is None:
                return
            handle, path = locations.open_directory(place), place.name
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError:
        scan.gap(f"{path} cannot be read")
        return
    _each_hook(scan, handle, path)


def _each_hook(scan: Scan, handle: int, path: str) -> None:
    """Record each file of a directory of hooks, including scripts beside them; git ignores ``*.sample``."""
    count = 0
    try:
        with os.scandir(handle) as entries:
            for number, entry in enumerate(entries):
                if not number & 1023:
                    scan.check(number)
                if entry.name.endswith(".sample"):
                    continue
                count += 1
                if count > _HOOKS:
                    scan.once(f"more than {_HOOKS} files in a directory of hooks")
                    break
                _hook(scan, handle, entry.name, f"{path}/{entry.name}")
    except OSError:
        scan.gap(f"{path} cannot be read")
    finally:
        os.close(handle)


def _hook(scan: Scan, directory: int, name: str, path: str) -> None:
    leads = files.link(directory, name)
    if leads is not None:
        scan.mark(
            path, "", Mark("git.hook", f"link:{leads}{_behind(scan, path, leads)}", f"a link to {leads[:_SHOWN]}")
        )
        return
    found = files.read(directory, name, MOST)
    if found is not None:
        value = f"{content(found)} {found.found.st_mode & stat.S_IXUSR}"
        scan.mark(path, "", Mark("git.hook", value, "", files.changed(found.found)))
        return
    there = files.look(directory, name)
    if there is not None and stat.S_ISREG(there.st_mode):  # an unreadable hook may still be run
        scan.gap("files that cannot be read")
        scan.mark(path, "", Mark("git.hook", str(files.stamp_of(there)), "", files.changed(there)))


def _behind(scan: Scan, path: str, leads: str) -> str:
    """The digest of a link's target inside the workspace, where hooks are often kept."""
    place = behind(scan, leads, absolute(scan, os.path.dirname(path)))
    found = None if place is None else locations.read(place, MOST)
    return "" if found is None else f" {content(found)}"


def git_file(scan: Scan, directory: int, path: str, top: str) -> None:
    """Record a ``.git`` file or link, unless it leads to a worktree's or submodule's own git directory."""
    leads = files.link(directory, ".git")
    text, when = leads, 0
    if leads is None:
        found = files.read(directory, ".git", 4096)
        if found is None or not found.data.startswith(_PREFIX):
            return
        text = _leads(found.data)
        when = files.changed(found.found)
        if not found.whole:
            scan.mark(path, "", Mark("git.file", content(found), "it is too long", when))
            return
    assert text is not None  # noqa: S101 - one of both
    place = os.path.normpath(os.path.join(scan.root, top, text))
    if leads is not None or not top or not _is_own(scan, place):
        scan.mark(path, "", Mark("git.file", text, f"it leads to {text[:_SHOWN]}", when))


def _is_own(scan: Scan, place: str) -> bool:
    """Whether a git directory is one that git keeps for a worktree or submodule of a scanned repository."""
    workspace, *linked = scan.known_roots
    if place.startswith(f"{workspace}/") and ("/.git/worktrees/" in place or "/.git/modules/" in place):
        return True
    return any(place.startswith((f"{git}/worktrees/", f"{git}/modules/")) for git in linked)


def common_directory(scan: Scan, directory: int, path: str) -> None:
    """Record a git directory's file ``commondir``, unless it belongs to a linked worktree of a scanned repository."""
    if files.look(directory, "HEAD") is None:
        return
    found = files.read(directory, "commondir", 4096)
    text = files.link(directory, "commondir") if found is None else os.fsdecode(found.data.rstrip(b"\r\n"))
    if text is None:
        return
    workspace, *linked = scan.known_roots
    records = os.path.dirname(os.path.dirname(os.path.join(workspace, path)))
    common = os.path.dirname(records)
    own = common in linked or common.endswith("/.git") or "/.git/modules/" in common
    # A directory without a HEAD would not be scanned as a git directory.
    own = own and files.look(directory, "../../HEAD") is not None
    if text == "../.." and records.endswith("/worktrees") and own:
        return
    scan.mark(
        path,
        "",
        Mark("git.commondir", text, f"it leads to {text[:_SHOWN]}", files.changed(found.found) if found else 0),
    )


def modules(scan: Scan, directory: int, path: str) -> None:
    """Record ``.gitmodules``, which git reads as configuration of submodules."""
    config(scan, directory, ".gitmodules", path, strict=False)


def content(found: files.Read) -> str:
    """A file's digest; for a long file, of its beginning, with its size and time of change."""
    if found.whole:
        return digest(found.data)
    return f"{digest(found.data)} {found.found.st_size} {files.changed(found.found)}"

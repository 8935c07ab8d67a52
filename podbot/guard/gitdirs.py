"""Reading a git directory without git: its dangerous keys, its hooks, and what leads git elsewhere.

git itself is never run in a tree that an agent can write: it would obey what is looked for here.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from typing import TYPE_CHECKING

from podbot.guard import files
from podbot.guard.content import MOST, digest
from podbot.guard.gitconfig import parse
from podbot.guard.gitkeys import dangerous, programs
from podbot.guard.marks import Mark

if TYPE_CHECKING:
    from podbot.guard.walk import Scan

_CONFIG = 1 << 20  # bytes; a longer configuration counts by its digest and size
_HOOKS = 512  # files of a directory of hooks
_SCRIPTS = 256  # that configurations name, in one scan
_SHOWN = 80  # characters of a value
_PREFIX = b"gitdir: "


class GitDirectory:
    """One git directory: ``handle`` is open, ``path`` is how it is called.

    ``top``: the working tree, open, and its path; None for a bare repository and for a submodule's directory.
    """

    def __init__(self, scan: Scan, handle: int, path: str, top: tuple[int, str] | None) -> None:
        self._scan, self._handle, self._path, self._top = scan, handle, path, top

    def look(self) -> None:
        """Record what is there."""
        keys = config(self._scan, self._handle, "config", f"{self._path}/config", worktree=self._top is not None)
        more = config(self._scan, self._handle, "config.worktree", f"{self._path}/config.worktree")
        keys = {**keys, **more}
        hooks(self._scan, self._handle, "hooks", f"{self._path}/hooks")
        for key, values in keys.items():
            if key == "core.hookspath":
                self._hooks_path(values[-1])
            elif key.startswith(("include.", "includeif.")):
                self._files(values, "git.included", from_git=True)
            elif not key.startswith(("url.", "http.")):
                self._files(programs(values), "git.script", from_git=False)

    def _hooks_path(self, value: str) -> None:
        place = self._place(value, from_git=False)
        if place is not None:
            handle, path, relative = place
            hooks(self._scan, handle, relative, path)

    def _files(self, paths: Iterable[str], rule: str, *, from_git: bool) -> None:
        scan = self._scan
        for path in paths:
            scan.check(0)
            place = self._place(path, from_git=from_git)
            if place is None or place[1] in scan.scripts:
                continue
            if len(scan.scripts) >= _SCRIPTS:
                scan.once(f"more than {_SCRIPTS} files that git's configuration names")
                return
            found = files.read_beneath(place[0], place[2], MOST)
            if found is not None:
                scan.scripts.add(place[1])
                scan.mark(place[1], "git", Mark(rule, content(found), "", files.changed(found.found)))

    def _place(self, text: str, *, from_git: bool) -> tuple[int, str, str] | None:
        """(an open directory, the path as it is called, the path below it); None for what lies elsewhere."""
        if from_git and not os.path.isabs(text):
            path = os.path.normpath(text)
            if not path.startswith("../"):
                return self._handle, f"{self._path}/{path}", path
            text = path[3:]  # beside the git directory
            if self._path != (".git" if self._top is None or not self._top[1] else f"{self._top[1]}/.git"):
                return None
        if self._top is None:
            return None
        handle, top = self._top
        if os.path.isabs(text):
            base = os.path.join(self._scan.root, top) if top else self._scan.root
            if not text.startswith(base + "/"):
                return None
            text = text[len(base) + 1 :]
        text = os.path.normpath(text)
        return None if text.startswith("..") else (handle, f"{top}/{text}" if top else text, text)


def config(scan: Scan, directory: int, name: str, path: str, *, worktree: bool = False) -> dict[str, list[str]]:
    """Record the dangerous keys of one file, and return them. ``worktree``: ``core.worktree`` is one."""
    leads = files.link(directory, name)
    if leads is not None:
        scan.mark(path, "", Mark("git.config", f"link:{leads}", f"a link to {leads[:_SHOWN]}"))
        return {}
    found = files.read(directory, name, _CONFIG)
    if found is None:
        return {}
    when = files.changed(found.found)
    parsed = parse(found.data)
    if not parsed.whole or not found.whole:
        scan.mark(path, "", Mark("git.config", content(found), "it is malformed or too long", when))
    keys = dangerous(parsed.entries)
    if not worktree:
        keys.pop("core.worktree", None)  # a submodule's has one: it leads back to its checkout
    for key, values in keys.items():
        scan.mark(path, key, Mark("git.key", "\n".join(values), f"{key} = {values[-1][:_SHOWN]}", when))
    return keys


def hooks(scan: Scan, directory: int, relative: str, path: str) -> None:
    """Each file of a directory of hooks, scripts beside them included; git ignores ``*.sample``."""
    place, _, name = relative.rpartition("/")
    try:
        parent = files.open_beneath(directory, place)
    except (OSError, ValueError):
        return
    try:
        leads = files.link(parent, name)
        if leads is not None:
            scan.mark(path, "", Mark("git.hook", f"link:{leads}", f"a link to {leads[:_SHOWN]}"))
            return
        handle = files.open_directory(name or ".", parent)
    except OSError:
        return
    finally:
        os.close(parent)
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
        scan.gap("directories of hooks that cannot be read")
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
    if there is not None and stat.S_ISREG(there.st_mode):  # one may be run that cannot be read
        scan.gap("files that cannot be read")
        scan.mark(path, "", Mark("git.hook", str(files.stamp_of(there)), "", files.changed(there)))


def _behind(scan: Scan, path: str, leads: str) -> str:
    """The content behind a relative link that stays in the workspace: hooks are often kept so."""
    target = os.path.normpath(os.path.join(os.path.dirname(path), leads))
    if os.path.isabs(target) or target.startswith(".."):
        return ""
    found = files.read_beneath(scan.handle, target, MOST)
    return "" if found is None else f" {content(found)}"


def git_file(scan: Scan, directory: int, path: str, top: str) -> None:
    """A ``.git`` that is a file or a link. One that leads to a repository's own worktree or submodule is ordinary."""
    leads = files.link(directory, ".git")
    text, when = leads, 0
    if leads is None:
        found = files.read(directory, ".git", 4096)
        if found is None or not found.data.startswith(_PREFIX):
            return
        text = os.fsdecode(found.data.removeprefix(_PREFIX).rstrip(b"\r\n"))
        when = files.changed(found.found)
    assert text is not None  # noqa: S101 - one of both
    place = os.path.normpath(os.path.join(scan.root, top, text))
    if leads is not None or not top or not _is_own(scan, place):
        scan.mark(path, "", Mark("git.file", text, f"it leads to {text[:_SHOWN]}", when))


def _is_own(scan: Scan, place: str) -> bool:
    """Whether a git directory is one that git keeps for a repository that is being looked at."""
    workspace, *linked = scan.known_roots
    if place.startswith(f"{workspace}/") and ("/.git/worktrees/" in place or "/.git/modules/" in place):
        return True
    return any(place.startswith((f"{git}/worktrees/", f"{git}/modules/")) for git in linked)


def common_directory(scan: Scan, directory: int, path: str) -> None:
    """A file ``commondir`` in what git takes for a git directory; that of a linked worktree's records is ordinary."""
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
    # Without a HEAD of its own the directory it leads to is none that is looked at.
    own = own and files.look(directory, "../../HEAD") is not None
    if text == "../.." and records.endswith("/worktrees") and own:
        return
    scan.mark(
        path,
        "",
        Mark("git.commondir", text, f"it leads to {text[:_SHOWN]}", files.changed(found.found) if found else 0),
    )


def modules(scan: Scan, directory: int, path: str) -> None:
    """``.gitmodules``, which git reads as configuration of submodules."""
    with contextlib.suppress(OSError):
        config(scan, directory, ".gitmodules", path)


def content(found: files.Read) -> str:
    """A file's content as a value; of a long one its beginning, its size and when it was changed."""
    if found.whole:
        return digest(found.data)
    return f"{digest(found.data)} {found.found.st_size} {files.changed(found.found)}"

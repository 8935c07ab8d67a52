"""Files that look like a tool's settings, although no rule names them.

Tools are too many for a list of all that they read. Such files are looked for at the top of a workspace, in its hidden
directories, and beside the manifests of the projects in it. The findings are shown last, in one line.
"""

from __future__ import annotations

import os
import stat
from itertools import islice

from podbot.guard import files, repositories
from podbot.guard.catalogue import DEPENDENCIES
from podbot.guard.scope import ORDINARY
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Self

    from podbot.guard.scope import Scope
    from podbot.guard.walk import Scan

RULE = "settings"
MANIFESTS = frozenset((
    "package.json", "pyproject.toml", "setup.py", "Cargo.toml", "go.mod", "composer.json", "Gemfile", "pom.xml",
    "build.gradle", "build.gradle.kts", "mix.exs",
))  # fmt: skip
"""Tools look for their settings beside these, too. Each has a rule."""
_MOST = 8000  # files of each process: fewer than a scan records, so that they push nothing out
_READ, _LONGEST = 2000, 64 << 10  # so many files are read, up to that size. Of the others a change of the times counts
_LEVELS = 2  # of a hidden directory
_SUFFIXES = (
    "rc", ".toml", ".json", ".jsonc", ".json5", ".yml", ".yaml", ".cfg", ".ini", ".conf", ".properties", ".lock",
    ".lockb", ".resolved",
)  # fmt: skip
# Documents, and what only lists other files.
_PLAIN = frozenset((
    "AUTHORS", "CHANGELOG", "CHANGES", "CODEOWNERS", "CONTRIBUTORS", "COPYING", "INSTALL", "LICENCE", "LICENSE", "NEWS",
    "NOTICE", "README", "TODO", "VERSION", ".DS_Store", ".dockerignore", ".editorconfig", ".eslintcache",
    ".eslintignore", ".gitignore", ".gitkeep", ".mailmap", ".npmignore", ".prettierignore", ".stylelintignore",
    ".coverage", ".rspec_status", ".testmondata", "tags", "TAGS", ".dirstamp", ".stylelintcache",
))  # fmt: skip
# Of tools and at the top only: a `tasks.py` below is as often a part of a program.
_CODE = frozenset(("tasks.py",))
# What tools leave: counts of tests, caches, an editor's open files.
_LEFT = (".cache", ".swp", ".swo", "~", "_history", ".history", ".history.md", ".o", ".Po", ".d", ".pid", ".tmp", "#")
_BEFORE = (".nfs", ".fuse_hidden", ".#", ".~lock.", ".ninja_", ".coverage.", "LICENSE-")
# Hidden directories that tools write by themselves, and those of version control, of which rules name what acts.
_CACHES = frozenset((
    ".angular", ".astro", ".aws-sam", ".benchmarks", ".bloop", ".build", ".bzr", ".cargo", ".clangd", ".cxx",
    ".dart_tool", ".deps", ".docusaurus", ".elixir_ls", ".expo", ".git", ".godot", ".hg", ".history",
    ".ipynb_checkpoints", ".jj", ".kotlin", ".lake", ".libs", ".local", ".m2", ".metals", ".mutmut", ".nitro", ".nx",
    ".nyc_output", ".output", ".pijul", ".playwright-mcp", ".pyre", ".pytype", ".react-router", ".rustup",
    ".scala-build", ".scannerwork", ".serverless", ".sl", ".sonar", ".stack-work", ".svelte-kit", ".svn", ".swc",
    ".tanstack", ".temp", ".terragrunt-cache", ".tmp", ".trash", ".turbo", ".vagrant", ".vite", ".wrangler", ".wxt",
    ".zig-cache", "build", "checksum", "history", "index", "logs", "state", "tmp", "todos", "types", "unplugged",
)) | DEPENDENCIES  # fmt: skip
# In a hidden directory every file may be code, but for documents, pictures and data.
_DATA = (
    ".md", ".mdx", ".rst", ".txt", ".csv", ".html", ".css", ".log", ".map", ".png", ".jpg", ".jpeg", ".gif", ".svg",
    ".ico", ".webp", ".pdf", ".woff", ".woff2", ".zip", ".gz", ".snap", ".lock",
)  # fmt: skip
_PROGRAMS = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")


def is_settings(name: str) -> bool:
    """Whether a file of that name may be a tool's settings: a dotfile, `x.toml`, or a word.

    Of words, :class:`Unnamed` leaves out what has neither a capital letter, as `Procfile`, nor the mode of a program.
    """
    if name in _PLAIN or name.startswith(_BEFORE) or name.endswith(_LEFT):
        return False
    return name.startswith(".") or name.endswith(_SUFFIXES) or _is_word(name)


def _is_word(name: str) -> bool:
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum()


def _is_left(name: str) -> bool:
    """Whether tools leave what is in a directory of that name."""
    return name in _CACHES or "cache" in name


def _counts(name: str, found: os.stat_result, *, words: bool = False) -> bool:
    """Whether a file of that name, which may be one of settings, can be one: a link, or a file that is not empty.

    ``words``: also any word; otherwise only one with a capital letter, such as `Procfile`, or a script's mode.
    Links that are words lead to programs and directories as a rule.
    """
    word = _is_word(name) and not words
    if stat.S_ISLNK(found.st_mode):
        return not word
    acts = not word or name[0].isupper() or bool(found.st_mode & stat.S_IXUSR)
    return stat.S_ISREG(found.st_mode) and found.st_size > 0 and acts


def _is_program(handle: int, name: str) -> bool:
    """Whether it is one that a build makes."""
    read = files.read(handle, name, 4)
    return read is not None and read.data.startswith(_PROGRAMS)


class Beneath:
    """A directory that is opened when it is first needed. Entering and leaving it raises nothing."""

    def __init__(self, top: int, path: str) -> None:
        self._top, self._path = top, path
        self._handle = -1

    def handle(self) -> int:
        """Raises OSError."""
        if self._handle < 0:
            self._handle = files.open_beneath(self._top, self._path)
        return self._handle

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle >= 0:
            os.close(self._handle)


def _handle_of(directory: int | Beneath) -> int:
    return directory if isinstance(directory, int) else directory.handle()


class Unnamed:
    """Records such files in one scan. Each method raises ``Over``."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._count = self._read = self._noted = 0
        self._projects: dict[str, list[tuple[str, os.stat_result]]] = {}
        self._named: dict[str, bool] = {}

    def note(self, handle: int, path: str, scope: Scope, ruled: Sequence[str], text: str | None) -> None:
        """Remember a directory for :meth:`projects` if it has a manifest.

        ``ruled``: the files in it that rules name. ``text``: the names of all its entries, joined by slashes; None if
        these are many.
        """
        if not path or scope is not ORDINARY or MANIFESTS.isdisjoint(ruled):
            return
        names = self._names(handle) if text is None else text.split("/")
        mine = (one for one in self._found(handle, filter(self._is_mine, names)) if _counts(*one))
        found = list(islice(mine, _MOST - self._noted))
        self._noted += len(found)
        self._projects[path] = found
        if self._noted >= _MOST:
            self._too_many()

    def top(self, path: str) -> None:
        """Those of the directory at the top and of the hidden directories in it."""
        try:
            handle = files.open_directory(path)
        except OSError:
            return  # the walk has recorded a gap
        try:
            if repositories.is_repository(handle, "", ORDINARY):
                return  # git's own files
            self._scan.root = path
            for name, found in self._found(handle, filter(self._may_count, self._names(handle))):
                scope = ORDINARY.child(name)
                if stat.S_ISDIR(found.st_mode):
                    if name.startswith(".") and not (_is_left(name) or scope.everything):
                        self._hidden(handle, name, scope, 1)
                elif self._is_mine(name) or name in _CODE:
                    self._look(handle, name, found)
        finally:
            os.close(handle)

    def projects(self, root: str) -> None:
        """Those in the directories that were noted. An unchanged one is not opened again."""
        if not self._projects:
            return
        try:
            top = files.open_directory(root)
        except OSError:
            self._scan.gap("directories that cannot be opened")
            return
        try:
            self._scan.root = root
            for path, entries in sorted(self._projects.items()):
                self._project(top, path, entries)
        finally:
            os.close(top)

    def _project(self, top: int, path: str, entries: Sequence[tuple[str, os.stat_result]]) -> None:
        self._scan.check(0)
        try:
            with Beneath(top, path) as directory:
                for name, found in entries:
                    self._look(directory, f"{path}/{name}", found)
        except OSError:
            self._scan.gap("directories that cannot be opened")

    def _hidden(self, handle: int, path: str, scope: Scope, level: int) -> None:
        try:
            below = files.open_directory(path.rpartition("/")[2], handle)
        except OSError:
            return  # the walk has recorded a gap
        try:
            for name, found in self._found(below, self._names(below)):
                inner = scope.child(name)
                if not stat.S_ISDIR(found.st_mode):
                    mine = name not in _PLAIN and not name.endswith((*_DATA, *_LEFT))
                    if mine and not scope.rule_of(name) and name not in scope.below:
                        self._look(below, f"{path}/{name}", found, words=True)
                elif level < _LEVELS and not (_is_left(name) or inner.everything):
                    self._hidden(below, f"{path}/{name}", inner, level + 1)
        finally:
            os.close(below)

    def _names(self, handle: int) -> list[str]:
        try:
            return os.listdir(handle)
        except OSError:
            self._scan.gap("directories that cannot be read")
            return []

    def _found(self, handle: int, names: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
        """Those of ``names`` that are there, in their order. Raises Over."""
        for number, name in enumerate(sorted(names)):
            if not number & 255:
                self._scan.check(0)
            found = files.look(handle, name)
            if found is not None:
                yield name, found

    def _may_count(self, name: str) -> bool:
        return name.startswith(".") or name in _CODE or self._is_mine(name)

    def _is_mine(self, name: str) -> bool:
        """Whether it looks like settings, and no rule names it. Projects have the same names, so these are kept."""
        mine = self._named.get(name)
        if mine is None:
            mine = is_settings(name) and not ORDINARY.rule_of(name) and name not in ORDINARY.below
            if len(self._named) < _MOST:
                self._named[name] = mine
        return mine

    def _look(self, directory: int | Beneath, path: str, found: os.stat_result, *, words: bool = False) -> None:
        """``words``: whether each word counts, also one that is no script."""
        name = path.rpartition("/")[2]
        if not _counts(name, found, words=words) or not self._has_room():
            return
        if stat.S_ISREG(found.st_mode):
            self._record(directory, path, found, word=_is_word(name) and not words)
        elif (leads := files.link(_handle_of(directory), name)) is not None:
            self._scan.links.look(self._scan, path, leads, RULE, ORDINARY)

    def _record(self, directory: int | Beneath, path: str, found: os.stat_result, *, word: bool) -> None:
        """What was not read before, and is not now, counts by its times: which files are read may differ by scan."""
        reading = self._scan.reading
        if reading.again(self._scan, path, RULE, found):
            return
        if word and _is_program(_handle_of(directory), path.rpartition("/")[2]):
            return
        if found.st_size > _LONGEST or self._read >= _READ:
            reading.unread(self._scan, path, RULE, found)
        else:
            self._read += 1
            reading.record(self._scan, _handle_of(directory), path, RULE, found)

    def _has_room(self) -> bool:
        self._count += 1
        if self._count > _MOST:
            self._too_many()
        return self._count <= _MOST

    def _too_many(self) -> None:
        self._scan.once(f"more than {_MOST} files that look like settings")

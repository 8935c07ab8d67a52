"""Reads the settings of a repository that matter inside, without running git and without trust in its files.

git reads them from ``config``, from what that includes and, where ``extensions.worktreeConfig`` is set, from
``config.worktree``. An included file is read only where the sandbox has it too: in the workspace or in the git
directory that is mounted with it, by a path without links. All is bounded, because an agent may have written it: files,
their bytes, and the bytes of keys, which repeat the name of their section (64 KiB of file made 525 MB of keys).
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence

from podbot.launch.git_settings import is_format, is_of_interest, switches_off
from podbot.launch.refused_paths import within
from podbot.launch.repository import LONGEST, joined

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening must not wait for a pipe's other end, or for an agent that holds a lease on the file.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MOST_BYTES = 1 << 16  # of all files
_LONGEST_KEY = 256
_MOST_KEYS = 1 << 14  # characters of the keys that are kept
_MOST_FILES = 16
_DEEPEST = 10  # as git itself: with deeper includes it refuses to run
_TRUE = ("true", "yes", "on", "1")


@contextlib.contextmanager
def open_directory(path: str, parent: int | None = None) -> Iterator[int]:
    """A handle of the directory, which is not a link. Raises OSError."""
    handle = os.open(path, _DIRECTORY, dir_fd=parent)
    try:
        yield handle
    finally:
        os.close(handle)


def mode_of(parent: int, name: str) -> int:
    """The file's mode, or 0 when it is missing."""
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return 0


def read_file(parent: int, name: str, most: int = LONGEST) -> bytes:
    """The content of a regular file of at most ``most`` bytes; empty otherwise. Raises OSError."""
    if not stat.S_ISREG(mode_of(parent, name)):
        return b""  # opening a device can have effects
    with open(os.open(name, _FILE, dir_fd=parent), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return b""
        data = file.read(most + 1)
    return data if len(data) <= most else b""


def read_settings(
    roots: Sequence[tuple[str, int]], git: str, worktree: str = "", *, absolute: bool = True
) -> tuple[tuple[str, str], ...]:
    """The settings that ``launch.git_settings`` looks at, in git's order. Never raises.

    ``roots``: directories that the sandbox has, and an open handle of each; ``absolute``: whether at the same path, so
    that an absolute path leads to them. ``git``: the git directory, and ``worktree`` that of a linked worktree, both
    below one of them. All are resolved paths. A boolean without a value is true.
    """
    reader = _Reader(roots, absolute=absolute)
    found = list(reader.entries(joined(git, "config")))
    if dict(found).get("extensions.worktreeconfig", "").lower() in _TRUE:
        # git takes no format and no extension from here (measured with git 2.39).
        more = reader.entries(joined(worktree or git, "config.worktree"))
        found += [(key, value) for key, value in more if not is_format(key)]
    return tuple(found)


class _Reader:
    """Reads configuration files below ``roots`` until it has read, or kept, as much as it may."""

    def __init__(self, roots: Sequence[tuple[str, int]], *, absolute: bool) -> None:
        self._roots, self._absolute = roots, absolute
        self._bytes, self._files, self._keys = _MOST_BYTES, _MOST_FILES, _MOST_KEYS

    def entries(self, path: str, depth: int = 0, *, conditional: bool = False) -> Iterator[tuple[str, str]]:
        """The entries of interest, with those of each included file in its place.

        A condition counts as met, but what depends on one does not switch signing off: it may not be met.
        """
        from podbot.guard.gitconfig import entries_of  # imported here: few commands look at a repository

        for key, given in entries_of(self._read(path), _LONGEST_KEY):
            value = "true" if given is None else given
            if is_of_interest(key, value) and not (
                (depth and is_format(key))  # git takes these from no included file (measured with git 2.39)
                or (conditional and switches_off(key, value))
            ):
                self._keys -= len(key)
                if self._keys < 0:
                    return
                yield key, value
            elif given and depth < _DEEPEST and _includes(key) and (self._absolute or not os.path.isabs(given)):
                below = joined(os.path.dirname(path), given)
                yield from self.entries(below, depth + 1, conditional=conditional or key != "include.path")

    def _read(self, path: str) -> bytes:
        root, at = next((root for root in self._roots if within(path, root[0]) and path != root[0]), ("", -1))
        if not root or self._files <= 0:
            return b""
        self._files -= 1
        *parents, name = os.path.relpath(path, root).split("/")
        data = b""
        # ValueError: a NUL byte, or a character that no file's name has.
        with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as stack:
            for parent in parents:  # one by one, so that none is a link that leads out of the root
                at = stack.enter_context(open_directory(parent, at))
            data = read_file(at, name, self._bytes)
        self._bytes -= len(data)
        return data


def _includes(key: str) -> bool:
    section, _, rest = key.partition(".")
    return key == "include.path" or (section == "includeif" and rest.endswith(".path"))

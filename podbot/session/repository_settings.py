"""Reads the settings of a repository that matter inside, without running git and without trust in its files.

git reads them from ``config``, from what that includes and, where ``extensions.worktreeConfig`` is set, from
``config.worktree``. An included file is read only where the sandbox has it too: in the workspace or in the git
directory that is mounted with it, by a path without links. All is bounded, because an agent may have written it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence

from podbot.launch.git_settings import is_of_interest
from podbot.launch.refused_paths import within
from podbot.launch.repository import LONGEST, joined

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening must not wait for a pipe's other end, or for an agent that holds a lease on the file.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MOST_BYTES = 1 << 16  # of all files; with more, parsing takes 0.1 s and longer
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


def read_settings(roots: Sequence[str], git: str, worktree: str = "") -> tuple[tuple[str, str], ...]:
    """The settings that ``launch.git_settings`` looks at, in git's order. Never raises.

    ``roots``: directories that the sandbox has at the same path. ``git``: the git directory, and ``worktree`` that of a
    linked worktree, both below one of them. All are resolved paths. A boolean without a value is true.
    """
    reader = _Reader(roots)
    found = list(reader.entries(joined(git, "config")))
    if dict(found).get("extensions.worktreeconfig", "").lower() in _TRUE:
        found += reader.entries(joined(worktree or git, "config.worktree"))
    return tuple((key, value) for key, value in found if is_of_interest(key, value))


class _Reader:
    """Reads configuration files below ``roots`` until it has read as much as it may."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = roots
        self._bytes, self._files = _MOST_BYTES, _MOST_FILES

    def entries(self, path: str, depth: int = 0) -> Iterator[tuple[str, str]]:
        """The entries of the file, with those of each included one in its place, and of conditional ones too."""
        from podbot.guard.gitconfig import parse  # imported here: few commands look at a repository

        for key, value in parse(self._read(path)).entries:
            yield key, "true" if value is None else value
            if value and depth < _DEEPEST and _includes(key):
                yield from self.entries(joined(os.path.dirname(path), value), depth + 1)

    def _read(self, path: str) -> bytes:
        root = next((root for root in self._roots if within(path, root) and path != root), None)
        if root is None or self._files <= 0:
            return b""
        self._files -= 1
        *parents, name = os.path.relpath(path, root).split("/")
        data = b""
        # ValueError: a NUL byte, or a character that no file's name has.
        with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as stack:
            at = stack.enter_context(open_directory(root))
            for parent in parents:  # one by one, so that none is a link that leads out of the root
                at = stack.enter_context(open_directory(parent, at))
            data = read_file(at, name, self._bytes)
        self._bytes -= len(data)
        return data


def _includes(key: str) -> bool:
    return key == "include.path" or (key.startswith("includeif.") and key.endswith(".path"))

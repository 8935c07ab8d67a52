"""The files of a workspace, as the tools use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from podbot.tools.results import DeleteEntry, GlobResult, GrepResult, Listing, ReadFileResult, WriteFile


class FilePort(Protocol):
    """Files below one root. A path is a sequence of segments, none for the root.

    Each call raises FileRefused for what it does not do, and a RuntimeError (WorkerLost, WorkerUnavailable,
    ContainerError) when nothing serves the files. What it returns, and its limits: :class:`~podbot.tools.files.Files`.
    """

    def ls(self, path: Sequence[str] = ()) -> Listing:
        """The entries of a directory."""
        ...

    def read(self, path: Sequence[str], *, offset: int = 0, limit: int = 2000) -> ReadFileResult:
        """At most ``limit`` lines of a text file, from line ``offset`` (from 0) on."""
        ...

    def write(self, path: Sequence[str], content: str) -> WriteFile:
        """Create a file, and the directories on the way to it."""
        ...

    def edit(self, path: Sequence[str], old: str, new: str, *, replace_all: bool = False) -> WriteFile:
        """Replace ``old``, which occurs once, or with ``replace_all`` at least once."""
        ...

    def glob(self, pattern: str, path: Sequence[str] = ()) -> GlobResult:
        """The files whose path below ``path`` matches."""
        ...

    def grep(self, pattern: str, path: Sequence[str] = (), *, glob: str | None = None) -> GrepResult:
        """The lines that match, in the files below ``path`` that match ``glob``."""
        ...

    def rm(self, path: Sequence[str]) -> DeleteEntry:
        """Remove an entry; a directory with all that is in it."""
        ...

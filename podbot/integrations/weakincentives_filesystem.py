"""The files of a workspace as the library's ``Filesystem``: podbot's own, with the library's results."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from weakincentives import filesystem as theirs
from weakincentives.errors import SnapshotError, SnapshotRestoreError

from podbot.errors import SnapshotFailed
from podbot.tools.byte_streams import LineReader, PieceReader, StagedWriter
from podbot.tools.filesystem_results import WriteMode
from podbot.tools.snapshot_filesystem import SnapshotFilesystem
from podbot.tools.workspace_filesystem import WorkspaceFilesystem


class PodbotFilesystem:
    """A ``weakincentives.filesystem.Filesystem`` of podbot's ``filesystem``, whose rules and limits it has."""

    def __init__(self, filesystem: WorkspaceFilesystem) -> None:
        self._own = filesystem

    @property
    def root(self) -> str:
        """``/workspace``, whatever the backend: it is no directory of this host."""
        return self._own.root

    @property
    def read_only(self) -> bool:
        """Whether all that would change something is refused."""
        return self._own.read_only

    def read(self, path: str, *, offset: int = 0, limit: int | None = None, encoding: str = "utf-8") -> Any:
        """A ``ReadResult``."""
        return _as(theirs.ReadResult, self._own.read(path, offset=offset, limit=limit, encoding=encoding))

    def read_bytes(self, path: str, *, offset: int = 0, limit: int | None = None) -> Any:
        """A ``ReadBytesResult``."""
        return _as(theirs.ReadBytesResult, self._own.read_bytes(path, offset=offset, limit=limit))

    def exists(self, path: str) -> bool:
        """Whether there is an entry."""
        return self._own.exists(path)

    def stat(self, path: str) -> Any:
        """A ``FileStat``."""
        return _as(theirs.FileStat, self._own.stat(path))

    def list(self, path: str = ".") -> Sequence[Any]:
        """``FileEntry`` of each entry."""
        return tuple(_as(theirs.FileEntry, entry) for entry in self._own.list(path))

    def glob(self, pattern: str, *, path: str = ".") -> Sequence[Any]:
        """``GlobMatch`` of each file."""
        return tuple(_as(theirs.GlobMatch, match) for match in self._own.glob(pattern, path=path))

    def grep(
        self, pattern: str, *, path: str = ".", glob: str | None = None, max_matches: int | None = None
    ) -> Sequence[Any]:
        """``GrepMatch`` of each line."""
        found = self._own.grep(pattern, path=path, glob=glob, max_matches=max_matches)
        return tuple(_as(theirs.GrepMatch, match) for match in found)

    def write(self, path: str, content: str, *, mode: WriteMode = "overwrite", create_parents: bool = True) -> Any:
        """A ``WriteResult``."""
        return _as(theirs.WriteResult, self._own.write(path, content, mode=mode, create_parents=create_parents))

    def write_bytes(
        self, path: str, content: bytes, *, mode: WriteMode = "overwrite", create_parents: bool = True
    ) -> Any:
        """A ``WriteResult``."""
        return _as(theirs.WriteResult, self._own.write_bytes(path, content, mode=mode, create_parents=create_parents))

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Remove an entry."""
        self._own.delete(path, recursive=recursive)

    def mkdir(self, path: str, *, parents: bool = True, exist_ok: bool = True) -> None:
        """Make a directory."""
        self._own.mkdir(path, parents=parents, exist_ok=exist_ok)

    def open_read(self, path: str) -> PieceReader:
        """A ``ByteReader``."""
        return self._own.open_read(path)

    def open_write(self, path: str, *, mode: WriteMode = "overwrite", create_parents: bool = True) -> StagedWriter:
        """A ``ByteWriter``."""
        return self._own.open_write(path, mode=mode, create_parents=create_parents)

    def open_text(self, path: str, *, encoding: str = "utf-8") -> LineReader:
        """A ``TextReader``."""
        return self._own.open_text(path, encoding=encoding)


class PodbotSnapshotFilesystem(PodbotFilesystem):
    """A ``SnapshotableFilesystem``. Bound as a prompt's, the library restores the files after a tool that failed."""

    def __init__(self, filesystem: SnapshotFilesystem) -> None:
        super().__init__(filesystem)
        self._snapshots = filesystem

    def snapshot(self, *, tag: str | None = None) -> Any:
        """A ``FilesystemSnapshot``. Raises SnapshotError."""
        try:
            return _as(theirs.FilesystemSnapshot, self._snapshots.snapshot(tag=tag))
        except SnapshotFailed as error:
            raise SnapshotError(str(error)) from error

    def restore(self, snapshot: Any) -> None:
        """Raises SnapshotRestoreError."""
        try:
            self._snapshots.restore(snapshot)
        except SnapshotFailed as error:
            raise SnapshotRestoreError(str(error)) from error

    def close(self) -> None:
        """Remove the snapshots, unless their store is not its own."""
        self._snapshots.close()


def _as(kind: type[Any], value: Any) -> Any:
    """The library's result with podbot's fields, which have the same names."""
    return kind(**{field.name: getattr(value, field.name) for field in dataclasses.fields(value)})

"""The filesystem of a workspace as programs use it. Names and results are those of the library weakincentives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Literal, Protocol, Self, runtime_checkable
from uuid import UUID

from podbot.tools.filesystem_results import (
    FileEntry,
    FileStat,
    FoundFile,
    FoundLine,
    ReadBytesResult,
    ReadResult,
    WriteMode,
    WriteResult,
)

CHUNK_BYTES = 65_536


@runtime_checkable
class Filesystem(Protocol):
    """Files below one root. A path is a text relative to it; a leading ``/`` or ``/workspace`` is the root, too.

    ``.`` and ``..`` are resolved in the text, before anything is looked at. No call follows a link, or leaves the root:
    such a path is a PermissionError. Other errors are those of Python for files, and ValueError for an argument that is
    not valid; a limit of podbot's is an OSError. Sandboxes and workers that do not answer raise RuntimeError.
    """

    @property
    def root(self) -> str:
        """The root, as commands and tools name it."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether each call that would change something raises PermissionError."""
        ...

    def read(self, path: str, *, offset: int = 0, limit: int | None = None, encoding: str = "utf-8") -> ReadResult:
        """Lines of a UTF-8 file: ``limit`` from line ``offset`` on, 2,000 for None, all for READ_ENTIRE_FILE."""
        ...

    def read_bytes(self, path: str, *, offset: int = 0, limit: int | None = None) -> ReadBytesResult:
        """Bytes of a file; all from ``offset`` on for None."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is an entry, of any kind."""
        ...

    def stat(self, path: str) -> FileStat:
        """The facts of an entry."""
        ...

    def list(self, path: str = ".") -> Sequence[FileEntry]:
        """The entries of a directory, sorted by name."""
        ...

    def glob(self, pattern: str, *, path: str = ".") -> Sequence[FoundFile]:
        """The files below ``path`` that match, sorted by path. None where there is no such directory."""
        ...

    def grep(
        self, pattern: str, *, path: str = ".", glob: str | None = None, max_matches: int | None = None
    ) -> Sequence[FoundLine]:
        """The lines that match, sorted by path and number; at most 1,000 for None."""
        ...

    def write(
        self, path: str, content: str, *, mode: WriteMode = "overwrite", create_parents: bool = True
    ) -> WriteResult:
        """Write a text in UTF-8."""
        ...

    def write_bytes(
        self, path: str, content: bytes, *, mode: WriteMode = "overwrite", create_parents: bool = True
    ) -> WriteResult:
        """Write bytes."""
        ...

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Remove an entry; a directory that is not empty only with ``recursive``."""
        ...

    def mkdir(self, path: str, *, parents: bool = True, exist_ok: bool = True) -> None:
        """Make a directory."""
        ...

    def open_read(self, path: str) -> ByteReader:
        """Read a file of any size, piece by piece."""
        ...

    def open_write(self, path: str, *, mode: WriteMode = "overwrite", create_parents: bool = True) -> ByteWriter:
        """Write a file of any size, piece by piece. After ``close`` it is in its place, and not before."""
        ...

    def open_text(self, path: str, *, encoding: str = "utf-8") -> TextReader:
        """Read a text file of any size, line by line."""
        ...


class FilesystemSnapshot(Protocol):
    """What a filesystem had at one time. ``commit_ref``: names it in its store; the other fields are for people."""

    @property
    def snapshot_id(self) -> UUID: ...

    @property
    def created_at(self) -> datetime: ...

    @property
    def commit_ref(self) -> str: ...

    @property
    def root_path(self) -> str: ...

    @property
    def tag(self) -> str | None: ...


@runtime_checkable
class SnapshotableFilesystem(Filesystem, Protocol):
    """A filesystem that can be put back."""

    def snapshot(self, *, tag: str | None = None) -> FilesystemSnapshot:
        """Keep what is there now. Raises SnapshotFailed."""
        ...

    def restore(self, snapshot: FilesystemSnapshot) -> None:
        """Make the files what they were. Raises SnapshotFailed."""
        ...


class ByteReader(Protocol):
    """An open file. ``size``: when it was opened."""

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def position(self) -> int: ...

    @property
    def closed(self) -> bool: ...

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes, -1 for all; none at the end."""
        ...

    def seek(self, offset: int, whence: Literal[0, 1, 2] = 0) -> int:
        """Go to a position, as in Python's files."""
        ...

    def chunks(self, size: int = CHUNK_BYTES) -> Iterator[bytes]:
        """What is left, in pieces."""
        ...

    def close(self) -> None:
        """Twice is once."""
        ...

    def __iter__(self) -> Iterator[bytes]: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class ByteWriter(Protocol):
    """A file that is being written. It takes its place when it is closed without an error."""

    @property
    def path(self) -> str: ...

    @property
    def bytes_written(self) -> int: ...

    @property
    def closed(self) -> bool: ...

    def write(self, data: bytes) -> int:
        """Take bytes, all of them."""
        ...

    def write_all(self, chunks: Iterable[bytes]) -> int:
        """Take the bytes of each."""
        ...

    def close(self) -> None:
        """Put the file in its place. Twice is once."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class TextReader(Protocol):
    """An open text file. ``line_number``: how many lines were read."""

    @property
    def path(self) -> str: ...

    @property
    def encoding(self) -> str: ...

    @property
    def line_number(self) -> int: ...

    @property
    def closed(self) -> bool: ...

    def readline(self) -> str:
        """The next line with its end; empty at the end."""
        ...

    def read(self, size: int = -1) -> str:
        """At most ``size`` characters, -1 for all."""
        ...

    def lines(self, *, strip: bool = False) -> Iterator[str]:
        """The lines that are left; with ``strip`` without white space at their ends."""
        ...

    def close(self) -> None:
        """Twice is once."""
        ...

    def __iter__(self) -> Iterator[str]: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

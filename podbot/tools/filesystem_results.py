"""What a Filesystem returns. All of it comes from inside a sandbox and was bounded and validated, not verified."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

WriteMode = Literal["create", "overwrite", "append"]
READ_ENTIRE_FILE = -1
"""As the ``limit`` of :meth:`Filesystem.read`: all lines."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """One entry. A link, a FIFO, a socket and a device are neither a file nor a directory.

    ``size_bytes``: 0 for all but files. ``created_at``: None, as no file system says it. ``modified_at``: in UTC.
    """

    path: str
    is_file: bool
    is_directory: bool
    size_bytes: int
    created_at: datetime | None = None
    modified_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One entry of a directory. See :class:`FileStat`."""

    name: str
    path: str
    is_file: bool
    is_directory: bool


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A regular file whose path matches."""

    path: str
    is_file: bool


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line that matches. ``line_number``: from 1. ``match_start``, ``match_end``: of the first match in it."""

    path: str
    line_number: int
    line_content: str
    match_start: int
    match_end: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """``truncated``: there are more. ``skipped``: see :class:`~podbot.tools.results.GrepResult`."""

    matches: tuple[FoundLine, ...]
    truncated: bool
    skipped: int


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Lines of a text file, without a ``\\n`` at the end. ``limit``: how many; ``truncated``: more follow them."""

    content: str
    path: str
    total_lines: int
    offset: int
    limit: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class ReadBytesResult:
    """Bytes of a file. ``size_bytes``: of the whole file; ``limit``: how many; ``truncated``: more follow them."""

    content: bytes
    path: str
    size_bytes: int
    offset: int
    limit: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A file that was written. ``bytes_written``: by this call."""

    path: str
    bytes_written: int
    mode: WriteMode

"""What the tools return. All of it comes from inside a sandbox and was bounded and validated, not verified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Kind = Literal["file", "directory", "link", "other"]


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One entry of a directory.

    ``path``: relative to the workspace, segments separated by ``/``; empty for the workspace itself. A name that is not
    UTF-8 has ``\\xNN`` for its other bytes, and no tool accepts it. ``kind``: "link" for a symbolic link, which no tool
    follows; "other" for a FIFO, socket or device. ``size_bytes``: 0 for all but files. ``version``: the time of the
    last change in microseconds since the epoch. A tool that changes a file always increases it; other programs that
    write twice within one tick of the kernel's clock (4 ms) may not. ``updated_at``: the same as a time in UTC.
    """

    path: str
    kind: Kind
    size_bytes: int
    version: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Listing:
    """A directory. ``entries``: sorted by name; with ``truncated``, only the first of them."""

    path: str
    entries: tuple[FileInfo, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class ReadFileResult:
    """Some lines of a text file.

    ``content``: the lines, separated by ``\\n``, without one at the end. Only ``\\n`` ends a line; a ``\\r`` before it
    is kept. ``offset``: the number of the first line, from 0; ``limit``: how many lines ``content`` has;
    ``total_lines``: how many the file has, 0 for an empty file.
    """

    path: str
    content: str
    offset: int
    limit: int
    total_lines: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a file. ``info``: of the whole file; ``file``: which one it is, for comparison only.

    ``stamp``: see :class:`Entry`.
    """

    data: bytes
    info: FileInfo
    file: str
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an inventory. ``path``: its segments. ``bits``: the permissions. ``target``: of a link.

    ``stamp``: a text that changes with the content; empty where that cannot be said.
    """

    path: tuple[str, ...]
    kind: Kind
    size: int
    bits: int
    stamp: str
    target: bytes


@dataclass(frozen=True, slots=True)
class WriteFile:
    """A file that was created or edited. ``replacements``: how often an edit replaced the text; 0 for a new file."""

    path: str
    mode: Literal["create", "edit"]
    size_bytes: int
    version: int
    updated_at: datetime
    replacements: int


@dataclass(frozen=True, slots=True)
class DeleteEntry:
    """What was removed. ``entries``: how many files, links and directories, including ``path`` itself."""

    path: str
    kind: Kind
    entries: int


@dataclass(frozen=True, slots=True)
class GlobMatch:
    """A regular file whose path matches. See :class:`FileInfo`."""

    path: str
    size_bytes: int
    version: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class GlobResult:
    """``matches``: sorted by the segments of their paths; with ``truncated``, only the first of them.

    ``skipped``: how many directories could not be read.
    """

    matches: tuple[GlobMatch, ...]
    truncated: bool
    skipped: int


@dataclass(frozen=True, slots=True)
class GrepMatch:
    """A matching line. ``line_number``: from 1. ``line``: without its ``\\n`` or ``\\r\\n``."""

    path: str
    line_number: int
    line: str


@dataclass(frozen=True, slots=True)
class GrepResult:
    """``matches``: sorted by path, then by line; with ``truncated``, only the first of them.

    ``skipped``: how many files and directories could not be read, or are larger than what is searched. Binary files,
    which are those with a NUL and those that are not UTF-8, are not counted.
    """

    matches: tuple[GrepMatch, ...]
    truncated: bool
    skipped: int


@dataclass(frozen=True, slots=True)
class ShellExecuteResult:
    """A command that ended. ``cwd``: where it ran, such as ``/workspace/src``, whatever the backend.

    ``exit_code``: 124 after its time limit (``timed_out``). ``stdout``, ``stderr``: "capture disabled" when they were
    not wanted. ``truncated``: some of the output is missing.
    """

    command: tuple[str, ...]
    cwd: str
    exit_code: int
    stdout: str
    stderr: str
    duration_ms: int
    timed_out: bool
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class PodmanShellResult:
    """What an action of ``podman_shell`` did.

    ``stdout`` and ``exit_code``: None but for ``exec``. ``stderr``: of ``exec``; after a failure of any action a
    message, if there is no output.
    """

    action: Literal["start", "exec", "stop"]
    container_name: str
    stdout: str | None
    stderr: str | None
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class EvalResult:
    """A Python program that ended. ``stdout``, ``stderr``: the first 4,096 characters, then ``...`` if there are more.

    ``exit_code``: 124 after its time limit (``timed_out``). ``value_repr`` is None and the others are empty: a program
    prints its values, and uses the workspace's files itself.
    """

    value_repr: str | None
    stdout: str
    stderr: str
    globals: Mapping[str, str]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    exit_code: int
    timed_out: bool

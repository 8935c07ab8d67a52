"""The Filesystem of a workspace, in a sandbox or on this host: each call is a few requests to its files worker."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator, Sequence
from typing import get_args

from podbot.errors import FileRefused
from podbot.tools.byte_streams import WHOLE_BYTES, LineReader, PieceReader, Replaced, StagedWriter, Staging
from podbot.tools.file_failures import as_os_error, failure
from podbot.tools.files import Files
from podbot.tools.filesystem_paths import resolved, shown, to_write
from podbot.tools.filesystem_results import (
    READ_ENTIRE_FILE,
    FileEntry,
    FileStat,
    FoundFile,
    FoundLine,
    ReadBytesResult,
    ReadResult,
    WriteMode,
    WriteResult,
)
from podbot.tools.results import Piece
from podbot.tools.tool_limits import WORKSPACE
from podbot.tools.worker_frames import ENTRIES, PIECE_BYTES

READ_LINES = 2000  # of a read without a limit
MATCHES = 1000  # of a grep without a limit
WRITE_BYTES = 32 << 20  # of a content that one call writes
MOST_ENTRIES = 100_000  # of a listing, and matches of a glob
PATH_BYTES = 64 << 20  # of all their paths together, of which a sandbox that lies could send any number
_TRIES = 3  # of reading a whole file that others replace meanwhile
_ABSENT = ("missing", "not_a_directory", "link", "denied", "bad_path")
_Path = tuple[str, ...]


class WorkspaceFilesystem:
    """See :class:`~podbot.tools.filesystem_port.Filesystem`. Any thread may call it.

    ``files``: of the workspace, such as ``box.files()`` and ``section.files``; who made them closes them.
    ``read_only``: refuse what would change something; commands in the sandbox still can. ``write_limit``: bytes of a
    content that ``write`` and ``write_bytes`` take; ``open_write`` takes any number.
    """

    def __init__(self, files: Files, *, read_only: bool = False, write_limit: int = WRITE_BYTES) -> None:
        self._files, self._read_only, self._write_limit = files, read_only, write_limit

    @property
    def root(self) -> str:
        """``/workspace`` on every backend: what the tools call it, and a beginning of paths that all calls take."""
        return WORKSPACE

    @property
    def read_only(self) -> bool:
        """See Filesystem."""
        return self._read_only

    # --- reading ---------------------------------------------------------------------------------------

    def read(self, path: str, *, offset: int = 0, limit: int | None = None, encoding: str = "utf-8") -> ReadResult:
        """See Filesystem. Only ``\\n`` ends a line, and a ``\\r`` is kept. Raises OSError for more than 64 MiB."""
        _check_utf8(encoding)
        count = READ_LINES if limit is None else limit
        _check_number("offset", offset)
        if count != READ_ENTIRE_FILE:
            _check_number("limit", count)
        words = resolved(path)
        with self._asking(words):
            with contextlib.suppress(_TooLarge):
                if 0 < count <= ENTRIES:
                    return self._read_lines(words, offset, count)
            lines = self._text(words).split("\n")
        if lines[-1] == "":
            lines.pop()  # what follows the last line's end
        begin = min(offset, len(lines))
        end = len(lines) if count == READ_ENTIRE_FILE else min(begin + count, len(lines))
        content = "\n".join(lines[begin:end])
        return ReadResult(content, shown(words), len(lines), begin, end - begin, end < len(lines))

    def read_bytes(self, path: str, *, offset: int = 0, limit: int | None = None) -> ReadBytesResult:
        """See Filesystem. Raises OSError for more than 64 MiB."""
        _check_number("offset", offset)
        if limit is not None:
            _check_number("limit", limit)
        words = resolved(path)
        with self._asking(words):
            data, size = self._bytes(words, offset, limit)
        begin = min(offset, size)
        return ReadBytesResult(data, shown(words), size, begin, len(data), begin + len(data) < size)

    def exists(self, path: str) -> bool:
        """See Filesystem. False also for a path that leaves the root, or leads through a link."""
        try:
            self._files.stat(resolved(path))
        except PermissionError:
            return False
        except FileRefused as refusal:
            if refusal.kind in _ABSENT:
                return False
            raise as_os_error(refusal) from refusal
        return True

    def stat(self, path: str) -> FileStat:
        """See Filesystem."""
        words = resolved(path)
        with self._asking(words):
            info = self._files.stat(words)
        return FileStat(
            path=shown(words),
            is_file=info.kind == "file",
            is_directory=info.kind == "directory",
            size_bytes=info.size_bytes,
            modified_at=info.updated_at,
        )

    def list(self, path: str = ".") -> Sequence[FileEntry]:
        """See Filesystem. Raises OSError for more than 100,000 entries."""
        words = resolved(path)
        found: list[FileEntry] = []
        after, more = "", True
        with self._asking(words):
            while more:
                page = self._files.ls(words, after=after)
                for info in page.entries:
                    name = info.path.rpartition("/")[2]
                    found.append(FileEntry(name, info.path, info.kind == "file", info.kind == "directory"))
                more = _goes_on(found, page.entries, "entries", words, truncated=page.truncated)
                after = found[-1].name if found else ""
        return tuple(found)

    def glob(self, pattern: str, *, path: str = ".") -> Sequence[FoundFile]:
        """See Filesystem. ``*`` does not match a ``/``, and ``**`` matches any number of directories.

        Directories that cannot be read are left out. Raises OSError for more than 100,000 files, ValueError for a
        pattern.
        """
        words = resolved(path)
        prefix = len("/".join(words)) + 1 if words else 0
        found: list[FoundFile] = []
        after, more, room = "", True, PATH_BYTES
        try:
            with self._asking(words):
                while more:
                    page = self._files.glob(pattern, words, after=after)
                    found += [FoundFile(match.path, is_file=True) for match in page.matches]
                    room -= sum(len(match.path.encode()) for match in page.matches)
                    if room < 0:
                        message = f"the paths of the matching files in {shown(words)} are too long together"
                        raise failure(OSError, errno.EFBIG, message)
                    more = _goes_on(found, page.matches, "matching files", words, truncated=page.truncated)
                    after = found[-1].path[prefix:] if found else ""
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(sorted(found, key=lambda match: match.path))

    def grep(
        self, pattern: str, *, path: str = ".", glob: str | None = None, max_matches: int | None = None
    ) -> Sequence[FoundLine]:
        """See Filesystem. At most 2,000. ``glob``: without a ``/``, of names; with one, of paths below ``path``.

        Binary files, and those that cannot be read or are larger than 16 MiB, are left out. Raises TimeoutError after
        10 s, OSError for lines of more than 1 MiB together, ValueError for a pattern.
        """
        most = MATCHES if max_matches is None else max_matches
        if not 0 <= most <= ENTRIES:
            raise ValueError(f"max_matches is a number from 0 to {ENTRIES:,}, not {most}")
        words = resolved(path)
        if not most:
            return ()
        try:
            with self._asking(words, pattern="Invalid regex pattern"):
                found = self._files.search(pattern, words, glob=glob, most=most)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        if found.truncated and len(found.matches) < most:
            message = f"the matching lines in {shown(words)} are too long together; ask for fewer, or another pattern"
            raise failure(OSError, errno.EFBIG, message)
        return tuple(sorted(found.matches, key=lambda match: (match.path, match.line_number)))

    # --- writing ---------------------------------------------------------------------------------------

    def write(
        self, path: str, content: str, *, mode: WriteMode = "overwrite", create_parents: bool = True
    ) -> WriteResult:
        """See Filesystem. Raises ValueError for more than 32 MiB.

        A new content is there at once or not at all. After an error, a part of what is appended may be there.
        """
        return self.write_bytes(path, content.encode("utf-8"), mode=mode, create_parents=create_parents)

    def write_bytes(
        self, path: str, content: bytes, *, mode: WriteMode = "overwrite", create_parents: bool = True
    ) -> WriteResult:
        """See :meth:`write`."""
        words = self._writable(path, "write to", mode)
        if len(content) > self._write_limit:
            raise ValueError(f"Content exceeds maximum size of {self._write_limit:,} bytes; use open_write()")
        if len(content) <= PIECE_BYTES:
            with self._asking(words):
                self._files.put(words, bytes(content), how=mode, make=create_parents)
        else:
            with self._writer(words, mode, make=create_parents) as writer:
                writer.write(content)
        return WriteResult(shown(words), len(content), mode)

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """See Filesystem. Of a link, only the link."""
        self._check_writable()
        words = resolved(path)
        if not words:
            raise PermissionError("Cannot delete root directory")
        with self._asking(words):
            self._files.rm(words, recursive=recursive)

    def mkdir(self, path: str, *, parents: bool = True, exist_ok: bool = True) -> None:
        """See Filesystem. The root exists."""
        self._check_writable()
        if not resolved(path):
            return
        words = to_write(path, "make")
        with self._asking(words):
            self._files.mkdir(words, parents=parents, exist_ok=exist_ok)

    # --- piece by piece --------------------------------------------------------------------------------

    def open_read(self, path: str) -> PieceReader:
        """See Filesystem."""
        return self._reader(resolved(path))

    def open_write(self, path: str, *, mode: WriteMode = "overwrite", create_parents: bool = True) -> StagedWriter:
        """See Filesystem. Until it is closed, a file ``.podbot-…`` beside it has what was written."""
        return self._writer(self._writable(path, "write to", mode), mode, make=create_parents)

    def open_text(self, path: str, *, encoding: str = "utf-8") -> LineReader:
        """See Filesystem."""
        _check_utf8(encoding)
        return LineReader(self.open_read(path))

    # --- implementation --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _asking(self, words: _Path, *, pattern: str = "") -> Iterator[None]:
        """Turn refusals into errors of Python's. ``pattern``: begins the message for one that is not valid."""
        try:
            yield
        except FileRefused as refusal:
            if refusal.kind == "bad_pattern" and pattern:
                raise ValueError(f"{pattern}: {refusal.reason}") from refusal
            if refusal.kind == "not_text":
                message = f"Cannot read {shown(words)!r} as text: it has binary content, not UTF-8. Use read_bytes()."
                raise ValueError(message) from refusal
            if refusal.kind == "not_a_file" and self._is_directory(words):
                message = f"cannot {refusal.operation} {refusal.path}: it is a directory"
                raise failure(IsADirectoryError, errno.EISDIR, message) from refusal
            raise as_os_error(refusal) from refusal

    def _is_directory(self, words: _Path) -> bool:
        with contextlib.suppress(FileRefused):
            return self._files.stat(words).kind == "directory"
        return False

    def _reader(self, words: _Path) -> PieceReader:
        def read(offset: int, limit: int) -> Piece:
            with self._asking(words):
                return self._files.piece(words, offset=offset, limit=limit)

        return PieceReader(shown(words), read)

    def _writer(self, words: _Path, mode: WriteMode, *, make: bool) -> StagedWriter:
        def begin(token: str) -> None:
            with self._asking(words):
                self._files.begin(words, token, how=mode, make=make)

        def stage(token: str, data: bytes, offset: int) -> None:
            with self._asking(words):
                self._files.stage(words, token, data, offset=offset)

        def commit(token: str, size: int) -> None:
            with self._asking(words):
                self._files.commit(words, token, size=size, how=mode)

        def discard(token: str) -> None:
            self._files.discard(words, token)

        return StagedWriter(shown(words), Staging(begin, stage, commit, discard))

    def _read_lines(self, words: _Path, offset: int, count: int) -> ReadResult:
        try:
            found = self._files.read(words, offset=offset, limit=count)
        except FileRefused as refusal:
            if refusal.kind == "too_large":
                raise _TooLarge from refusal
            raise
        begin = min(offset, found.total_lines)
        truncated = begin + found.limit < found.total_lines
        return ReadResult(found.content, shown(words), found.total_lines, begin, found.limit, truncated)

    def _text(self, words: _Path) -> str:
        data, _ = self._bytes(words, 0, None)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise FileRefused(operation="read", path=shown(words), kind="not_text", reason="it is not UTF-8") from None

    def _bytes(self, words: _Path, offset: int, limit: int | None) -> tuple[bytes, int]:
        """What was asked for of one file, and its size. One that is replaced meanwhile is read again."""
        most = WHOLE_BYTES if limit is None else min(limit, WHOLE_BYTES)
        for left in reversed(range(_TRIES)):
            try:
                with self._reader(words) as reader:
                    reader.seek(offset)
                    data = reader.read(most)
                    if (limit is None or limit > most) and reader.size > offset + len(data):
                        message = f"{shown(words)} is larger than {WHOLE_BYTES:,} bytes; use open_read()"
                        raise failure(OSError, errno.EFBIG, message)
                    return data, reader.size
            except Replaced:
                if not left:
                    raise
        raise AssertionError("unreachable")

    def _writable(self, path: str, what: str, mode: WriteMode) -> _Path:
        self._check_writable()
        if mode not in get_args(WriteMode):
            raise ValueError(f"mode is one of {', '.join(get_args(WriteMode))}, not {mode!r}")
        return to_write(path, what)

    def _check_writable(self) -> None:
        if self._read_only:
            raise PermissionError("Filesystem is read-only")


class _TooLarge(Exception):
    """The lines that were asked for do not fit into one answer."""


def _goes_on(found: Sequence[object], page: Sequence[object], what: str, words: _Path, *, truncated: bool) -> bool:
    """Whether there is another page. Raises OSError."""
    if truncated and len(found) >= MOST_ENTRIES:
        message = f"there are more than {MOST_ENTRIES:,} {what} in {shown(words)}"
        raise failure(OSError, errno.EFBIG, message)
    if truncated and not page:
        message = f"other processes change {shown(words)} all the time"
        raise failure(OSError, errno.EBUSY, message)
    return truncated


def _check_number(name: str, value: int) -> None:
    if value < 0:
        raise ValueError(f"{name} must be non-negative, got {value}")


def _check_utf8(encoding: str) -> None:
    if encoding.lower() not in ("utf-8", "utf8"):
        raise ValueError(f"Only 'utf-8' encoding is supported, got {encoding!r}")

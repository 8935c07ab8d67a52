"""A filesystem in memory, for tests of what uses the file tools."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from podbot.errors import FileRefused, ToolValidationError
from podbot.tools.path_patterns import PathPattern
from podbot.tools.results import (
    DeleteEntry,
    FileInfo,
    GlobMatch,
    GlobResult,
    GrepMatch,
    GrepResult,
    Listing,
    ReadFileResult,
    WriteFile,
)

_ENTRIES = 2000
_HINTS = {"exists": "Edit it, or remove it first."}


class MemoryFiles:
    """A :class:`~podbot.tools.file_port.FilePort` that holds regular files. Any thread may call it.

    ``content``: the files by their path below the root, such as ``{"src/a.py": b"x = 1"}``. A file's ``version`` counts
    the changes of all files.
    """

    def __init__(self, content: dict[str, bytes] | None = None) -> None:
        self._files: dict[tuple[str, ...], tuple[bytes, int]] = {}
        self._directories: set[tuple[str, ...]] = {()}
        self._version = 0
        self._lock = threading.RLock()
        for path, data in (content or {}).items():
            self._put(tuple(path.split("/")), data)

    def content(self) -> dict[str, bytes]:
        """The files by their path."""
        with self._lock:
            return {"/".join(path): data for path, (data, _) in sorted(self._files.items())}

    def ls(self, path: Sequence[str] = ()) -> Listing:
        """See :class:`~podbot.tools.file_port.FilePort`."""
        with self._lock:
            place = self._directory("ls", path)
            found = [at for at in (*self._directories, *self._files) if at and at[:-1] == place]
            entries = tuple(self._info(at) for at in sorted(found))
            return Listing("/".join(place), entries[:_ENTRIES], truncated=len(entries) > _ENTRIES)

    def read(self, path: Sequence[str], *, offset: int = 0, limit: int = _ENTRIES) -> ReadFileResult:
        """See :class:`~podbot.tools.file_port.FilePort`."""
        with self._lock:
            lines = self._text("read", path).removesuffix("\n").split("\n")
            lines = [] if self._files[tuple(path)][0] == b"" else lines
            some = lines[offset : offset + min(limit, _ENTRIES)]
            return ReadFileResult("/".join(path), "\n".join(some), offset, len(some), len(lines))

    def write(self, path: Sequence[str], content: str) -> WriteFile:
        """See :class:`~podbot.tools.file_port.FilePort`."""
        with self._lock:
            place = tuple(path)
            if place in self._files or place in self._directories:
                raise _refused("write", place, "exists", f"{'/'.join(place)} already exists")
            for end in range(1, len(place)):
                if place[:end] in self._files:
                    raise _refused("write", place, "not_a_directory", f"{'/'.join(place[:end])} is not a directory")
            self._put(place, content.encode())
            return self._written(place, "create")

    def edit(self, path: Sequence[str], old: str, new: str, *, replace_all: bool = False) -> WriteFile:
        """See :class:`~podbot.tools.file_port.FilePort`."""
        with self._lock:
            text = self._text("edit", path)
            count = text.count(old)
            if not count:
                raise _refused("edit", path, "no_match", "the text to replace does not occur in it")
            if count > 1 and not replace_all:
                raise _refused("edit", path, "several_matches", f"the text to replace occurs {count} times")
            self._put(tuple(path), text.replace(old, new).encode())
            return self._written(tuple(path), "edit", count)

    def glob(self, pattern: str, path: Sequence[str] = ()) -> GlobResult:
        """See :class:`~podbot.tools.file_port.FilePort`."""
        with self._lock:
            place = self._directory("glob", path)
            matching = _pattern("glob", pattern)
            found = [at for at in self._below(place) if matching.matches(at[len(place) :])]
            matches = tuple(self._match(at) for at in found)
            return GlobResult(matches[:_ENTRIES], truncated=len(matches) > _ENTRIES, skipped=0)

    def grep(self, pattern: str, path: Sequence[str] = (), *, glob: str | None = None) -> GrepResult:
        """See :class:`~podbot.tools.file_port.FilePort`."""
        try:
            expression = re.compile(pattern)
        except re.error as error:
            raise _refused("grep", path, "bad_pattern", f"the pattern is not valid: {error}") from error
        with self._lock:
            place = tuple(path)
            files = [place] if place in self._files else self._below(self._directory("grep", place))
            matching = None if glob is None else _pattern("grep", glob)
            files = [at for at in files if matching is None or matching.matches_anywhere(at[len(place) :] or at[-1:])]
            matches = tuple(match for at in files for match in self._lines(at, expression))
            return GrepResult(matches[:_ENTRIES], truncated=len(matches) > _ENTRIES, skipped=0)

    def rm(self, path: Sequence[str]) -> DeleteEntry:
        """See :class:`~podbot.tools.file_port.FilePort`."""
        with self._lock:
            place = tuple(path)
            if not place:
                raise _refused("rm", place, "is_root", "it is the workspace itself")
            gone = [at for at in (*self._files, *self._directories) if at[: len(place)] == place]
            if not gone:
                raise _refused("rm", place, "missing", f"{'/'.join(place)} does not exist")
            kind = self._info(place).kind
            for at in gone:
                self._files.pop(at, None)
                self._directories.discard(at)
            return DeleteEntry("/".join(place), kind, len(gone))

    def _put(self, place: tuple[str, ...], data: bytes) -> None:
        self._version += 1
        self._files[place] = (data, self._version)
        self._directories |= {place[:end] for end in range(len(place))}

    def _directory(self, operation: str, path: Sequence[str]) -> tuple[str, ...]:
        place = tuple(path)
        if place in self._files:
            raise _refused(operation, place, "not_a_directory", f"{'/'.join(place)} is not a directory")
        if place not in self._directories:
            raise _refused(operation, place, "missing", f"{'/'.join(place)} does not exist")
        return place

    def _text(self, operation: str, path: Sequence[str]) -> str:
        place = tuple(path)
        if place in self._directories:
            raise _refused(operation, place, "not_a_file", f"{'/'.join(place) or '/'} is not a regular file")
        if place not in self._files:
            raise _refused(operation, place, "missing", f"{'/'.join(place)} does not exist")
        try:
            return self._files[place][0].decode()
        except UnicodeDecodeError:
            raise _refused(operation, place, "not_text", "it is not UTF-8 text") from None

    def _below(self, place: tuple[str, ...]) -> list[tuple[str, ...]]:
        return sorted(at for at in self._files if at[: len(place)] == place)

    def _lines(self, place: tuple[str, ...], expression: re.Pattern[str]) -> list[GrepMatch]:
        data = self._files[place][0]
        if b"\0" in data:
            return []
        lines = enumerate(data.decode(errors="replace").splitlines(), 1)
        return [GrepMatch("/".join(place), number, line) for number, line in lines if expression.search(line)]

    def _info(self, place: tuple[str, ...]) -> FileInfo:
        shown = "/".join(place)
        if place in self._directories:
            return FileInfo(shown, "directory", 0, 0, _moment(0))
        data, version = self._files[place]
        return FileInfo(shown, "file", len(data), version, _moment(version))

    def _match(self, place: tuple[str, ...]) -> GlobMatch:
        info = self._info(place)
        return GlobMatch(info.path, info.size_bytes, info.version, info.updated_at)

    def _written(self, place: tuple[str, ...], mode: Literal["create", "edit"], count: int = 0) -> WriteFile:
        info = self._info(place)
        return WriteFile(info.path, mode, info.size_bytes, info.version, info.updated_at, count)


def _moment(version: int) -> datetime:
    return datetime.fromtimestamp(version, UTC)


def _pattern(operation: str, text: str) -> PathPattern:
    try:
        return PathPattern(text)
    except ToolValidationError as error:
        raise _refused(operation, (), "bad_pattern", f"the pattern is not valid: {error.limit}") from error


def _refused(operation: str, path: Sequence[str], kind: str, reason: str) -> FileRefused:
    shown = "/".join(path) or "/"
    return FileRefused(operation=operation, path=shown, kind=kind, reason=reason, hint=_HINTS.get(kind, ""))

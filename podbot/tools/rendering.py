"""Results as text for a model: a header, an empty line, and the body or ``<empty>``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from podbot.tools.paths import shown_path
from podbot.tools.results import (
    DeleteEntry,
    EvalResult,
    FileInfo,
    GlobMatch,
    GlobResult,
    GrepMatch,
    GrepResult,
    Listing,
    PodmanShellResult,
    ReadFileResult,
    ShellExecuteResult,
    WriteFile,
)

EMPTY = "<empty>"
_NAMES = {"directory": "DIR ", "link": "LINK", "other": "OTHER"}


def rendered(value: object) -> str:
    """The text of a result, or of one entry or match. Raises TypeError for any other value."""
    render = _RENDERERS.get(type(value))
    if render is None:
        raise TypeError(f"{type(value).__name__} has no rendering")
    return render(value)


def can_render(value: object) -> bool:
    """Whether :func:`rendered` accepts it."""
    return type(value) in _RENDERERS


def numbered(content: str, first: int = 1) -> str:
    """Lines that ``\\n`` separates, each as its number, right-aligned to 4, `` | ``, and its text."""
    return "\n".join(f"{number:>4} | {line}" for number, line in enumerate(content.split("\n"), first))


def _block(header: str, body: str) -> str:
    return f"{header}\n\n{body or EMPTY}"


def _lines(values: Iterable[object]) -> str:
    return "\n".join(map(rendered, values))


def _file_line(path: str, size: int, version: int, updated: datetime) -> str:
    return f"FILE {shown_path(path)} ({size} B, v{version}, updated {updated.isoformat(timespec='milliseconds')})"


def _info(info: FileInfo) -> str:
    if info.kind == "file":
        return _file_line(info.path, info.size_bytes, info.version, info.updated_at)
    shown = shown_path(info.path)
    slash = "/" if info.kind == "directory" and shown != "/" else ""
    return f"{_NAMES[info.kind]} {shown}{slash}"


def _match(match: GlobMatch) -> str:
    return _file_line(match.path, match.size_bytes, match.version, match.updated_at)


def _grep_match(match: GrepMatch) -> str:
    return f"{shown_path(match.path)}:{match.line_number}: {match.line}"


def _listing(listing: Listing) -> str:
    count = counted(len(listing.entries), "entry", "entries")
    return _block(f"Directory {shown_path(listing.path)}, {count}{_cut(listing)}", _lines(listing.entries))


def _read(result: ReadFileResult) -> str:
    shown = shown_path(result.path)
    if not result.limit:
        return _block(f"File {shown}, no lines of {result.total_lines}", "")
    last = result.offset + result.limit
    header = f"File {shown}, lines {result.offset + 1} to {last} of {result.total_lines}"
    return _block(header, numbered(result.content, result.offset + 1))


def _written(result: WriteFile) -> str:
    header = "Created" if result.mode == "create" else f"Edited, {counted(result.replacements, 'replacement')}"
    return _block(header, _file_line(result.path, result.size_bytes, result.version, result.updated_at))


def _removed(result: DeleteEntry) -> str:
    shown = shown_path(result.path) + ("/" if result.kind == "directory" else "")
    return _block(f"Removed, {counted(result.entries, 'entry', 'entries')}", shown)


def _globbed(result: GlobResult) -> str:
    skipped = _skipped(result.skipped, "directory", "directories")
    header = f"{counted(len(result.matches), 'file')} found{_cut(result)}{skipped}"
    return _block(header, _lines(result.matches))


def _grepped(result: GrepResult) -> str:
    skipped = _skipped(result.skipped, "file or directory", "files or directories")
    header = f"{counted(len(result.matches), 'line')} found{_cut(result)}{skipped}"
    return _block(header, _lines(result.matches))


def _executed(result: ShellExecuteResult) -> str:
    words = [f"Exit code {result.exit_code} after {result.duration_ms:,} ms in {result.cwd}"]
    if result.timed_out:
        words.append("terminated after its time limit")
    if result.truncated:
        words.append("some of the output is missing")
    return _block(", ".join(words), _streams(result.stdout, result.stderr))


def _acted(result: PodmanShellResult) -> str:
    code = "" if result.exit_code is None else f", exit code {result.exit_code}"
    body = "" if result.stdout is result.stderr is None else _streams(result.stdout or "", result.stderr or "")
    return _block(f"{result.action} in {result.container_name}{code}", body)


def _evaluated(result: EvalResult) -> str:
    end = ", terminated after its time limit" if result.timed_out else ""
    return _block(f"Exit code {result.exit_code}{end}", _streams(result.stdout, result.stderr))


def _streams(out: str, err: str) -> str:
    """stdout alone as it is; both with their names."""
    if not err:
        return out
    return f"stdout:\n{out or EMPTY}\n\nstderr:\n{err}"


def counted(count: int, one: str, many: str = "") -> str:
    """A number and what it counts, whose plural is ``many``, or ``one`` and an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _cut(result: Listing | GlobResult | GrepResult) -> str:
    return ", and there are more" if result.truncated else ""


def _skipped(count: int, one: str, many: str) -> str:
    return f", {counted(count, one, many)} skipped" if count else ""


_RENDERERS: dict[type, Callable[[Any], str]] = {
    FileInfo: _info,
    GlobMatch: _match,
    GrepMatch: _grep_match,
    Listing: _listing,
    ReadFileResult: _read,
    WriteFile: _written,
    DeleteEntry: _removed,
    GlobResult: _globbed,
    GrepResult: _grepped,
    ShellExecuteResult: _executed,
    PodmanShellResult: _acted,
    EvalResult: _evaluated,
}

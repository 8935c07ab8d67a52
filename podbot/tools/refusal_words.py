"""A worker's refusal in words. Nothing of what the worker says is in it but numbers, and why a pattern is not valid."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from podbot.errors import FileRefused
from podbot.tools.answers import Lie, printable
from podbot.tools.worker_frames import REQUEST_BYTES

_NUMBERS = ("at", "count", "errno", "limit", "seconds")
_MOST = 1 << 53
_ERRNOS = 133  # the highest of Linux
_WHAT = {
    "file": "the file is larger than {limit} bytes",
    "lines": "the lines are longer than {limit} bytes together",
    "line": "one matching line is longer than {limit} bytes",
    "names": "the directories have more than {limit} matching entries",
}
_WORDS = {
    "bad_path": "the path is not valid",
    "bad_pattern": "the pattern is not valid: {detail}",
    "busy": "another process keeps its directory locked or changes it all the time",
    "changed": "another process changed it meanwhile",
    "deadline": "it took more than {seconds:g} s",
    "denied": "{prefix}: {system}",
    "exists": "{prefix} already exists",
    "failed": "{system}",
    "is_root": "it is the workspace itself",
    "link": "{prefix} is a symbolic link, which no tool follows",
    "missing": "{prefix} does not exist",
    "no_match": "the text to replace does not occur in it",
    "not_a_directory": "{prefix} is not a directory",
    "not_a_file": "{prefix} is not a regular file",
    "not_empty": "{prefix} is a directory that is not empty",
    "not_text": "it is not UTF-8 text",
    "several_matches": "the text to replace occurs {count} times",
    "too_large": "{detail}",
}
_HINTS = {
    "bad_pattern": "Patterns of grep are Python regular expressions; in globs, * ? [...] and ** are special.",
    "deadline": "Narrow the path or the pattern.",
    "exists": "Edit it, or remove it first.",
    "several_matches": "Include more of the lines around it, or replace all of them.",
    "too_large": "Ask for fewer lines, or for another path or pattern.",
}


def refusal_from(error: object, operation: str, path: Sequence[str]) -> FileRefused:
    """The error for the part ``error`` of an answer to a request for ``path``. Raises Lie."""
    if not isinstance(error, Mapping):
        raise Lie("a refusal is not a JSON object")
    kind = error.get("kind")
    if not isinstance(kind, str) or kind not in _WORDS:
        raise Lie("a refusal has an unknown kind")
    shown = "/".join(path) or "/"
    words = _fields(error, path, shown)
    return FileRefused(
        operation=operation, path=shown, kind=kind, reason=_WORDS[kind].format(**words), hint=_HINTS.get(kind, "")
    )


def request_too_long(operation: str, path: Sequence[str]) -> FileRefused:
    """The error for a request that is not sent."""
    reason = f"the request is longer than {REQUEST_BYTES} bytes"
    return FileRefused(operation=operation, path="/".join(path) or "/", kind="too_large", reason=reason)


def _fields(error: Mapping[str, Any], path: Sequence[str], shown: str) -> dict[str, Any]:
    numbers = {name: _number(error[name]) if name in error else 0 for name in _NUMBERS}
    at = int(numbers.pop("at"))
    return {
        **numbers,
        "prefix": "/".join(path[:at]) if 0 < at <= len(path) else shown,
        "system": _system(int(numbers["errno"]), error),
        "detail": _detail(error, int(numbers["limit"])),
    }


def _number(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < _MOST:
        raise Lie("a number of a refusal is not valid")
    return value


def _system(number: int, error: Mapping[str, Any]) -> str:
    if 0 < number <= _ERRNOS:
        return os.strerror(number)
    return printable(error.get("reason")) or "an unexpected error in the files worker"


def _detail(error: Mapping[str, Any], limit: int) -> str:
    what = error.get("what")
    if isinstance(what, str) and what in _WHAT:
        return _WHAT[what].format(limit=limit)
    return printable(error.get("reason")) or f"it is over the limit of {limit} bytes"

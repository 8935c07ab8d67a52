"""The paths that tools take and show: relative to the workspace, whatever they begin with."""

from __future__ import annotations

import json
from collections.abc import Sequence

from podbot.errors import ToolValidationError
from podbot.tools.tool_limits import PATH_SEGMENTS, SEGMENT_CHARS, WORKSPACE
from podbot.visible_text import is_printable

VfsPath = tuple[str, ...]
"""The segments of a path below the workspace; none for the workspace itself."""

_SHOWN = 60


def parse_path(text: object, field: str = "path") -> VfsPath:
    """The segments of a path: ``"/workspace/src//a.py"``, ``"/src/a.py"`` and ``"src/a.py"`` are ``("src", "a.py")``.

    White space around it is dropped. ``field``: the parameter's name, for errors. Raises ToolValidationError for
    segments ``.`` and ``..``, what is not ASCII, NUL, segments over 80 characters, and more than 16 segments.
    """
    if not isinstance(text, str):
        raise invalid(field, text, "a path is a string")
    path = text.strip()
    if not path.isascii() or "\0" in path:
        raise invalid(field, text, "a path has ASCII characters only, and no NUL")
    segments = [segment for segment in path.split("/") if segment]
    if path.startswith("/") and segments[:1] == [WORKSPACE[1:]]:
        segments = segments[1:]
    for segment in segments:
        _check_segment(segment, text, field)
    if len(segments) > PATH_SEGMENTS:
        raise invalid(field, text, f"it has {len(segments)} segments, the limit is {PATH_SEGMENTS}")
    return tuple(segments)


def parse_entry(text: object, field: str = "path") -> VfsPath:
    """As :func:`parse_path`, for an entry of the workspace. Raises ToolValidationError also for the workspace."""
    segments = parse_path(text, field)
    if not segments:
        raise invalid(field, text, "it names the workspace itself, and an entry of it is needed")
    return segments


def path_text(segments: Sequence[str]) -> str:
    """The path as results have it: ``"src/a.py"``, and ``""`` for the workspace."""
    return "/".join(segments)


def logical_path(segments: Sequence[str]) -> str:
    """The absolute path that the tools call it by: ``"/workspace/src"``."""
    return "/".join((WORKSPACE, *segments))


def shown_path(path: str) -> str:
    """A path for a text that has one path on a line; the workspace is ``/``.

    A name with characters that cannot be printed, such as a newline, is in double quotes and escaped as in JSON. So is
    one that begins with a quote. Names come from the sandbox: without this, one could look like several lines.
    """
    if not path:
        return "/"
    return path if is_printable(path) and not path.startswith('"') else json.dumps(path)


def shown_value(value: object) -> str:
    """A value for an error message, shortened."""
    shown = ascii(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def invalid(field: str, value: object, limit: str, hint: str = "") -> ToolValidationError:
    """The error for a value that a parameter cannot have."""
    return invalid_as(field, shown_value(value), limit, hint)


def invalid_as(field: str, description: str, limit: str, hint: str = "") -> ToolValidationError:
    """As :func:`invalid`, for a value that is too long or too secret to be shown."""
    return ToolValidationError(field=field, value=description, limit=limit, hint=hint)


def _check_segment(segment: str, text: object, field: str) -> None:
    if segment in (".", ".."):
        raise invalid(
            field, text, f"it has a segment {segment}", "Name the path from the workspace on, as in src/a.py."
        )
    if len(segment) > SEGMENT_CHARS:
        raise invalid(field, text, f"a segment has {len(segment)} characters, the limit is {SEGMENT_CHARS}")

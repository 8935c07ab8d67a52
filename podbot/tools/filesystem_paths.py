"""The paths of a Filesystem: texts that are resolved before anything is looked at."""

from __future__ import annotations

from podbot.tools.tool_limits import PATH_SEGMENTS, SEGMENT_CHARS, WORKSPACE

ROOT = "/"


def resolved(path: str) -> tuple[str, ...]:
    """The segments of a path below the root: ``"/workspace/src/../a//b"`` and ``"./a/b"`` are ``("a", "b")``.

    Nothing is looked at: ``..`` takes away the segment before it, whatever that is. Raises PermissionError for a path
    that leaves the root on its way, TypeError, and ValueError for characters that no path has.
    """
    if not isinstance(path, str):
        raise TypeError(f"a path is a text, not {type(path).__name__}")
    if "\0" in path:
        raise ValueError(f"the path {path!r} has a NUL")
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"the path {path!r} has a character that UTF-8 has not") from None
    words = path.split("/")
    if path.startswith("/") and [word for word in words if word][:1] == [WORKSPACE[1:]]:
        words[words.index(WORKSPACE[1:])] = ""
    found: list[str] = []
    for word in words:
        if word == "..":
            if not found:
                raise PermissionError(f"the path {path!r} leads out of the workspace")
            found.pop()
        elif word not in ("", "."):
            found.append(word)
    return tuple(found)


def to_write(path: str, what: str) -> tuple[str, ...]:
    """The same for an entry that a call makes. ``what``: the call, for messages. Raises ValueError for the root."""
    found = resolved(path)
    if not found:
        raise ValueError(f"Cannot {what} root directory")
    if len(found) > PATH_SEGMENTS:
        raise ValueError(f"Path depth exceeds the limit of {PATH_SEGMENTS} segments: it has {len(found)}")
    for word in found:
        if len(word) > SEGMENT_CHARS:
            raise ValueError(f"Path segment exceeds the limit of {SEGMENT_CHARS} characters: it has {len(word)}")
    return found


def shown(segments: tuple[str, ...]) -> str:
    """A path as results have it; ``/`` for the root."""
    return "/".join(segments) or ROOT

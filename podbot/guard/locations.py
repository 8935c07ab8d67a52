"""Resolves a path that a link or git's configuration names, as long as it stays where an agent can write.

Each component is examined relative to its open parent directory, and links are resolved by their text, so nothing
outside the roots is opened.
"""

from __future__ import annotations

import errno
import os
import stat

from podbot.guard import files
from podbot.guard.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_LINKS = 40  # the kernel's own limit


class Location(NamedTuple):
    """A ``path`` without links below ``root``. ``name``: how a scan reports it."""

    root: str
    path: str
    name: str


def absolute(text: str, base: str) -> str:
    """Expand ``~`` as git does. Raises OSError for another user's home, or when there is no HOME."""
    if not text.startswith("~"):
        return os.path.join(base, text)
    home = os.environ.get("HOME", "")
    if not home or (text != "~" and not text.startswith("~/")):
        raise OSError(errno.ENOENT, "unknown home directory", text)
    return home + text[1:]


def resolve(roots: Sequence[str], path: str) -> Location | None:
    """``path`` must be absolute; ``roots`` begins with the workspace. None if it is outside the roots or missing.

    Raises OSError if it cannot be followed.
    """
    for _ in range(_LINKS):
        root = next((root for root in roots if f"{path}/".startswith(f"{root}/")), None)
        if root is None:
            return None
        found = _follow(root, path[len(root) :])
        if found is None:
            return None
        if not isinstance(found, str):
            done = "/".join(found)
            return Location(root, done, done if root == roots[0] else f"{root}/{done}".rstrip("/"))
        path = found
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _follow(root: str, path: str) -> list[str] | str | None:
    """The components of ``path`` below ``root``; after a link or ``..``, the path to resolve next; None if missing."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    done: list[str] = []
    handle = files.open_directory(root)
    try:
        for number, part in enumerate(parts):
            rest = parts[number + 1 :]
            if part == "..":  # the path so far has no links, so its text is enough
                place = os.path.dirname("/".join((root, *done)))
                return "/".join((place, *rest))
            found = files.look(handle, part)
            if found is None:
                return None
            if stat.S_ISLNK(found.st_mode):
                leads = files.link(handle, part)
                return None if leads is None else "/".join((os.path.join(root, *done, leads), *rest))
            done.append(part)
            if rest:
                if not stat.S_ISDIR(found.st_mode):
                    return None
                below = files.open_directory(part, handle)
                os.close(handle)
                handle = below
        return done
    finally:
        os.close(handle)


def read(place: Location, most: int) -> files.Read | None:
    """At most ``most`` bytes of a regular file; None for anything else."""
    try:
        handle = files.open_directory(place.root)
    except OSError:
        return None
    try:
        return files.read_beneath(handle, place.path, most)
    finally:
        os.close(handle)


def open_directory(place: Location) -> int:
    """Raises OSError."""
    handle = files.open_directory(place.root)
    try:
        return files.open_beneath(handle, place.path)
    finally:
        os.close(handle)

"""The two operands of ``podbot cp``: a path of this host, or ``NAME:PATH`` in a session. Pure."""

from __future__ import annotations

import posixpath
from typing import NamedTuple

from podbot.config.checks import shown
from podbot.errors import UsageError

_COMMAND = "podbot cp"


class Location(NamedTuple):
    """``session``: empty for a path of this host. ``path``: as it was typed."""

    session: str
    path: str

    @property
    def text(self) -> str:
        """As it is written on the command line."""
        return f"{self.session}:{self.path}" if self.session else self.path


class Inside(NamedTuple):
    """A path in a sandbox: an entry of a directory. ``name``: empty for the whole content of the directory."""

    directory: str
    name: str


def read_location(word: str) -> Location:
    """One operand. A word that begins with ``/`` or ``.`` is a path of this host, also if it contains a colon.

    Raises UsageError.
    """
    if not word or "\0" in word:
        raise UsageError(command=_COMMAND, reason="a path is empty, or contains a NUL")
    session, colon, path = word.partition(":")
    if word.startswith(("/", ".", "~")) or not colon or "/" in session:
        return Location("", word)
    if session and not path:
        hint = f"A path follows the colon, such as {session}:/tmp/." if shown(session) == repr(session) else ""
        raise UsageError(command=_COMMAND, reason=f"{shown(word)} names no path in the session", hint=hint)
    if not session:
        reason = f"{shown(word)} is not NAME:PATH"
        raise UsageError(command=_COMMAND, reason=reason, hint="A path of this host with a colon is written ./a:b.")
    return Location(session, path)


def read_locations(source: str, target: str) -> tuple[Location, Location]:
    """Both operands, of which one is in a session. Raises UsageError."""
    found = read_location(source), read_location(target)
    inside = sum(1 for location in found if location.session)
    if inside != 1:
        reason = (
            f"both {source} and {target} are in sessions"
            if inside
            else f"neither {source} nor {target} is in a session"
        )
        raise UsageError(command=_COMMAND, reason=reason, hint="A path in a session is written NAME:PATH.")
    return found


def inside(path: str) -> Inside:
    """Where a path in a sandbox lies; relative ones begin at its root. ``DIR/.`` means the content of DIR."""
    content = path.endswith("/.") or path in (".", "/")
    clean = posixpath.normpath("/" + path.lstrip("/"))
    if content or clean == "/":
        return Inside(clean, "")
    return Inside(*posixpath.split(clean))

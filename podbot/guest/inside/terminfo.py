"""Whether the sandbox has a description of a terminal, looked for where ncurses looks."""

from __future__ import annotations

import os
import stat

from podbot.guest.inside.spawn import raw

_STANDARD = (b"/etc/terminfo", b"/lib/terminfo", b"/usr/share/terminfo")
_MOST = 64  # directories of TERMINFO_DIRS
_LONGEST = 128  # bytes of a name


def first_described(names: list[str], env: dict[bytes, bytes], standard: tuple[bytes, ...] = _STANDARD) -> int | None:
    """The index of the first of ``names`` that a program with the variables ``env`` finds; None if it finds none."""
    places = directories(env, standard)
    for index, name in enumerate(names):
        below = entry(raw(name))
        if below and any(_is_entry(place + b"/" + below) for place in places):
            return index
    return None


def directories(env: dict[bytes, bytes], standard: tuple[bytes, ...]) -> list[bytes]:
    """The directories that ncurses searches. It takes relative ones and descriptions in variables, too."""
    home = env.get(b"HOME", b"")
    named = [env.get(b"TERMINFO", b""), home and home + b"/.terminfo"]
    named += env.get(b"TERMINFO_DIRS", b"").split(b":")[:_MOST]
    return [place for place in named if place.startswith(b"/")] + list(standard)


def entry(name: bytes) -> bytes:
    """The path of its description below such a directory; empty if there cannot be one.

    Where file names ignore the case, the directory is ``78`` in place of ``x``. ncurses on Linux does not look there.
    """
    if not name or len(name) > _LONGEST or b"/" in name or b"\0" in name or name in (b".", b".."):
        return b""
    return name[:1] + b"/" + name


def _is_entry(path: bytes) -> bool:
    """Not opened: a process inside may have put anything there, such as a named pipe."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0

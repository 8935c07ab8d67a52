"""``podbot host`` and ``podbot mcp``: moves the protocol's streams away before any other code runs.

The real stdin and stdout move to descriptors that no child inherits; descriptor 0 becomes /dev/null and 1 a copy of
stderr. So a stray print, a C library, a subprocess or a traceback can neither write to the client nor read its input.
This module imports almost nothing, because it runs before podbot itself is loaded.
"""

from __future__ import annotations

import os
import sys

from podbot.cli.argv_scan import scan
from podbot.cli.options import COMMON, DRY_RUN, HELP

_PRINTS = (*HELP, *DRY_RUN.spelled)


class Guard:
    """The real ``stdin`` and ``stdout``; :meth:`undo` restores them for a caller that continues, such as a test."""

    current: Guard | None = None

    def __init__(self) -> None:
        import fcntl

        self.stdin = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
        self.stdout = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        os.close(nothing)

    def undo(self) -> None:
        """Move both streams back."""
        os.dup2(self.stdin, 0)
        os.dup2(self.stdout, 1)
        os.close(self.stdin)
        os.close(self.stdout)


def engage() -> Guard:
    """Guard the streams, once; all three standard descriptors must be open."""
    if Guard.current is None:
        Guard.current = Guard()
    return Guard.current


def release() -> None:
    """Undo :func:`engage`."""
    if Guard.current is not None:
        if sys.stdout is not None:
            sys.stdout.flush()  # text printed meanwhile must not reach the real stdout
        guard, Guard.current = Guard.current, None
        guard.undo()


def is_hosting(argv: list[str]) -> bool:
    """Whether this command line runs ``host`` or ``mcp`` for a client, rather than printing help or a plan.

    If uncertain, false: the command then engages the guard itself, only later.
    """
    before = scan(argv, COMMON, stop_at_word=True)
    if before is None or before.words[:1] not in (["host"], ["mcp"]):
        return False
    for word in before.words[1:]:
        if word == "--":
            return True
        if word in _PRINTS or (word.startswith("-") and not word.startswith("--") and "h" in word):
            return False
    return True

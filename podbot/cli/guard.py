"""``podbot host``: the protocol's streams are put out of everything else's reach before anything else runs.

The real stdin and stdout move to descriptors that no child inherits; descriptor 0 becomes /dev/null and
1 the same as stderr. A stray print, a C library, a subprocess or a traceback then cannot reach the client,
nor read what it sends. Imports next to nothing: it runs before podbot itself is loaded.
"""

from __future__ import annotations

import os
import sys

from podbot.cli.options import COMMON, DRY_RUN, HELP
from podbot.cli.scan import scan

_PRINTS = (*HELP, *DRY_RUN.spelled)


class Guard:
    """The real ``stdin`` and ``stdout``, and the way back (for a caller that goes on, such as a test)."""

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
        """Both streams where they were."""
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
            sys.stdout.flush()  # what was printed meanwhile must not come out on the other side
        guard, Guard.current = Guard.current, None
        guard.undo()


def is_hosting(argv: list[str]) -> bool:
    """Whether this command line runs ``host`` for a client, rather than printing help or a plan.

    In doubt false: the command engages the guard itself, only later.
    """
    before = scan(argv, COMMON, stop_at_word=True)
    if before is None or before.words[:1] != ["host"]:
        return False
    for word in before.words[1:]:
        if word == "--":
            return True
        if word in _PRINTS or (word.startswith("-") and not word.startswith("--") and "h" in word):
            return False
    return True

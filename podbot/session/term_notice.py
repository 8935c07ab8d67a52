"""Tells once in a session that the TERM inside is not the one of the terminal."""

from __future__ import annotations

import os
from collections.abc import Callable

from podbot.events import Emit, Event
from podbot.exec_spec import ExecSpec
from podbot.launch.terminal_variables import term_notice
from podbot.places import is_own_directory

TOLD = "term"  # a file in the session's directory: it was told


def telling(path: str, spec: ExecSpec, emit: Emit, *, first: bool = False) -> Callable[[str, bool], None]:
    """For ``ExecIO.on_term``: a notice the first time in the session whose directory is ``path``, then information.

    ``first``: it is the first time. Of what is not a session of this host, nothing is known, and it is information.
    """

    def tell(inside: str, looked: bool) -> None:  # noqa: FBT001 - see ExecIO
        new = _mark(path) or first
        host = spec.term_choices[0]
        text = term_notice(host, inside, looked=looked)
        emit(Event("notice" if new else "info", "exec.terminal", text, {"term": host, "inside": inside}))

    return tell


def _mark(path: str) -> bool:
    """Whether it was not marked before."""
    if not is_own_directory(path):
        return False
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        os.close(os.open(os.path.join(path, TOLD), flags, 0o600))
    except OSError:
        return False
    return True

"""Where the named pipes of a session's commands lie. A module of its own: it is all that `podbot exec` needs of it."""

from __future__ import annotations

import os

TARGET = "/run/podbot/pipes"
DIRECTORY = "pipes"  # in the session's own directory on the host


def pipes_directory(session_dir: str) -> str:
    """Where a session's pipes are made, on the host."""
    return os.path.join(session_dir, DIRECTORY)

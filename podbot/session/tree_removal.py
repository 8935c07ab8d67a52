"""Removes directories that an agent could write to, at any depth and without following a link."""

from __future__ import annotations

import contextlib
import os
import shutil

_SECONDS = 30.0


def remove_tree(path: str) -> None:
    """Remove a directory; a missing one is ignored, and what belongs to another user may stay.

    ``shutil.rmtree`` descends one Python call and one descriptor for each level, so it raises RecursionError below
    about 1,000 levels, and leaves the rest where no descriptor is left. It is tried first because it is loaded anyway.
    """
    with contextlib.suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        _remove_deep(path)


def _remove_deep(path: str) -> None:
    from podbot.tools.inside.refusals import Clock, Refused  # here, because few trees need it
    from podbot.tools.inside.removal import rm

    above, name = os.path.split(path)
    with contextlib.suppress(OSError, Refused):
        handle = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            rm(handle, {"path": [name], "unlock": True}, Clock(_SECONDS))
        finally:
            os.close(handle)

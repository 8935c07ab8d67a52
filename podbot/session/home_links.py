"""Whether an agent put a link where ``podbot start`` is going to copy files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable


def link_in(storage: str, directories: Iterable[str]) -> tuple[str, str] | None:
    """The first of the ``directories`` inside that is a link in a stopped container's own files, and its text.

    ``storage``: the directory on this host with what was written inside, or empty. ``directories``: absolute, parents
    first. None also where there is no telling: another storage driver, or a store of another user's. The copy would
    follow a link, into the workspace too, where its files are on this host. An agent can put them there itself, but
    only knowingly, and podbot must not do it for one.
    """
    for path in directories if storage else ():
        place = os.path.join(storage, path.lstrip("/"))
        try:
            if stat.S_ISLNK(os.lstat(place).st_mode):
                return path, os.readlink(place)
        except OSError:  # it is as in the image, or cannot be seen
            continue
    return None

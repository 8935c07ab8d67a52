"""Finds what a stopped container has in place of the files that Podman and its runtime read at the start.

They open them as whatever they are: at a FIFO the runtime waits for ever, Podman holds the container's lock meanwhile,
and every later command that looks at containers hangs (4.3.1, measured: `podman ps`, and each start of another one).
"""

from __future__ import annotations

import os
import stat
from typing import Any

from podbot.engine.http import BadResponse, Response

_FILES = ("etc/passwd", "etc/group")
_KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def odd_in(answer: Response) -> str:
    """What is wrong with one of them, for a container of this machine; empty for nothing, or where it cannot be seen.

    ``answer``: to ``GET /containers/{name}/json``, which names the directories of its layers. What was written inside
    is in the uppermost one, the image's own files are in the others.
    """
    try:
        return _odd(answer.json()) if answer.status == 200 else ""
    except (BadResponse, AttributeError):
        return ""


def _odd(found: Any) -> str:
    data = (found.get("GraphDriver") or {}).get("Data") or {}
    upper = str(data.get("UpperDir") or data.get("dir") or "")
    lower = [layer for layer in str(data.get("LowerDir") or "").split(":") if layer]
    if upper and os.path.islink(os.path.join(upper, "etc")):
        return "its /etc is a link"
    for name in _FILES:
        kind = next(filter(None, (_kind(layer, name, own=layer == upper) for layer in (upper, *lower) if layer)), "")
        if kind not in ("", "a file"):
            return f"its /{name} is {kind}, and the engine would wait for ever at it"
    return ""


def _kind(layer: str, name: str, *, own: bool) -> str:
    """Empty if the layer does not have the file. A link of the image's is not followed, and not judged."""
    try:
        found = os.lstat(os.path.join(layer, name))
    except OSError:
        return ""
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
        return "a file"  # it was removed
    if stat.S_ISLNK(found.st_mode):
        return "a link" if own else "a file"
    return _KINDS.get(stat.S_IFMT(found.st_mode), "a file")

"""``piece``: some bytes of a file, whatever they are."""

from __future__ import annotations

import binascii
import os
import time

from podbot.tools import worker_frames as limits
from podbot.tools.inside import beneath
from podbot.tools.inside.refusals import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TICKS = 100_000_000  # nanoseconds: many ticks of the kernel's clock, which are 10 ms or shorter


def piece(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """At most ``limit`` bytes from ``offset`` on, the facts of the file, and which file it is.

    A file that another one replaces between two requests has another ``file``.
    """
    path, offset, limit = beneath.segments(args["path"]), args["offset"], min(args["limit"], limits.PIECE_BYTES)
    with beneath.regular_file(root, path) as file:
        before, now = os.fstat(file), time.time_ns()
        data = bytearray()
        while len(data) < limit:
            clock.check()
            part = os.pread(file, limit - len(data), offset + len(data))
            if not part:
                break
            data += part
        found = os.fstat(file)
    mark = stamp(found, now) if _times(found) == _times(before) else ""
    text = binascii.b2a_base64(data, newline=False).decode("ascii")
    return {"data": text, "facts": beneath.facts(found), "file": identity(found), "stamp": mark}


def identity(found: os.stat_result) -> str:
    """Which file it is, as a text: JSON has no numbers of 64 bits."""
    return f"{found.st_dev:x}.{found.st_ino:x}"


def stamp(found: os.stat_result, now: int) -> str:
    """A text that changes with the content; empty while it may not, shortly after a change.

    A program can set the time of a change of the content, and not that of the inode. Two changes within one tick of the
    kernel's clock have the same time, so a file that was just changed has no stamp. Later writes to a page that a
    process has mapped and written change no time, so the stamp does not show them. ``now``: before it was looked at.
    """
    if now - max(found.st_mtime_ns, found.st_ctime_ns) < _TICKS:
        return ""
    return f"{identity(found)}.{found.st_size:x}." + ".".join(f"{each:x}" for each in _times(found))


def _times(found: os.stat_result) -> tuple[int, int]:
    return found.st_mtime_ns, found.st_ctime_ns

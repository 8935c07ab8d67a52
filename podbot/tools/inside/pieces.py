"""``piece``: some bytes of a file, whatever they are."""

from __future__ import annotations

import binascii
import os

from podbot.tools import worker_frames as limits
from podbot.tools.inside import beneath
from podbot.tools.inside.refusals import Clock, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def piece(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """At most ``limit`` bytes from ``offset`` on, the facts of the file, and which file it is.

    A file that another one replaces between two requests has another ``file``.
    """
    path, offset, limit = beneath.segments(args["path"]), args["offset"], min(args["limit"], limits.PIECE_BYTES)
    with beneath.parent(root, path) as (fd, name):
        try:
            file = beneath.opened(fd, name)
        except OSError as error:
            raise refused(error, at=len(path)) from None
    try:
        data = bytearray()
        while len(data) < limit:
            clock.check()
            part = os.pread(file, limit - len(data), offset + len(data))
            if not part:
                break
            data += part
        found = os.fstat(file)
    except OSError as error:
        raise refused(error, at=len(path)) from None
    finally:
        os.close(file)
    text = binascii.b2a_base64(data, newline=False).decode("ascii")
    return {"data": text, "facts": beneath.facts(found), "file": identity(found)}


def identity(found: os.stat_result) -> str:
    """Which file it is, as a text: JSON has no numbers of 64 bits."""
    return f"{found.st_dev:x}.{found.st_ino:x}"

"""Why the worker does not do what was asked, as podbot receives it."""

from __future__ import annotations

import contextlib
import errno
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KINDS = {
    errno.ENOENT: "missing",
    errno.EEXIST: "exists",
    errno.ENOTDIR: "not_a_directory",
    errno.EISDIR: "not_a_file",
    errno.ELOOP: "link",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
    errno.ENAMETOOLONG: "bad_path",
}


class Refused(Exception):
    """``kind``: see FileRefused; ``fields``: numbers that podbot puts into words, and the text ``reason``."""

    def __init__(self, kind: str, **fields: Any) -> None:
        super().__init__(kind)
        self.kind, self.fields = kind, fields

    def answer(self) -> dict[str, Any]:
        """The part of the answer that is called ``error``."""
        return dict(self.fields, kind=self.kind)


def refused(error: OSError, **fields: Any) -> Refused:
    """The refusal for an error of the operating system."""
    number = error.errno or errno.EIO
    return Refused(_KINDS.get(number, "failed"), errno=number, **fields)


class Clock:
    """A time limit in seconds, which starts now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.until = time.monotonic() + seconds

    def left(self) -> float:
        """The seconds that are left, at least 0."""
        return max(0.0, self.until - time.monotonic())

    def check(self) -> None:
        """Raises Refused when the time is over."""
        if time.monotonic() > self.until:
            raise Refused("deadline", seconds=self.seconds)


def close_quietly(fd: int) -> None:
    """Close a descriptor; an error of a delayed write, such as EIO, changes nothing any more."""
    with contextlib.suppress(OSError):
        os.close(fd)

"""``stat``, ``ls`` and ``read``."""

from __future__ import annotations

import codecs
import heapq
import os

from podbot.tools import worker_frames as limits
from podbot.tools.inside import beneath
from podbot.tools.inside.refusals import Clock, Refused, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_CHUNK = 1 << 18


def stat_entry(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """The facts of one entry."""
    del clock
    path = beneath.segments(args["path"])
    if not path:
        return {"facts": beneath.facts(os.fstat(root))}
    with beneath.parent(root, path) as (fd, name):
        return {"facts": beneath.facts(beneath.looked(fd, name, len(path)))}


def ls(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """The first entries of a directory, sorted by name. However many it has, no more names than that are held.

    ``after``: a name as it is shown; those up to it are left out.
    """
    path = beneath.segments(args["path"])
    with beneath.directory(root, path) as through:
        try:
            fd = beneath.listable(through)
        except OSError as error:
            raise refused(error, at=len(path)) from None
        try:
            after = args.get("after", "")
            names = (name for name in _names(fd, clock) if name[0] > after)
            chosen = heapq.nsmallest(limits.ENTRIES + 1, names)
            found = list(_with_facts(fd, chosen[: limits.ENTRIES]))
        finally:
            os.close(fd)
    return {"entries": found, "truncated": len(chosen) > limits.ENTRIES}


def _names(fd: int, clock: Clock) -> Iterator[tuple[str, str]]:
    with os.scandir(fd) as entries:
        for number, entry in enumerate(entries):
            if not number % 1000:
                clock.check()
            yield beneath.shown(entry.name), entry.name


def _with_facts(fd: int, names: list[tuple[str, str]]) -> Iterator[list[Any]]:
    for shown, name in names:
        try:
            yield [shown, *beneath.facts(beneath.look(fd, name))]
        except OSError:  # it has been removed since
            continue


def read(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """Lines of a text file. The whole file is read for the number of its lines, in pieces."""
    path, offset, limit = beneath.segments(args["path"]), args["offset"], min(args["limit"], limits.ENTRIES)
    with beneath.regular_file(root, path) as file:
        if os.fstat(file).st_size > limits.READ_BYTES:
            raise Refused("too_large", what="file", limit=limits.READ_BYTES)
        lines = _Lines(offset, offset + limit)
        for chunk in _chunks(file, limits.READ_BYTES, clock):
            lines.take(chunk)
        return lines.answer()


def _chunks(file: int, limit: int, clock: Clock) -> Iterator[bytes]:
    """The file's content; it may grow while it is read. Raises Refused for more than ``limit`` bytes."""
    size = 0
    while True:
        clock.check()
        data = os.read(file, _CHUNK)
        if not data:
            return
        size += len(data)
        if size > limit:
            raise Refused("too_large", what="file", limit=limit)
        yield data


class _Lines:
    """Counts all lines, keeps those from ``first`` up to ``last``, and checks that all is UTF-8."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.ended = 0  # lines that have ended so far
        self.open = False  # whether another one has begun
        self.kept = bytearray()
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    def take(self, chunk: bytes) -> None:
        try:
            self.decoder.decode(chunk)
        except UnicodeDecodeError:
            raise Refused("not_text") from None
        ends = chunk.count(b"\n")
        if self.ended < self.last and self.ended + ends >= self.first:
            self._keep(chunk)
        self.ended += ends
        self.open = not chunk.endswith(b"\n")

    def _keep(self, chunk: bytes) -> None:
        at, line = 0, self.ended
        while at < len(chunk) and line < self.last:
            end = chunk.find(b"\n", at) + 1 or len(chunk)
            if line >= self.first:
                self.kept += chunk[at:end]
            line, at = line + 1, end
        if len(self.kept) > limits.TEXT_BYTES:
            raise Refused("too_large", what="lines", limit=limits.TEXT_BYTES)

    def answer(self) -> dict[str, Any]:
        try:
            self.decoder.decode(b"", True)
        except UnicodeDecodeError:
            raise Refused("not_text") from None
        total = self.ended + self.open
        content = self.kept.decode("utf-8")
        count = max(0, min(total, self.last) - self.first)
        return {"content": content[: -1 if content.endswith("\n") else None], "lines": count, "total": total}

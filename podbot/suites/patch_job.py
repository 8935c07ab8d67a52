"""What podbot asks of the helper process that makes a patch, and its limits. Paths are bytes, relative ones without
``.`` and ``..``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Report = Callable[[tuple[Any, ...]], None]
"""Takes ``("file", path, change, patch)``, ``("left", path, reason)``, and at last ``("end", more)`` or ``("failed",
reason)``."""


class PatchLimits(NamedTuple):
    """What is over a limit is left out, and named.

    ``patch_bytes``: of the whole patch; ``file_bytes``: of each file, before and after; ``files``: in the patch;
    ``entries``: names in the workspace that are looked at; ``depth``: segments of a path; ``named``: how many of those
    that are left out are named, ``named_bytes``: of their paths together; ``seconds``: for everything.
    """

    patch_bytes: int = 4 << 20
    file_bytes: int = 4 << 20
    files: int = 2000
    entries: int = 200_000
    depth: int = 64
    named: int = 1000
    named_bytes: int = 256 << 10
    seconds: float = 30.0


class Base(NamedTuple):
    """A file that was copied from ``source`` below ``root`` to ``target``, with what it was then.

    ``shown``: its path in the patch; empty if it is not exported. ``linked``: on the host, that path leads through a
    link.
    """

    root: bytes
    source: bytes
    target: bytes
    shown: bytes
    size: int
    mtime_ns: int
    ctime_ns: int
    executable: bool
    linked: bool


class Place(NamedTuple):
    """A directory that was copied to ``target``, empty for the workspace. ``host``: its path there, without links."""

    target: bytes
    host: bytes


class Job(NamedTuple):
    """``directory``: the workspace. ``places``: those with the longest ``target`` first.

    ``within``: the place of which new files are exported, with their paths in it; None for all of the workspace.
    ``new_files``: whether there is any to export.
    """

    directory: bytes
    bases: Sequence[Base]
    places: Sequence[Place]
    limits: PatchLimits
    within: Place | None = None
    new_files: bool = True

    def to_plain(self) -> tuple[Any, ...]:
        """Of built-in types, as ``marshal`` writes them."""
        within = None if self.within is None else tuple(self.within)
        bases, places = [tuple(base) for base in self.bases], [tuple(place) for place in self.places]
        return self.directory, bases, places, tuple(self.limits), within, self.new_files


def job_of(plain: tuple[Any, ...]) -> Job:
    """The reverse of :meth:`Job.to_plain`."""
    directory, bases, places, limits, within, new_files = plain
    return Job(
        directory,
        [Base(*base) for base in bases],
        [Place(*place) for place in places],
        PatchLimits(*limits),
        None if within is None else Place(*within),
        new_files,
    )

"""How much lies in a directory that an agent writes: names and sizes only, within bounds of its own.

The agent may be hostile, and may still run: links are not followed, nothing but directories is opened, each relative to
the one that holds it, and a tree without end costs no more than the bounds say.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass

ENTRIES = 50_000
DEPTH = 32
SECONDS = 2.0
_BLOCK = 512  # bytes, whatever the file system's own block is: st_blocks
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass
class Survey:
    """``bytes``: what the files take on the disk. ``newest``: seconds since the epoch, 0 when there is nothing.

    ``complete``: false when a bound was reached, or a directory could not be read; the figures are then lower bounds.
    """

    entries: int = 0
    bytes: int = 0
    newest: float = 0.0
    complete: bool = True


def survey(path: str, *, entries: int = ENTRIES, depth: int = DEPTH, seconds: float = SECONDS) -> Survey:
    """Count what lies below ``path``; a path that is missing has nothing."""
    found = Survey()
    walk = _Walk(found, entries, time.monotonic() + seconds)
    try:
        top = os.open(path, _FLAGS)
    except FileNotFoundError:
        return found
    except OSError:
        found.complete = False
        return found
    walk.directory(top, depth)
    return found


class _Walk:
    def __init__(self, found: Survey, entries: int, end: float) -> None:
        self._found, self._entries, self._end = found, entries, end

    def directory(self, descriptor: int, depth: int) -> None:
        """Count one directory, and close it."""
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    if self._full():
                        return
                    with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                        self._entry(entry, descriptor, depth)
        except OSError:
            self._found.complete = False
        finally:
            os.close(descriptor)

    def _full(self) -> bool:
        if self._found.entries < self._entries and time.monotonic() < self._end:
            return False
        self._found.complete = False
        return True

    def _entry(self, entry: os.DirEntry[str], parent: int, depth: int) -> None:
        stat = entry.stat(follow_symlinks=False)
        self._found.entries += 1
        self._found.bytes += stat.st_blocks * _BLOCK
        self._found.newest = max(self._found.newest, stat.st_mtime)
        if not entry.is_dir(follow_symlinks=False):
            return
        if depth <= 1:
            self._found.complete = False
            return
        self.directory(os.open(entry.name, _FLAGS, dir_fd=parent), depth - 1)

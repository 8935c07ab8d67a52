"""Measures a directory that an agent writes: only names and sizes are read, within fixed bounds.

The agent may be hostile and still running. Links are not followed, only directories are opened, each relative to its
parent, and an endless tree costs no more than the bounds allow.
"""

from __future__ import annotations

import contextlib
import os
import time

ENTRIES = 50_000
DEPTH = 32
SECONDS = 2.0
_BLOCK = 512  # bytes, whatever the file system's own block is: st_blocks
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Survey:
    """``bytes``: space that the files use on the disk. ``newest``: in nanoseconds since the epoch, 0 if there are none.

    ``complete``: false when a bound was reached or a directory could not be read; the figures are then lower bounds.
    """

    def __init__(self) -> None:
        self.entries = self.bytes = self.newest = 0
        self.complete = True


def survey(path: str, *, entries: int = ENTRIES, depth: int = DEPTH, seconds: float = SECONDS) -> Survey:
    """Measure everything below ``path``; a missing path counts as empty."""
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
        self._found.newest = max(self._found.newest, stat.st_mtime_ns)
        if not entry.is_dir(follow_symlinks=False):
            return
        if depth <= 1:
            self._found.complete = False
            return
        self.directory(os.open(entry.name, _FLAGS, dir_fd=parent), depth - 1)

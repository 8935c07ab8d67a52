"""A queue of bytes to be written to a descriptor."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable

JOIN = 2048  # smaller neighbours are joined: a memoryview costs 200 bytes, however short it is
MOST = 512  # pieces for one writev; IOV_MAX is 1024


class Backlog:
    """``pending``: bytes queued. ``done``: bytes written. ``answers``: bytes of podbot's own, until all are written."""

    def __init__(self) -> None:
        self._queue: deque[memoryview] = deque()
        self._behind = 0  # bytes up to the end of the last answer
        self.pending = 0
        self.done = 0
        self.answers = 0

    def push(self, data: memoryview, *, answer: bool = False) -> None:
        """Queue ``data``."""
        size = len(data)
        if not size:
            return
        if self._queue and size + len(self._queue[-1]) <= JOIN:
            self._queue[-1] = memoryview(b"".join((self._queue[-1], data)))
        else:
            self._queue.append(data)
        self.pending += size
        if answer:
            self.answers += size
            self._behind = self.pending

    def first(self) -> memoryview:
        """The next piece. The backlog must not be empty."""
        return self._queue[0]

    def pieces(self) -> Iterable[memoryview]:
        """The next pieces, at most as many as one writev accepts."""
        return itertools.islice(self._queue, MOST)

    def everything(self) -> Iterable[memoryview]:
        """All pieces."""
        return iter(self._queue)

    def taken(self, done: int) -> None:
        """Remove ``done`` bytes, which were written."""
        self.pending -= done
        self.done += done
        if self.answers:
            self._behind -= done
            if self._behind <= 0:
                self.answers = 0
        while done:
            first = self._queue[0]
            if done < len(first):
                self._queue[0] = first[done:]
                return
            done -= len(first)
            self._queue.popleft()

    def clear(self) -> None:
        """Drop everything that is queued."""
        self._queue.clear()
        self.pending = self.answers = self._behind = 0

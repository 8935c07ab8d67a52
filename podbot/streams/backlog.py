"""Bytes that wait for a descriptor, in order."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable

JOIN = 2048  # smaller neighbours are joined: a memoryview costs 200 bytes, however little it shows
MOST = 512  # pieces in one writev; IOV_MAX is 1024


class Backlog:
    """``pending``: bytes waiting; ``done``: bytes gone; ``answers``: bytes of podbot's own, until the last is gone."""

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
        """The next piece; the backlog is not empty."""
        return self._queue[0]

    def pieces(self) -> Iterable[memoryview]:
        """The next pieces, as many as one writev takes."""
        return itertools.islice(self._queue, MOST)

    def taken(self, done: int) -> None:
        """``done`` bytes are written."""
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
        """Forget everything that waits."""
        self._queue.clear()
        self.pending = self.answers = self._behind = 0

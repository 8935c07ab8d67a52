"""Runs blocking calls in worker threads, a few at a time; the loop handles their results."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

from podbot.streams.wake import signals_blocked

Work = Callable[[], Callable[[], None]]
"""Runs in a worker thread and raises nothing; the loop calls what it returns."""


class Jobs:
    """Work queued by lane, so that a slow server delays only its own lane.

    ``start``, ``settle`` and ``close`` belong to the loop's thread. There is no pool: jobs are minutes apart, and
    idle threads would only hold memory.
    """

    def __init__(self, *, per_lane: int, most: int) -> None:
        self._per_lane, self._most = per_lane, most
        self._waiting: dict[str, deque[Work]] = {}
        self._running: dict[str, int] = {}
        self._ends: SimpleQueue[tuple[str, Callable[[], None]]] = SimpleQueue()
        self._read, self._write = os.pipe()
        self._closing = threading.Lock()
        self._closed = False
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def fileno(self) -> int:
        """Readable when a job has ended."""
        return self._read

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""
        return not self._running and not self._waiting

    def start(self, lane: str, work: Work) -> None:
        """Run ``work`` when its lane has room."""
        self._waiting.setdefault(lane, deque()).append(work)
        self._fill()

    def settle(self) -> None:
        """Handle the jobs that have ended, and start those that now have room."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 4096):
                pass
        while True:
            try:
                lane, end = self._ends.get_nowait()
            except Empty:
                break
            self._running[lane] -= 1
            if not self._running[lane]:
                del self._running[lane]
            end()
        self._fill()

    def close(self) -> None:
        """Start nothing more; the results of jobs that still run are dropped."""
        with self._closing:
            if not self._closed:
                self._closed = True
                os.close(self._read)
                os.close(self._write)
        self._waiting.clear()

    def _fill(self) -> None:
        for lane in list(self._waiting):
            waiting = self._waiting[lane]
            while waiting and self._has_room(lane) and self._launch(lane, waiting[0]):
                waiting.popleft()
            if not waiting:
                del self._waiting[lane]

    def _has_room(self, lane: str) -> bool:
        return self._running.get(lane, 0) < self._per_lane and sum(self._running.values()) < self._most

    def _launch(self, lane: str, work: Work) -> bool:
        """False when the system cannot start a thread now; it is tried again at the next settling."""

        def run() -> None:
            end = work()
            self._ends.put((lane, end))
            with self._closing:
                if not self._closed:
                    with contextlib.suppress(BlockingIOError):  # a full pipe is readable already
                        os.write(self._write, b"!")

        # A daemon thread: a server that does not answer must not keep the process from ending.
        thread = threading.Thread(target=run, name=f"podbot-{lane.partition(' ')[0]}", daemon=True)
        try:
            with signals_blocked():
                thread.start()
        except RuntimeError:
            return False
        self._running[lane] = self._running.get(lane, 0) + 1
        return True

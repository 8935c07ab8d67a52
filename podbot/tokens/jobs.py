"""Blocking calls beside one loop: each in a thread of its own, a few at a time, their ends settled by the loop."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

Work = Callable[[], Callable[[], None]]
"""Runs in a thread; what it returns is called by the loop. It raises nothing."""


class Jobs:
    """Work by lanes, so that what waits for one server holds up nothing that waits for another.

    ``start``, ``settle`` and ``close`` belong to the loop's thread. There is no pool: jobs are minutes apart, and
    threads that wait for them would be memory that is held for nothing.
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
        """Readable when something is to be settled."""
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
        """Call what has ended, and start what has room now."""
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
        """Start nothing more; what still runs ends unheard, in its own time."""
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
        """False when the system gives no thread now: at the next settling, then."""

        def run() -> None:
            end = work()
            self._ends.put((lane, end))
            with self._closing:
                if not self._closed:
                    with contextlib.suppress(BlockingIOError):  # a full pipe wakes as well as one more byte
                        os.write(self._write, b"!")

        # A daemon thread: a server that does not answer must not keep the process from ending.
        thread = threading.Thread(target=run, name=f"podbot-{lane.partition(' ')[0]}", daemon=True)
        # Signals stay the loop's: one that the kernel gave to this thread would not wake what the loop waits in.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            thread.start()
        except RuntimeError:
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._running[lane] = self._running.get(lane, 0) + 1
        return True

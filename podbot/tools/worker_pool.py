"""The files workers of one directory: one for short calls, others while a call lasts, such as a search."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from podbot.errors import FileRefused
from podbot.shell.ports import Commands
from podbot.shell.reconnecting import BROKEN, CommandSource
from podbot.tools.worker_process import WorkerProcess

MOST_WORKERS = 4
PATIENCE = 0.1  # seconds that a call waits for a worker before another is started: as long as a start takes


class WorkerPool:
    """Any thread may use it. ``start``: starts a worker, which does one thing at a time.

    ``most``: workers at once; ``patience``: see PATIENCE.
    """

    def __init__(
        self,
        connection: CommandSource,
        start: Callable[[Commands], WorkerProcess],
        *,
        most: int = MOST_WORKERS,
        patience: float = PATIENCE,
    ) -> None:
        self._connection, self._start = connection, start
        self._most, self._patience = most, patience
        self._changed = threading.Condition()
        self._idle: list[WorkerProcess] = []
        self._busy = 0
        self._generation = 0  # how often it was closed

    @contextlib.contextmanager
    def worker(self) -> Iterator[WorkerProcess]:
        """A worker for the block, in which it is given up after any error but a refusal."""
        generation, worker = self._taken()
        kept: WorkerProcess | None = None
        try:
            with self._connection.use() as commands:
                if worker is None or _has_ended(worker):
                    worker = None
                    worker = self._start(commands)
                try:
                    yield worker
                except FileRefused:
                    kept = worker
                    raise
                kept = worker
        except BaseException:  # also an interrupt: its answer would be taken for that to the next request
            if kept is None and worker is not None:
                worker.close()
            raise
        finally:
            self._given_back(generation, kept)

    def close(self) -> None:
        """End the workers; one that is in use ends after its call. The next call starts another."""
        with self._changed:
            self._generation += 1
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()

    def _taken(self) -> tuple[int, WorkerProcess | None]:
        """An idle worker; None where the caller starts one."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle or not self._busy, self._patience)
            self._changed.wait_for(lambda: self._idle or self._busy < self._most)
            self._busy += 1
            return self._generation, self._idle.pop() if self._idle else None

    def _given_back(self, generation: int, worker: WorkerProcess | None) -> None:
        with self._changed:
            self._busy -= 1
            if worker is not None and generation == self._generation:
                self._idle.append(worker)
                worker = None
            self._changed.notify()
        if worker is not None:
            worker.close()


def _has_ended(worker: WorkerProcess) -> bool:
    """Also when its connection is broken: then the connection of this call is another one."""
    try:
        return worker.has_ended()
    except BROKEN:
        return True

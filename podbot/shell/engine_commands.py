"""Runs commands through the engine's execs, for an image without the python3 that a guest needs.

The results are those of a guest, but it is slower. Jobs end when this object is closed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from podbot.engine.port import Engine
from podbot.errors import CommandRefused, PodbotError
from podbot.guest.messages import Ended, GuestCommand, JobOutput, JobState
from podbot.shell.engine_pool import EnginePool
from podbot.shell.engine_running import EngineRunning
from podbot.shell.ports import OnOutput


class EngineCommands:
    """See :class:`~podbot.shell.ports.Commands`. ``connect`` opens an engine, which serves one thread at a time."""

    def __init__(self, connect: Callable[[], Engine], container: str) -> None:
        self._pool = EnginePool(connect)
        self._container = container
        self._jobs: dict[int, EngineJob] = {}
        self._lock = threading.Lock()

    def start(self, command: GuestCommand, on_output: OnOutput | None = None) -> EngineRunning:
        """See Commands. Raises CommandRefused, ShellUnavailable and ContainerError subclasses."""
        if not command.keep:
            return EngineRunning(self._pool, self._container, command, on_output)
        tails = {1: _Tail(command.keep), 2: _Tail(command.keep)}

        def keep(stream: int, data: bytes) -> None:
            tails[stream].take(data)

        running = EngineRunning(self._pool, self._container, command, keep)
        with self._lock:
            running.job = len(self._jobs) + 1
            self._jobs[running.job] = EngineJob(running, command.argv, tails)
        return running

    def jobs(self) -> tuple[JobState, ...]:
        """See Commands."""
        with self._lock:
            jobs = list(self._jobs.values())
        return tuple(job.poll() for job in jobs)

    def attach(self, job_id: int, /) -> EngineJob:
        """See Commands. Raises CommandRefused."""
        with self._lock:
            found = self._jobs.get(job_id)
        if found is None:
            raise CommandRefused(field="job", value=str(job_id), reason="there is no job with that number")
        return found

    def close(self) -> None:
        """Terminate the jobs and close the connections to the engine."""
        with self._lock:
            jobs, self._jobs = list(self._jobs.values()), {}
        for job in jobs:
            job.kill()
        for job in jobs:
            with contextlib.suppress(PodbotError):
                job.wait(10)
        self._pool.close()


class EngineJob:
    """See :class:`~podbot.shell.ports.JobHandle`. A thread reads the job's output."""

    def __init__(self, running: EngineRunning, argv: tuple[str, ...], tails: dict[int, _Tail]) -> None:
        self._running, self._argv, self._tails = running, argv, tails
        self._started = time.time()
        self._ended: Ended | None = None
        self._error: PodbotError | None = None
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def poll(self) -> JobState:
        """See JobHandle. Raises the error that ended the job if the job did not end by itself."""
        if self._error is not None:
            raise self._error
        totals = (self._tails[1].total, self._tails[2].total)
        return JobState(self._running.job, self._argv, self._started, self._ended, totals)

    def output(self, stream: int, offset: int, limit: int) -> JobOutput:
        """See JobHandle."""
        return self._tails[stream].part(offset, limit)

    def wait(self, seconds: float | None = None) -> Ended | None:
        """See JobHandle."""
        self._thread.join(seconds)
        return self.poll().ended

    def signal(self, number: int) -> None:
        """See JobHandle."""
        self._running.signal(number)

    def kill(self) -> None:
        """See JobHandle."""
        self._running.terminate()

    def _drain(self) -> None:
        try:
            self._ended = self._running.wait()
        except PodbotError as exc:
            self._error = exc


class _Tail:
    """The last ``keep`` bytes of a stream."""

    def __init__(self, keep: int) -> None:
        self.total = 0
        self._keep = keep
        self._data = bytearray()
        self._lock = threading.Lock()

    def take(self, data: bytes) -> None:
        with self._lock:
            self.total += len(data)
            self._data += data
            if len(self._data) > 2 * self._keep:
                del self._data[: -self._keep]

    def part(self, offset: int, limit: int) -> JobOutput:
        with self._lock:
            kept = min(len(self._data), self._keep)
            begin = min(max(offset, self.total - kept), self.total)
            at = len(self._data) - (self.total - begin)
            return JobOutput(begin, bytes(self._data[at : at + limit]), self.total)

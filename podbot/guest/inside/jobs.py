"""Jobs: commands whose output the guest keeps, and which continue after the connection that started them is closed."""

from __future__ import annotations

import os
import time

from podbot.guest import frames
from podbot.guest.inside import plain_json
from podbot.guest.inside.guest_command import Command
from podbot.guest.inside.loop import attempt
from podbot.guest.inside.spawn import Refusal
from podbot.guest.inside.standard_streams import Sink

TYPE_CHECKING = False  # the module `typing` costs 0.5 MB
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_AT_ONCE = 64  # jobs that were started and that the guest remembers, running or ended
_LEFT_AT_ONCE = 16  # the same for jobs made of processes that commands left in the background
_KEPT = 16 << 20  # bytes of each stream that one job may keep
_ROOM = 1 << 16
_WAITS = 1024  # requests that may wait for the end of one job
_PAGE = frames.PAYLOAD_LIMIT - 64  # bytes of all jobs in one answer; a single job has little more than 48,000


class Kept:
    """The last bytes of a stream. ``total``: how many bytes the stream has had."""

    def __init__(self, limit: int) -> None:
        self.limit, self.total = limit, 0
        self.data = bytearray()

    def add(self, data: bytes) -> None:
        """Append ``data``, and drop the oldest bytes above the limit."""
        self.total += len(data)
        self.data += data
        if len(self.data) > self.limit:
            del self.data[: len(self.data) - self.limit]

    def read(self, offset: int, limit: int) -> Any:
        """At most ``limit`` bytes from ``offset`` on, after the position at which they begin in the stream."""
        first = self.total - len(self.data)
        begin = min(max(offset, first), self.total)
        return begin, bytes(self.data[begin - first : begin - first + limit])


class Job(Sink):
    """A job. ``outcome``: how it ended; None while it runs. ``left``: made of processes that a command left."""

    def __init__(self, number: int, argv: list[str], keep: int, on_input: Callable[[int], None] | None = None) -> None:
        self.number, self.argv = number, argv
        self.streams = {1: Kept(keep), 2: Kept(keep)}
        self.left = on_input is None
        self.outcome: dict[str, Any] | None = None
        self.command: Command | None = None
        self.started = time.time()
        self.waiting: dict[tuple[object, int], Callable[[dict[str, Any]], None]] = {}
        self.on_input = on_input

    def room(self) -> int:
        """See Sink. There is always room, because the oldest output is dropped."""
        return _ROOM

    def output(self, stream: int, data: bytes) -> None:
        """See Sink."""
        self.streams[stream].add(data)

    def took_input(self, size: int) -> None:
        """See Sink."""
        if self.on_input is not None:
            self.on_input(size)

    def ended(self, outcome: dict[str, Any]) -> None:
        """See Sink."""
        self.outcome = outcome
        waiting, self.waiting = self.waiting, {}
        for report in waiting.values():
            attempt(None, report, outcome)

    def call_at_end(self, key: tuple[object, int], report: Callable[[dict[str, Any]], None]) -> None:
        """Call ``report`` when the job ends. ``key``: the connection that waits, and an id. Raises Refusal."""
        if len(self.waiting) >= _WAITS:
            raise Refusal("job", str(self.number), f"{_WAITS} requests already wait for its end")
        self.waiting[key] = report

    def described(self) -> dict[str, Any]:
        """The job as JSON values. A long command is cut to its beginning."""
        totals = [self.streams[1].total, self.streams[2].total]
        words = [word[:200] for word in self.argv[:20]]
        return {"job": self.number, "argv": words, "started": self.started, "ended": self.outcome, "totals": totals}


class Jobs:
    """All jobs of a guest."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        # A sandbox that is started again has another guest, and no job of the first one's may be taken for one of its.
        self._count = int.from_bytes(os.urandom(4), "big") * 1000

    def add(self, spec: dict[str, Any], on_input: Callable[[int], None]) -> Job:
        """Register a job; the caller then starts its command. Raises Refusal."""
        if not 0 < spec["keep"] <= _KEPT:
            raise Refusal("keep", str(spec["keep"]), f"a job keeps 1 to {_KEPT} bytes of each stream")
        if not self._has_room(_AT_ONCE, left=False):
            raise Refusal("keep", str(spec["keep"]), f"{_AT_ONCE} jobs are already running")
        self._count += 1
        job = self._jobs[self._count] = Job(self._count, spec["argv"], spec["keep"], on_input)
        return job

    def adopt(self, argv: list[str], keep: int) -> Job | None:
        """Register a job made of processes that a command left. Returns None if too many of these run."""
        if not self._has_room(_LEFT_AT_ONCE, left=True):
            return None
        self._count += 1
        job = self._jobs[self._count] = Job(self._count, argv, min(keep, _KEPT))
        return job

    def _has_room(self, most: int, *, left: bool) -> bool:
        """Whether one more job may run. If there are ``most``, the oldest one that has ended is forgotten.

        Jobs made of what commands left are counted separately, so that they never take the place of a started job. Of
        these, one that printed nothing is forgotten first: it often was a process that ended right after its parent.
        """
        alike = [job for job in self._jobs.values() if job.left == left]
        ended = [job for job in alike if job.outcome is not None]
        silent = [job for job in ended if left and not job.streams[1].total + job.streams[2].total]
        if len(alike) >= most and ended:
            del self._jobs[(silent or ended)[0].number]
        return len(alike) < most or bool(ended)

    def get(self, number: Any) -> Job:
        """The job with that number. Raises Refusal."""
        job = self._jobs.get(number)
        if job is None:
            raise Refusal("job", str(number), "there is no such job")
        return job

    def forget(self, number: Any) -> None:
        """Delete a job that has ended. Does nothing for a running or unknown job."""
        job = self._jobs.get(number)
        if job is not None and job.outcome is not None:
            del self._jobs[number]

    def withdraw(self, number: Any, key: tuple[object, int]) -> None:
        """Cancel a wait for the end of a job, if there is one."""
        job = self._jobs.get(number)
        if job is not None:
            job.waiting.pop(key, None)

    def withdraw_all(self, connection: object) -> None:
        """Cancel all waits of a connection that is closed."""
        for job in self._jobs.values():
            job.waiting = {key: report for key, report in job.waiting.items() if key[0] is not connection}

    def page(self, after: int) -> dict[str, Any]:
        """The jobs with numbers above ``after``, in order, as many as one frame holds, and whether there are more."""
        found: list[dict[str, Any]] = []
        size = 0
        for number, job in self._jobs.items():
            if number <= after:
                continue
            found.append(job.described())
            size += len(plain_json.dumps(found[-1])) + 2
            if size > _PAGE:
                found.pop()
                return {"jobs": found, "more": True}
        return {"jobs": found, "more": False}

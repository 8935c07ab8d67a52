"""podbot's side of a guest's jobs: commands that continue without a channel."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from podbot.errors import CommandRefused
from podbot.guest import frames
from podbot.guest.exchange import Exchange
from podbot.guest.messages import (
    Ended,
    JobOutput,
    JobState,
    Malformed,
    job_from,
    jobs_from,
    output_from,
    parsed,
    refusal,
)
from podbot.guest.running import signal_number

_T = TypeVar("_T")
_JOBS = 256  # that podbot accepts in a list; a guest has at most 80


class Answer:
    """Waits for the one frame that answers a request."""

    def __init__(self, exchange: Exchange, kind: int) -> None:
        self.ready = threading.Condition(exchange.lock)
        self._exchange, self._kind = exchange, kind
        self._payload: bytes | None = None
        self._refused: CommandRefused | None = None
        self.id = exchange.register(self)

    def take(self, kind: int, payload: bytes) -> bool:
        """See Receiver."""
        if kind == self._kind:
            self._payload = payload
        elif kind == frames.REFUSED:
            self._refused = refusal(payload)
        else:
            return False
        self._exchange.forget(self.id)
        self.ready.notify_all()
        return True

    def wait(self, seconds: float | None) -> bytes | None:
        """The payload of the answer; None after ``seconds``. Raises CommandRefused and ChannelLost."""
        until = None if seconds is None else time.monotonic() + seconds
        try:
            with self._exchange.lock:
                there = self._exchange.wait(self, self._is_there, until)
        finally:
            self._exchange.forget(self.id)
        if self._refused is not None:
            raise self._refused
        return self._payload if there else None

    def _is_there(self) -> bool:
        return self._payload is not None or self._refused is not None


def ask(exchange: Exchange, request: Mapping[str, object], kind: int, read: Callable[[bytes], _T]) -> _T:
    """Send a request and return its answer, read by ``read``. Raises CommandRefused and ChannelLost."""
    answer = Answer(exchange, kind)
    exchange.send(frames.JOB, answer.id, json.dumps(request).encode("ascii"))
    payload = answer.wait(exchange.patience.answer)
    if payload is None:
        raise exchange.fail(f"it did not answer within {exchange.patience.answer:g} s")
    try:
        return read(payload)
    except Malformed as exc:
        raise exchange.fail(f"it sent an invalid message ({exc})") from None


def listed(exchange: Exchange) -> tuple[JobState, ...]:
    """See Channel.jobs. The guest sends the list in parts, each of which fits in a frame."""
    found: list[JobState] = []
    more = True
    while more:
        after = found[-1].job if found else 0
        part, more = ask(exchange, {"op": "list", "after": after}, frames.JOB_ANSWER, jobs_from)
        if part and part[0].job <= after:
            raise exchange.fail("it sent an invalid message (it repeats jobs)")
        found += part
        if len(found) > _JOBS:
            raise exchange.fail(f"it sent more than {_JOBS} jobs")
    return tuple(found)


class Job:
    """One job, whichever channel started it.

    Every method raises ChannelLost, and CommandRefused when the job no longer exists.
    """

    def __init__(self, exchange: Exchange, number: int) -> None:
        self._exchange, self.number = exchange, number

    def poll(self) -> JobState:
        """The job's present state."""
        return self._do("poll")

    def output(self, stream: int, offset: int, limit: int = frames.PAYLOAD_LIMIT) -> JobOutput:
        """The job's output on ``stream`` (1 or 2) from ``offset`` on; fewer than ``limit`` bytes do not mean its end.

        The guest keeps only the latest bytes; if ``offset`` lies before them, the answer begins after ``offset``.
        """
        request = {"op": "output", "job": self.number, "stream": stream, "offset": offset, "limit": limit}
        return ask(self._exchange, request, frames.JOB_DATA, output_from)

    def wait(self, seconds: float | None = None) -> Ended | None:
        """Wait for the job's end; returns how it ended, or None after ``seconds``."""
        answer = Answer(self._exchange, frames.JOB_ANSWER)
        self._send("wait", answer.id)
        payload = answer.wait(seconds)
        if payload is None:
            self._send("withdraw", answer.id)
            return None
        try:
            return job_from(parsed(payload)).ended
        except Malformed as exc:
            raise self._exchange.fail(f"it sent an invalid message ({exc})") from None

    def signal(self, number: int) -> None:
        """Send a signal (1 to 64) to the job's process group. Raises CommandRefused for any other number."""
        self._do("signal", number=signal_number(number))

    def kill(self) -> None:
        """Terminate all its processes: TERM, its grace, KILL. :meth:`wait` returns when they have ended."""
        self._do("terminate")

    def forget(self) -> None:
        """Delete the ended job and its output in the guest. Does nothing while the job runs."""
        self._do("forget")

    def _send(self, operation: str, ident: int) -> None:
        request = {"op": operation, "job": self.number}
        self._exchange.send(frames.JOB, ident, json.dumps(request).encode("ascii"))

    def _do(self, operation: str, **more: object) -> JobState:
        request = {"op": operation, "job": self.number, **more}
        return ask(self._exchange, request, frames.JOB_ANSWER, lambda payload: job_from(parsed(payload)))

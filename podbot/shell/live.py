"""A command whose caller reads its output while it runs, and the output that the caller has not read yet."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Self

from podbot.errors import CommandSurvived
from podbot.guest.messages import Ended, GuestCommand
from podbot.shell.call import Call
from podbot.shell.ports import OnOutput, RunningCommand
from podbot.shell.reconnecting import BROKEN

Watch = Callable[[], AbstractContextManager[None]]
Start = Callable[[GuestCommand, OnOutput], tuple[RunningCommand, Watch]]
_MOST_CHUNKS = 16  # of at most 64 KiB: unread output, above which a writer takes no more from the sandbox


class Live:
    """A running command. Output that is not read stays inside the sandbox, so the command waits for a slow reader."""

    def __init__(self, call: Call, start: Start, *, kill_seconds: float = 10.0) -> None:
        """``start`` starts the command and also returns a context manager, which is entered for each wait.

        ``kill_seconds``: after KILL, within which the command's end must be reported.
        """
        self.call = call
        self.ended: Ended | None = None
        self._kill_seconds = kill_seconds
        self._abandoned = False
        self._chunks: deque[tuple[int, bytes]] = deque()
        self.running, self._watch = start(call.command, self._take)

    def next(self, seconds: float | None) -> tuple[int, bytes] | None:
        """The next piece of output; None at the end and when the time has passed. Raises ContainerError subclasses."""
        self.await_output(seconds)
        return self.taken()

    def await_output(self, seconds: float | None) -> bool:
        """Wait until there is output to take or the command has ended; False when the time has passed first.

        Raises CommandSurvived, once, if the command's end left processes that survived KILL, and always if its end was
        not reported in time; ContainerError subclasses.
        """
        if self._abandoned and not self._chunks:
            raise self.call.survived()
        if not self._chunks and self.ended is None:
            with self._watch():
                ended = self.running.wait(seconds, until=self._has_output)
            if not self._chunks and ended is not None:  # all output is delivered before the end
                self.ended = self.call.with_disks(ended)
                self.call.check_survivors(ended)
        return bool(self._chunks) or self.ended is not None

    def taken(self) -> tuple[int, bytes] | None:
        """A piece of output that has arrived, without waiting; None when there is none."""
        try:
            return self._chunks.popleft()
        except IndexError:
            return None

    def end(self) -> None:
        """Send TERM and, after the command's grace, KILL; output is dropped meanwhile. Raises CommandSurvived, once."""
        if self.ended is not None or self._abandoned:
            return
        self.running.terminate()
        if not self.drop_output(self.call.command.term_grace + self._kill_seconds):
            self._abandoned = True
            self.running.abandon()
            raise self.call.survived()

    def close(self) -> None:
        """Terminate the command if it runs. A broken connection is not reported as an error. Raises CommandSurvived."""
        try:
            self.end()
        except CommandSurvived:
            raise
        except BROKEN:
            pass

    def drop_output(self, seconds: float | None) -> bool:
        """Wait for the command's end and drop its output; False when the time has passed first."""
        end = None if seconds is None else time.monotonic() + seconds
        while self.ended is None:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            self.next(left)
        return self.ended is not None

    def write(self, data: bytes) -> None:
        """Write to stdin; waits while the command reads nothing, or prints more than is kept for the reader."""
        self.running.write(data, until=self._is_full)

    def _is_full(self) -> bool:
        return len(self._chunks) >= _MOST_CHUNKS

    def _take(self, stream: int, data: bytes) -> None:
        if data:
            self._chunks.append((stream, bytes(data)))

    def _has_output(self) -> bool:
        return bool(self._chunks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

"""A ``Commands`` whose commands do what a test says, for a shell in front of it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from podbot.guest.messages import Ended, GuestCommand, JobState
from podbot.shell.podman_shell import PodmanShell
from podbot.shell.ports import JobHandle, OnOutput

ENDED = Ended(0, None, False, False, 0.1)
TERMINATED = Ended(143, 15, False, False, 0.1)


class ScriptedRunning:
    """A command. ``output``: delivered in order by ``wait``; then it has ended as ``ended`` says.

    ``ended`` None: it ends when it is terminated, unless ``ends_when_terminated`` is false.
    """

    job = 0

    def __init__(self, command: GuestCommand, on_output: OnOutput | None) -> None:
        self.command, self.on_output = command, on_output
        self.output: deque[tuple[int, bytes]] = deque()
        self.ended: Ended | None = ENDED
        self.written = b""
        self.error: Exception | None = None
        self.error_of_write: Exception | None = None
        self.has_written = threading.Event()
        self.signals: list[int] = []
        self.terminated = threading.Event()
        self.abandoned = False
        self.ends_when_terminated = True

    def write(self, data: bytes, *, until: Callable[[], bool] | None = None, seconds: float | None = None) -> bool:
        while self.output and until is not None and not until():
            self._deliver()
        self.has_written.set()
        if self.error_of_write is not None:
            raise self.error_of_write
        self.written += data
        return True

    def close_stdin(self) -> None: ...

    def signal(self, number: int) -> None:
        self.signals.append(number)

    def terminate(self) -> None:
        self.terminated.set()

    def abandon(self) -> None:
        self.abandoned = True

    def resize(self, columns: int, rows: int) -> None: ...

    def wait(self, seconds: float | None = None, *, until: Callable[[], bool] | None = None) -> Ended | None:
        if self.error is not None:
            raise self.error
        while self.output:
            self._deliver()
            if until is not None and until():
                return None
        if self.ended is None and self.terminated.wait(seconds) and self.ends_when_terminated:
            self.ended = TERMINATED
        return self.ended

    def _deliver(self) -> None:
        piece = self.output.popleft()
        if self.on_output is not None:
            self.on_output(*piece)


class ScriptedCommands:
    """``prepare``: called with each command when it is started; an exception from it is the start's."""

    def __init__(self, prepare: Callable[[ScriptedRunning], None] = lambda _running: None) -> None:
        self.prepare = prepare
        self.started: list[ScriptedRunning] = []
        self.closed = 0

    def start(self, command: GuestCommand, on_output: OnOutput | None = None) -> ScriptedRunning:
        running = ScriptedRunning(command, on_output)
        self.started.append(running)
        self.prepare(running)
        return running

    def jobs(self) -> tuple[JobState, ...]:
        return ()

    def attach(self, job_id: int, /) -> JobHandle:
        raise NotImplementedError

    def close(self) -> None:
        self.closed += 1


def shell_on(*commands: ScriptedCommands) -> PodmanShell:
    """A shell that uses ``commands`` for one connection after another."""
    left = list(commands)
    return PodmanShell(lambda: left.pop(0), container="box", root="/work", validator=None)

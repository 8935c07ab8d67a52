"""The interface between a shell and the object that runs its commands: a guest's channel, or the engine's execs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from podbot.guest.messages import Ended, GuestCommand, JobOutput, JobState

OnOutput = Callable[[int, bytes], None]


class RunningCommand(Protocol):
    """A command that was started.

    :meth:`wait` and :meth:`write` deliver its output; while neither is called, the command blocks when it prints more
    than its buffers hold.
    """

    @property
    def job(self) -> int:
        """The job's number, or 0 if the command is not a job."""
        ...

    def write(self, data: bytes, *, until: Callable[[], bool] | None = None, seconds: float | None = None) -> bool:
        """Write to stdin, and wait until all of it is accepted. Does nothing once the command has closed its stdin.

        Returns False if not all was accepted within ``seconds``; the command may then have got a part of it.
        While ``until`` holds, it delivers no output; then a command that prints before it reads needs another thread
        that takes the output and calls :meth:`wait`.
        """
        ...

    def close_stdin(self) -> None: ...

    def signal(self, number: int) -> None:
        """Send a signal to the command's process group at least."""
        ...

    def terminate(self) -> None:
        """Terminate all its processes: TERM, the grace, KILL. ``wait`` still reports the end."""
        ...

    def abandon(self) -> None:
        """Terminate it without waiting: its output and its end are dropped, and ``wait`` must not be called any more.

        What podbot and the sandbox hold for the command is released once it has ended. A job continues.
        """
        ...

    def resize(self, columns: int, rows: int) -> None: ...

    def wait(self, seconds: float | None = None, *, until: Callable[[], bool] | None = None) -> Ended | None:
        """How it ended, after all output was delivered; None after ``seconds``, or as soon as ``until`` holds.

        ``until`` may also hold because another thread delivered output in :meth:`write`.
        """
        ...


class JobHandle(Protocol):
    """A job, whichever process started it. Every method raises CommandRefused when it no longer exists."""

    def poll(self) -> JobState: ...

    def output(self, stream: int, offset: int, limit: int) -> JobOutput: ...

    def wait(self, seconds: float | None = None) -> Ended | None: ...

    def signal(self, number: int) -> None: ...

    def kill(self) -> None:
        """Terminate all its processes: TERM, the grace, KILL."""
        ...


class Commands(Protocol):
    """Runs commands. Any thread may call it, several at once. Raises ContainerError or GuestError when it is broken."""

    def start(self, command: GuestCommand, on_output: OnOutput | None = None) -> RunningCommand:
        """Start a command; ``on_output`` receives stream numbers and bytes. Raises CommandRefused subclasses."""
        ...

    def jobs(self) -> tuple[JobState, ...]: ...

    def attach(self, job_id: int, /) -> JobHandle:
        """A job by its number. Raises CommandRefused for an unknown job."""
        ...

    def close(self) -> None: ...

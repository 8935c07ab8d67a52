"""The protocols of a shell, and the values that its calls return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from podbot.execution.result import BytesResult, ExecutionResult
from podbot.guest.messages import Cause

__all__ = [
    "BytesResult",
    "Cause",
    "Chunk",
    "Command",
    "CommandStream",
    "EnvMode",
    "EnvironmentSnapshot",
    "ExecutionResult",
    "Job",
    "JobOutput",
    "JobShell",
    "JobState",
    "Shell",
    "StreamName",
    "TerminalSession",
    "WhichResult",
]

Command = str | Sequence[str]
EnvMode = Literal["replace", "extend"]
StreamName = Literal["stdout", "stderr"]


@dataclass(slots=True, frozen=True)
class WhichResult:
    """The location of a program. ``path``: absolute; None when there is no program with that name."""

    command: str
    path: str | None

    @property
    def found(self) -> bool:
        """Whether the program exists."""
        return self.path is not None


@dataclass(slots=True, frozen=True)
class EnvironmentSnapshot:
    """A command's environment: its variables, its directory, and the program that runs commands given as strings."""

    variables: tuple[tuple[str, str], ...]
    cwd: str
    shell: str

    def get(self, name: str, default: str | None = None) -> str | None:
        """The value of a variable."""
        return next((value for key, value in self.variables if key == name), default)

    def to_dict(self) -> dict[str, str]:
        """The variables as a dictionary of the caller's own."""
        return dict(self.variables)


@dataclass(slots=True, frozen=True)
class Chunk:
    """Bytes that a command printed, at most 64 KiB."""

    stream: StreamName
    data: bytes


@dataclass(slots=True, frozen=True)
class JobState:
    """A background command. ``exit_code`` is None while it runs; otherwise as in ExecutionResult.

    ``command``: its first words, each cut after 200 characters; a string was run by ``/bin/sh -c``.

    ``survivors``: the number of its processes that KILL did not end; they wait in the kernel and may run again.
    ``disk_full``: of the sandbox's own files; the workspace's file system is not checked when a job ends.
    ``left_job``, ``cause``: as in ExecutionResult. A job of what a command left has that command's status.
    """

    id: str
    running: bool
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    out_of_memory: bool = False
    survivors: int = 0
    memory_kills: int = 0
    forks_refused: int = 0
    disk_full: bool = False
    left_job: str | None = None
    command: tuple[str, ...] = ()
    cause: Cause = ""


@dataclass(slots=True, frozen=True)
class JobOutput:
    """Part of a job's output. ``data`` begins at byte ``offset`` of the stream; read on at ``next_offset``.

    ``dropped``: bytes between the requested offset and ``offset``, which are no longer kept.
    ``complete``: the job has ended and has no output after ``next_offset``.
    """

    data: bytes
    offset: int
    next_offset: int
    dropped: int
    complete: bool


class Shell(Protocol):
    """Runs commands with a time limit and bounded output. Arguments, limits and errors: :class:`CommandShell`."""

    def execute(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_mode: EnvMode = "extend",
        stdin: str | None = None,
        timeout_seconds: float | None = None,
        capture_output: bool = True,
    ) -> ExecutionResult:
        """Run a command to its end. A string is run by ``/bin/sh -c``, a sequence as program and arguments.

        ``timeout_seconds`` None: the shell's ``default_timeout``.

        Raises ValueError (command, timeout, environment, stdin or cwd is not valid), PermissionError (blocked by the
        validator) and RuntimeError (the backend that runs the commands is broken). A command that fails, is missing
        (127) or takes too long is reported as a result, not as an error.
        """
        ...

    def execute_script(
        self,
        script: str,
        *,
        interpreter: str = "/bin/bash",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_mode: EnvMode = "extend",
        timeout_seconds: float | None = None,
        capture_output: bool = True,
    ) -> ExecutionResult:
        """Run a script with ``interpreter``, which must exist. Raises the same errors as :meth:`execute`."""
        ...

    def which(self, command: str) -> WhichResult:
        """Look a program up in PATH."""
        ...

    def env(self) -> EnvironmentSnapshot:
        """The environment of commands."""
        ...

    @property
    def backend_name(self) -> str:
        """Such as "podman", "host" or "mock"."""
        ...

    @property
    def sandboxed(self) -> bool:
        """Whether commands are isolated from this machine."""
        ...

    @property
    def network_enabled(self) -> bool:
        """Whether commands have a network."""
        ...

    @property
    def default_timeout(self) -> float:
        """The time limit, in seconds, of a command whose caller names none."""
        ...


class CommandStream(Protocol):
    """A running command whose output is iterated over. As a context manager, it terminates the command on exit."""

    def __iter__(self) -> Iterator[Chunk]: ...
    def __enter__(self) -> CommandStream: ...  # noqa: PYI034 - mypy takes no Self here
    def __exit__(self, *exc: object) -> None: ...

    @property
    def result(self) -> BytesResult:
        """The command's result, with empty streams. Raises ValueError before the iteration has ended."""
        ...

    def signal(self, number: int) -> None:
        """Send it a signal."""
        ...

    def terminate(self) -> None:
        """Begin to end it (TERM, 2 s, KILL), from any thread; the iteration goes on to its end."""
        ...

    def close(self) -> None:
        """End it (TERM, 2 s, KILL) if it runs."""
        ...


class TerminalSession(Protocol):
    """A command on its own terminal."""

    def __enter__(self) -> TerminalSession: ...  # noqa: PYI034 - as above
    def __exit__(self, *exc: object) -> None: ...

    def read(self, timeout_seconds: float | None = None) -> bytes:
        """Its new output, at least one byte; ``b""`` when the command has ended or the time has passed."""
        ...

    def write(self, data: bytes) -> None:
        """Type ``data``; waits while the command reads nothing. About 1 MiB of output is kept for the reader meanwhile.

        So a command that prints that much before it reads needs another thread that reads.
        """
        ...

    def resize(self, columns: int, rows: int) -> None:
        """Change the terminal's size."""
        ...

    def signal(self, number: int) -> None:
        """Send it a signal."""
        ...

    def wait(self, timeout_seconds: float | None = None) -> BytesResult | None:
        """The command's result, with empty streams; None when the time has passed first."""
        ...

    def close(self) -> None:
        """End it (TERM, 2 s, KILL) if it runs."""
        ...


class Job(Protocol):
    """A command in the background."""

    @property
    def id(self) -> str:
        """The job's id: an argument of :meth:`JobShell.job`, also in another process."""
        ...

    def poll(self) -> JobState:
        """The job's present state."""
        ...

    def output(self, offset: int = 0, *, stream: StreamName = "stdout", limit: int = 65536) -> JobOutput:
        """At most ``limit`` bytes of the output so far, from byte ``offset`` on."""
        ...

    def wait(self, timeout_seconds: float | None = None) -> JobState:
        """Wait until the job has ended or the time has passed; returns its state."""
        ...

    def kill(self, number: int | None = None) -> None:
        """Send a signal to the job; None terminates all its processes: TERM, 2 s, KILL."""
        ...


@runtime_checkable
class JobShell(Shell, Protocol):
    """A shell with bytes, streams, jobs and terminals. Any thread may call it, and several commands may run at once."""

    def execute_bytes(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_mode: EnvMode = "extend",
        stdin: bytes | None = None,
        timeout_seconds: float | None = None,
    ) -> BytesResult:
        """As ``execute``, with bytes in and out."""
        ...

    def stream(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_mode: EnvMode = "extend",
        stdin: bytes | None = None,
        timeout_seconds: float | None = None,
    ) -> CommandStream:
        """Start a command whose output is iterated over while it runs. The command waits for a slow reader."""
        ...

    def start(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_mode: EnvMode = "extend",
        timeout_seconds: float | None = None,
    ) -> Job:
        """Start a command in the background. ``timeout_seconds`` None means no time limit."""
        ...

    def job(self, ident: str) -> Job:
        """A job by its id. Raises ValueError for an unknown job."""
        ...

    def jobs(self) -> tuple[JobState, ...]:
        """All jobs, the oldest first."""
        ...

    def terminal(
        self,
        command: Command,
        *,
        columns: int = 80,
        rows: int = 24,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        env_mode: EnvMode = "extend",
        timeout_seconds: float | None = None,
    ) -> TerminalSession:
        """Start a command on its own terminal."""
        ...

"""A shell that also captures output past the budget of a command's result."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from podbot.mcp.kept_output import PIECE_BYTES
from podbot.shell.cancellation import waiting_for
from podbot.shell.output_budget import STDERR, STDOUT, OutputBudget
from podbot.shell.types import (
    Command,
    EnvironmentSnapshot,
    EnvMode,
    ExecutionResult,
    JobShell,
    StreamName,
    WhichResult,
)
from podbot.tools.tool_limits import SUITE_SHELL_LIMITS

_NUMBERS = {"stdout": STDOUT, "stderr": STDERR}


@dataclass(slots=True)
class Captured:
    """The output of the commands of one call: the first MiB of each stream, and how many bytes it had.

    ``left_jobs``: ids of jobs, see ExecutionResult.
    """

    first: dict[StreamName, bytearray] = field(default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()})
    total: dict[StreamName, int] = field(default_factory=lambda: {"stdout": 0, "stderr": 0})
    left_jobs: list[str] = field(default_factory=list)

    def take(self, stream: StreamName, data: bytes) -> None:
        """Add output."""
        first = self.first[stream]
        self.total[stream] += len(data)
        first += data[: PIECE_BYTES - len(first)]


CAPTURED: ContextVar[Captured | None] = ContextVar("podbot_mcp_captured", default=None)
"""Where a call's output goes; None: nowhere."""


class KeepingShell:
    """A :class:`~podbot.shell.types.Shell` on another one. Its results are the same; see :data:`CAPTURED`."""

    def __init__(self, shell: JobShell) -> None:
        self._shell = shell

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
        """See :meth:`Shell.execute`."""
        captured = CAPTURED.get()
        if captured is None or not capture_output:
            return self._shell.execute(
                command, cwd=cwd, env=env, env_mode=env_mode, stdin=stdin, timeout_seconds=timeout_seconds,
                capture_output=capture_output,
            )  # fmt: skip
        budget = OutputBudget(SUITE_SHELL_LIMITS.output_bytes)
        data = None if stdin is None else stdin.encode()
        with self._shell.stream(
            command, cwd=cwd, env=env, env_mode=env_mode, stdin=data, timeout_seconds=timeout_seconds
        ) as stream:
            with waiting_for(stream):  # so that a cancelled call ends its command
                for chunk in stream:
                    budget.take(_NUMBERS[chunk.stream], chunk.data)
                    captured.take(chunk.stream, chunk.data)
            ended = stream.result
        if ended.left_job is not None:
            captured.left_jobs.append(ended.left_job)
        kept = budget.kept()
        return ExecutionResult(
            exit_code=ended.exit_code,
            stdout=kept.stdout,
            stderr=kept.stderr,
            command=ended.command,
            cwd=ended.cwd,
            duration_seconds=ended.duration_seconds,
            truncated=kept.truncated,
            timed_out=ended.timed_out,
            signal=ended.signal,
            out_of_memory=ended.out_of_memory,
            memory_kills=ended.memory_kills,
            forks_refused=ended.forks_refused,
            disk_full=ended.disk_full,
            left_job=ended.left_job,
            cause=ended.cause,
        )

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
        """See :meth:`Shell.execute_script`; captures nothing."""
        return self._shell.execute_script(
            script, interpreter=interpreter, cwd=cwd, env=env, env_mode=env_mode, timeout_seconds=timeout_seconds,
            capture_output=capture_output,
        )  # fmt: skip

    def which(self, command: str) -> WhichResult:
        """See :meth:`Shell.which`."""
        return self._shell.which(command)

    def env(self) -> EnvironmentSnapshot:
        """See :meth:`Shell.env`."""
        return self._shell.env()

    @property
    def backend_name(self) -> str:
        """See :attr:`Shell.backend_name`."""
        return self._shell.backend_name

    @property
    def sandboxed(self) -> bool:
        """See :attr:`Shell.sandboxed`."""
        return self._shell.sandboxed

    @property
    def network_enabled(self) -> bool:
        """See :attr:`Shell.network_enabled`."""
        return self._shell.network_enabled

    @property
    def default_timeout(self) -> float:
        """See :attr:`Shell.default_timeout`."""
        return self._shell.default_timeout

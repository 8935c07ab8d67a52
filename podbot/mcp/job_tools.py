"""The tools for commands in the background: job_start, job_output, job_list and job_kill."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from podbot.shell.cancellation import CALL
from podbot.shell.output_budget import whole_characters
from podbot.shell.types import Job, JobShell, JobState
from podbot.tools import tool_limits as limits
from podbot.tools.constraints import Choice, PathText, Seconds, Text, Variables, Whole, Words, param
from podbot.tools.contract import AnyTool, Tool, ToolAnnotations, ToolContext, ToolResult
from podbot.tools.paths import path_text
from podbot.tools.rendering import EMPTY
from podbot.tools.shell_tools import working_directory
from podbot.tools.tool_failures import settled
from podbot.visible_text import printable

OUTPUT_BYTES = 32 * 1024
WAIT_SECONDS = (0.0, 60.0)
JOB_SECONDS = (1.0, 600.0)
_SLICE = 0.25  # seconds, after which a waiting call looks whether it was cancelled
_COMMAND = 80  # characters of a job's command that are shown
_READS = ToolAnnotations(read_only=True, idempotent=True)
_ID = param(Text(20, least=1, ascii_only=True), "The job's id, from job_start or job_list.")


@dataclass(frozen=True, slots=True)
class JobStartParams:
    """Of ``job_start``."""

    command: tuple[str, ...] = param(
        Words(limits.COMMAND_CHARS), 'The program and its arguments; a line of a shell is ["sh", "-c", LINE].'
    )
    cwd: str | None = param(
        PathText(), "The working directory, relative to the workspace; the workspace if missing.",
        default=None, nullable=True,
    )  # fmt: skip
    env: Mapping[str, str] = param(
        Variables(limits.ENV_VARIABLES, limits.ENV_NAME_CHARS), "Additional variables.", default_factory=dict
    )
    timeout_seconds: float | None = param(
        Seconds(*JOB_SECONDS), "Its time limit in seconds, from 1 to 600; none if missing.", default=None, nullable=True
    )


@dataclass(frozen=True, slots=True)
class JobOutputParams:
    """Of ``job_output``."""

    job: str = _ID
    stream: Literal["stdout", "stderr"] = param(Choice(("stdout", "stderr")), "Which output.", default="stdout")
    offset: int = param(Whole(0), "The byte to begin at: 0, or the next_offset of the last call.", default=0)
    limit: int = param(
        Whole(1, OUTPUT_BYTES, clamped=True), f"The most bytes to return; never more than {OUTPUT_BYTES:,}.",
        default=OUTPUT_BYTES,
    )  # fmt: skip
    wait_seconds: float = param(
        Seconds(*WAIT_SECONDS), "Wait for the job's end before, at most this long: from 0 to 60.", default=0.0
    )


@dataclass(frozen=True, slots=True)
class JobListParams:
    """Of ``job_list``."""


@dataclass(frozen=True, slots=True)
class JobKillParams:
    """Of ``job_kill``."""

    job: str = _ID


@dataclass(frozen=True, slots=True)
class JobInfo:
    """A job. ``command``: shortened. ``exit_code``: null while it runs; 124 after its time limit (``timed_out``)."""

    job: str
    command: str
    running: bool
    exit_code: int | None
    timed_out: bool


@dataclass(frozen=True, slots=True)
class JobListing:
    """All jobs of a sandbox, the oldest first."""

    jobs: tuple[JobInfo, ...]


@dataclass(frozen=True, slots=True)
class JobText:
    """Some of a job's output. ``text`` begins at byte ``offset``; read on at ``next_offset``.

    ``dropped``: bytes before it that are no longer kept. ``complete``: the job has ended, and nothing follows.
    """

    job: JobInfo
    stream: Literal["stdout", "stderr"]
    text: str
    offset: int
    next_offset: int
    dropped: int
    complete: bool


class JobTools:
    """The four tools on one shell, whose root is the workspace. Jobs end with the sandbox."""

    def __init__(self, shell: JobShell) -> None:
        self._shell = shell

    def tools(self) -> tuple[AnyTool, ...]:
        """The tools, each under its name."""
        return (
            Tool(
                name="job_start",
                description="Start a command in the background, such as a server or a long build, and return its id. "
                "Read what it prints with job_output. It ends with the sandbox.",
                params_type=JobStartParams,
                result_type=JobInfo,
                handler=self._start,
                annotations=ToolAnnotations(destructive=True),
            ),
            Tool(
                name="job_output",
                description="Read what a job has printed, and whether it has ended. "
                "The last MiB of each stream is kept.",
                params_type=JobOutputParams,
                result_type=JobText,
                handler=self._output,
                annotations=_READS,
            ),
            Tool(
                name="job_list",
                description="List the jobs of the sandbox. "
                "Processes that a command left in the background with its stdout or stderr open are a job too.",
                params_type=JobListParams,
                result_type=JobListing,
                handler=self._list,
                annotations=_READS,
            ),
            Tool(
                name="job_kill",
                description="End a job and all its processes: TERM, and KILL after 2 seconds.",
                params_type=JobKillParams,
                result_type=JobInfo,
                handler=self._kill,
                annotations=ToolAnnotations(destructive=True, idempotent=True),
            ),
        )

    def _start(self, params: JobStartParams, /, *, context: ToolContext) -> ToolResult[JobInfo]:
        del context
        cwd = working_directory(params.cwd)

        def call() -> ToolResult[JobInfo]:
            job = self._shell.start(
                params.command, cwd=path_text(cwd) or None, env=params.env, timeout_seconds=params.timeout_seconds
            )
            return ToolResult.ok(
                _info(JobState(job.id, running=True, command=params.command)), f"Started job {job.id}."
            )

        return settled(call)

    def _output(self, params: JobOutputParams, /, *, context: ToolContext) -> ToolResult[JobText]:
        del context

        def call() -> ToolResult[JobText]:
            job = self._shell.job(params.job)
            info = _info(_waited(job, params.wait_seconds))
            part = job.output(params.offset, stream=params.stream, limit=params.limit)
            data = part.data if part.complete else whole_characters(part.data) or part.data
            end = part.offset + len(data)
            value = JobText(
                info, params.stream, data.decode("utf-8", "replace"), part.offset, end, part.dropped, part.complete
            )
            return ToolResult.ok(value, _shown(value))

        return settled(call)

    def _list(self, params: JobListParams, /, *, context: ToolContext) -> ToolResult[JobListing]:
        del params, context

        def call() -> ToolResult[JobListing]:
            jobs = tuple(map(_info, self._shell.jobs()))
            lines = [f"{_line(job)} {job.command}" for job in jobs]
            return ToolResult.ok(JobListing(jobs), "\n".join(lines) or "There are no jobs.")

        return settled(call)

    def _kill(self, params: JobKillParams, /, *, context: ToolContext) -> ToolResult[JobInfo]:
        del context

        def call() -> ToolResult[JobInfo]:
            job = self._shell.job(params.job)
            job.kill()
            info = _info(job.wait(10.0))
            return ToolResult(_line(info), info, success=not info.running)

        return settled(call)


def _waited(job: Job, seconds: float) -> JobState:
    """The job's state once it has ended, the time has passed, or the call was cancelled."""
    end = time.monotonic() + seconds
    call = CALL.get()
    while True:
        left = end - time.monotonic()
        state = job.wait(min(left, _SLICE)) if left > 0 else job.poll()
        if not state.running or left <= 0 or (call is not None and call.cancelled):
            return state


def _info(state: JobState) -> JobInfo:
    code = limits.TIMEOUT_EXIT_CODE if state.timed_out else state.exit_code
    command = printable(shlex.join(state.command))
    command = command if len(command) <= _COMMAND else f"{command[: _COMMAND - 1]}…"
    return JobInfo(state.id, command, state.running, code, state.timed_out)


def _line(info: JobInfo) -> str:
    if info.running:
        return f"Job {info.job} is running."
    limit = " after its time limit" if info.timed_out else ""
    return f"Job {info.job} ended with exit code {info.exit_code}{limit}."


def _shown(value: JobText) -> str:
    words = [_line(value.job), f"{value.stream} from byte {value.offset} to {value.next_offset}"]
    if value.dropped:
        words.append(f"{value.dropped:,} bytes before that are no longer kept")
    if not value.complete:
        words.append(f"read on with offset {value.next_offset}")
    return f"{words[0]} {', '.join(words[1:])}\n\n{value.text or EMPTY}"

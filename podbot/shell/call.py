"""One call of a shell: the validated arguments, and the result."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from podbot.errors import CommandSurvived
from podbot.execution.codes import NOT_A_CAUSE
from podbot.frozen import replace
from podbot.guest.messages import Ended, GuestCommand
from podbot.shell.output_budget import Kept
from podbot.shell.requests import argv_of, directory_of, env_of, stdin_of, timeout_of, words_of
from podbot.shell.shell_limits import ShellLimits
from podbot.shell.types import BytesResult, Command, EnvMode, ExecutionResult
from podbot.shell.validator import CommandValidator

HOST = "this machine"
_ON_HOST = "A process that survives KILL waits in the kernel, often for a disk or a network, and ends after that."
TIMED_OUT = -1  # the exit code of a command that exceeded its time limit
DiskFull = Callable[[], bool]


def unknown_disks() -> bool:
    """A ``disk_full`` of Call that checks no disk."""
    return False


@dataclass(frozen=True, slots=True)
class Call:
    """``words``: the command as it appears in the result. ``data``: its stdin.

    ``where``: the container that runs it, or HOST, for messages. ``disk_full``: whether a file system is full now that
    it could write to; called after it has failed.
    """

    words: tuple[str, ...]
    command: GuestCommand
    data: bytes = b""
    where: str = ""
    disk_full: DiskFull = unknown_disks

    def survived(self) -> CommandSurvived:
        """The error for a command that may still run."""
        hint = _ON_HOST if self.where == HOST else ""
        return CommandSurvived(container=self.where, command=self.words[0], hint=hint)

    def check_survivors(self, ended: Ended) -> None:
        """Raise CommandSurvived if KILL did not end all its processes."""
        if ended.survivors:
            raise self.survived()

    def with_disks(self, ended: Ended) -> Ended:
        """``ended``, with what only this host sees: that it failed, and another file system was full. Asked once."""
        failed = ended.code not in NOT_A_CAUSE and not ended.timed_out
        return replace(ended, disk_full=True) if failed and not ended.disk_full and self.disk_full() else ended


def checked(
    command: Command,
    *,
    root: str,
    limits: ShellLimits,
    validator: CommandValidator | None,
    where: str = "",
    user: str = "",
    cwd: str | None,
    env: Mapping[str, str] | None,
    env_mode: EnvMode,
    stdin: str | bytes | None = None,
    timeout: float | None,
    endless: bool = False,
    discard: bool = False,
    disk_full: DiskFull = unknown_disks,
) -> Call:
    """The call, after every argument was validated. ``timeout`` None: the default of ``limits``; with ``endless``, no
    time limit. ``user``: see GuestCommand. ``disk_full``: see Call.

    Raises InvalidCommand, InvalidWorkingDirectory and CommandBlocked.
    """
    words = words_of(command, limits)
    data = stdin_of(stdin, limits)
    if timeout is None and not endless:
        timeout = limits.default_timeout
    asked = GuestCommand(
        argv=argv_of(command, words),
        cwd=directory_of(cwd, root),
        within="" if cwd is None or root == "/" else root,
        env=env_of(env, env_mode, limits),
        env_mode=env_mode,
        stdin="open" if data else "none",
        deadline=None if timeout is None else timeout_of(timeout, limits),
        discard=discard,
        user=user,
        keep_left=limits.job_output_bytes,
    )
    if validator is not None:
        validator.validate(command)
    return Call(words, asked, data, where, disk_full)


def text_result(call: Call, ended: Ended, kept: Kept) -> ExecutionResult:
    """The result of a command as ``execute`` returns it. Raises CommandSurvived."""
    call.check_survivors(ended)
    return ExecutionResult(
        exit_code=TIMED_OUT if ended.timed_out else ended.code,
        stdout=kept.stdout,
        stderr=kept.stderr,
        command=call.words,
        cwd=call.command.cwd,
        duration_seconds=ended.seconds,
        truncated=kept.truncated,
        timed_out=ended.timed_out,
        signal=signal_of(ended),
        out_of_memory=ended.out_of_memory,
        memory_kills=ended.memory_kills,
        forks_refused=ended.forks_refused,
        disk_full=ended.disk_full,
        left_job=left_job_of(ended),
        cause=ended.cause,
    )


def bytes_result(
    call: Call, ended: Ended, out: bytes = b"", err: bytes = b"", *, truncated: bool = False
) -> BytesResult:
    """The result of a command as ``execute_bytes`` returns it. Raises CommandSurvived."""
    call.check_survivors(ended)
    return BytesResult(
        exit_code=TIMED_OUT if ended.timed_out else ended.code,
        stdout=out,
        stderr=err,
        command=call.words,
        cwd=call.command.cwd,
        duration_seconds=ended.seconds,
        truncated=truncated,
        timed_out=ended.timed_out,
        signal=signal_of(ended),
        out_of_memory=ended.out_of_memory,
        memory_kills=ended.memory_kills,
        forks_refused=ended.forks_refused,
        disk_full=ended.disk_full,
        left_job=left_job_of(ended),
        cause=ended.cause,
    )


def left_job_of(ended: Ended) -> str | None:
    """The id of the job of what the command left, see ExecutionResult."""
    return str(ended.left_job) if ended.left_job else None


def signal_of(ended: Ended) -> int | None:
    """The signal that ended the command. An exit of its own after the TERM of its deadline counts as ended by TERM."""
    if ended.timed_out and ended.signal not in (signal.SIGTERM, signal.SIGKILL):
        return signal.SIGTERM
    return ended.signal

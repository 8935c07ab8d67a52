"""Background commands, which continue between a caller's requests."""

from __future__ import annotations

from podbot.errors import CommandRefused, InvalidCommand
from podbot.guest import messages
from podbot.guest.messages import Ended
from podbot.shell.call import TIMED_OUT, left_job_of, signal_of
from podbot.shell.output_budget import STDERR, STDOUT
from podbot.shell.ports import Commands, JobHandle
from podbot.shell.reconnecting import CommandSource
from podbot.shell.requests import number_of, signal_number, wait_of
from podbot.shell.types import JobOutput, JobState, StreamName

_PIECE = 48 * 1024  # bytes that one request asks for, below the 64 KiB of a frame


class ShellJob:
    """See :class:`~podbot.shell.types.Job`. Any thread may call it. Raises InvalidCommand for a job no longer known."""

    def __init__(self, connection: CommandSource, number: int) -> None:
        self._connection = connection
        self._number = number

    @property
    def id(self) -> str:
        """The job's id, an argument of :meth:`JobShell.job`."""
        return str(self._number)

    def poll(self) -> JobState:
        """The job's present state."""
        with self._connection.use() as commands:
            return state_of(self._handle(commands).poll())

    def output(self, offset: int = 0, *, stream: StreamName = "stdout", limit: int = 65536) -> JobOutput:
        """See :meth:`Job.output`. The last MiB of each stream is kept."""
        wanted = number_of("limit", limit, 1, 1 << 30)
        at = asked = number_of("offset", offset, 0, 1 << 62, "Pass 0, or the next_offset of an earlier output.")
        number = {"stdout": STDOUT, "stderr": STDERR}.get(stream)
        if number is None:
            raise InvalidCommand(field="stream", value=ascii(stream), limit='it is "stdout" or "stderr"')
        pieces: list[bytes] = []
        begin: int | None = None
        with self._connection.use() as commands:
            handle = self._handle(commands)
            over = handle.poll().ended is not None  # asked before the output: then no output can follow
            while True:
                part = handle.output(number, at, min(_PIECE, wanted - sum(map(len, pieces))))
                if begin is None:
                    begin = at = part.offset
                elif part.offset != at:  # the guest dropped older bytes meanwhile
                    break
                pieces.append(part.data)
                at += len(part.data)
                if not part.data or at - begin >= wanted:
                    break
        data = b"".join(pieces)
        return JobOutput(data, begin, at, max(0, begin - asked), complete=over and at >= part.total)

    def wait(self, timeout_seconds: float | None = None) -> JobState:
        """Wait until the job has ended or the time has passed; returns its state. Raises InvalidCommand for NaN."""
        seconds = wait_of(timeout_seconds)
        with self._connection.use() as commands:
            handle = self._handle(commands)
            handle.wait(seconds)
            return state_of(handle.poll())

    def kill(self, number: int | None = None) -> None:
        """Send a signal to the job; None terminates all its processes: TERM, 2 s, KILL."""
        with self._connection.use() as commands:
            handle = self._handle(commands)
            if number is None:
                handle.kill()
            else:
                handle.signal(signal_number(number))

    def _handle(self, commands: Commands) -> JobHandle:
        try:
            return commands.attach(self._number)
        except CommandRefused as exc:
            raise unknown_job(self.id) from exc


def unknown_job(ident: object) -> InvalidCommand:
    """The error for an id that no job has."""
    hint = "jobs() lists the jobs that exist. Jobs end with their sandbox."
    return InvalidCommand(field="job", value=ascii(ident)[:60], limit="there is no such job", hint=hint)


def state_of(job: messages.JobState) -> JobState:
    """A job's state as the shell returns it to callers."""
    ended: Ended | None = job.ended
    if ended is None:
        return JobState(str(job.job), running=True, command=job.argv)
    code = TIMED_OUT if ended.timed_out else ended.code
    return JobState(
        str(job.job),
        running=False,
        exit_code=code,
        signal=signal_of(ended),
        timed_out=ended.timed_out,
        out_of_memory=ended.out_of_memory,
        survivors=ended.survivors,
        memory_kills=ended.memory_kills,
        forks_refused=ended.forks_refused,
        disk_full=ended.disk_full,
        left_job=left_job_of(ended),
        cause=ended.cause,
        command=job.argv,
    )

"""Runs validated calls through a shell's connection."""

from __future__ import annotations

import contextlib
import functools

from podbot.errors import BadWorkingDirectory, CommandRefused, InvalidCommand, InvalidWorkingDirectory
from podbot.execution.capture import Kept as FirstBytes
from podbot.guest.messages import Ended, GuestCommand
from podbot.shell.call import Call
from podbot.shell.cancellation import waiting_for
from podbot.shell.live import Watch
from podbot.shell.output_budget import STDERR, STDOUT
from podbot.shell.ports import Commands, OnOutput, RunningCommand
from podbot.shell.reconnecting import BROKEN, CommandSource

PATIENCE = 15.0  # seconds after a command's deadline and the grace of its TERM within which its end must be reported


class CommandRunner:
    """Runs commands through ``connection``. Any thread may call it. ``root``: the shell's, for messages."""

    def __init__(self, connection: CommandSource, root: str) -> None:
        self._connection = connection
        self._root = root

    def run(self, call: Call, take: OnOutput | None) -> Ended:
        """Run the command to its end. An exception in the caller, such as KeyboardInterrupt, terminates it.

        Raises CommandSurvived, CommandRefused's counterparts of a shell, and ContainerError subclasses.
        """
        with self._connection.use() as commands:
            running = self.start(commands, call.command, take)
            try:
                with waiting_for(running):
                    ended = _finished(running, call)
            except BaseException:
                with contextlib.suppress(*BROKEN, OSError):
                    running.abandon()  # nothing reads the rest of its output, which would keep its streams open
                raise
        return call.with_disks(ended)

    def run_for_bytes(self, call: Call, limit: int) -> tuple[Ended, FirstBytes, FirstBytes]:
        """Run the command to its end; also returns the first ``limit`` bytes of stdout and of stderr."""
        kept = {STDOUT: FirstBytes(limit), STDERR: FirstBytes(limit)}
        ended = self.run(call, lambda stream, data: kept[stream](data))
        return ended, kept[STDOUT], kept[STDERR]

    def start_live(self, command: GuestCommand, take: OnOutput) -> tuple[RunningCommand, Watch]:
        """See :data:`podbot.shell.live.Start`."""
        with self._connection.use() as commands:
            running = self.start(commands, command, take)
            return running, functools.partial(self._connection.watching, commands)

    def start_job(self, command: GuestCommand) -> int:
        """Start a job; returns its number."""
        with self._connection.use() as commands:
            return self.start(commands, command, None).job

    def start(self, commands: Commands, command: GuestCommand, take: OnOutput | None) -> RunningCommand:
        """Start a command. Raises InvalidWorkingDirectory and InvalidCommand."""
        try:
            return commands.start(command, take)
        except BadWorkingDirectory as exc:
            raise InvalidWorkingDirectory(path=command.cwd, root=self._root, reason=exc.reason) from exc
        except CommandRefused as exc:
            raise InvalidCommand(field=exc.field, value=ascii(exc.value), limit=exc.reason) from exc


def _finished(running: RunningCommand, call: Call) -> Ended:
    asked = call.command
    if asked.stdin == "open":
        running.write(call.data)
        running.close_stdin()
    ended = running.wait(None if asked.deadline is None else asked.deadline + asked.term_grace + PATIENCE)
    if ended is None:
        raise call.survived()
    return ended

"""A shell on this machine, without any isolation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Self

from podbot.errors import PathError
from podbot.guest.local import LocalGuest
from podbot.guest.messages import GuestCommand, JobState
from podbot.shell.call import HOST
from podbot.shell.command_shell import CommandShell
from podbot.shell.ports import JobHandle, OnOutput, RunningCommand
from podbot.shell.reconnecting import Connection
from podbot.shell.shell_limits import ShellLimits
from podbot.shell.validator import CommandValidator


class HostShell(CommandShell):
    """A :class:`~podbot.shell.types.JobShell` whose commands run as processes of this user. Run only trusted commands.

    ``root``: an existing directory; ``~`` is the home directory. A child process of podbot runs the commands;
    ``close`` terminates it and all commands and jobs. ``validator``: prevents accidents, ``CommandValidator()`` by
    default. Raises PathError if ``root`` is not a directory.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        limits: ShellLimits | None = None,
        validator: CommandValidator | None = CommandValidator(),  # noqa: B008 - it has no state
    ) -> None:
        path = os.path.realpath(os.path.expanduser(root))
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_PATH))
        except OSError as exc:
            raise PathError(path=path, operation="use as a shell's root", reason=os.strerror(exc.errno or 0)) from exc
        super().__init__(
            Connection(lambda: LocalCommands.start_in(path)),
            name="host",
            where=HOST,
            root=path,
            sandboxed=False,
            network_enabled=True,
            limits=limits,
            validator=validator,
        )


class LocalCommands:
    """A guest that runs on this machine and ends with its channel."""

    def __init__(self, guest: LocalGuest) -> None:
        self._guest = guest

    @classmethod
    def start_in(cls, path: str, env: Mapping[str, str] | None = None, *, end_grace: float | None = None) -> Self:
        """``path``: an existing directory; ``env``: the variables of commands, None for those of this process.

        ``end_grace``: see :meth:`LocalGuest.start`.
        """
        return cls(LocalGuest.start(cwd=path, env=env, end_grace=end_grace))

    def start(self, command: GuestCommand, on_output: OnOutput | None = None) -> RunningCommand:
        """See Commands."""
        return self._guest.channel.start(command, on_output)

    def jobs(self) -> tuple[JobState, ...]:
        """See Commands."""
        return self._guest.channel.jobs()

    def attach(self, job_id: int, /) -> JobHandle:
        """See Commands."""
        return self._guest.channel.attach(job_id)

    def close(self) -> None:
        """End the guest, its commands and its jobs."""
        self._guest.close()

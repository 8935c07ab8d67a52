"""A shell in a sandbox."""

from __future__ import annotations

from collections.abc import Callable

from podbot.shell.command_shell import CommandShell
from podbot.shell.ports import Commands
from podbot.shell.reconnecting import Connection, Explain
from podbot.shell.shell_limits import ShellLimits
from podbot.shell.validator import CommandValidator


class PodmanShell(CommandShell):
    """A :class:`~podbot.shell.types.JobShell` in a container; ``Sandbox.shell()`` makes one.

    ``connect``: returns the object that runs the commands there. ``container``: its name, for messages. ``root``: an
    absolute path inside. ``user``: of the commands, ``USER`` or ``USER:GROUP``; empty is the container's.
    ``validator``: prevents accidents, ``CommandValidator()`` by default. ``explain``: gives the cause of a broken
    connection.
    """

    def __init__(
        self,
        connect: Callable[[], Commands],
        *,
        container: str = "the sandbox",
        root: str = "/workspace",
        user: str = "",
        network_enabled: bool = False,
        limits: ShellLimits | None = None,
        validator: CommandValidator | None = CommandValidator(),  # noqa: B008 - it has no state
        explain: Explain | None = None,
    ) -> None:
        super().__init__(
            Connection(connect, explain),
            name="podman",
            where=container,
            root=root,
            user=user,
            sandboxed=True,
            network_enabled=network_enabled,
            limits=limits,
            validator=validator,
        )

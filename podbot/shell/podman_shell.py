"""A shell in a sandbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from podbot.shell.call import DiskFull, unknown_disks
from podbot.shell.command_shell import CommandShell
from podbot.shell.ports import Commands
from podbot.shell.reconnecting import Connection, Explain
from podbot.shell.shell_limits import ShellLimits
from podbot.shell.validator import CommandValidator

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from typing import Any

    from podbot.config.models import AppConfig
    from podbot.events import Emit
    from podbot.launch.types import LaunchRequest


class PodmanShell(CommandShell):
    """A :class:`~podbot.shell.types.JobShell` in a container: :attr:`Sandbox.shell`, or by itself :meth:`open`.

    ``connect``: returns the object that runs the commands there. ``container``: its name, for messages. ``root``: an
    absolute path inside. ``user``: of the commands, ``USER`` or ``USER:GROUP``; empty is the container's.
    ``validator``: prevents accidents, ``CommandValidator()`` by default. ``explain``: gives the cause of a broken
    connection. ``disk_full``: see Call.
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
        disk_full: DiskFull = unknown_disks,
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
            disk_full=disk_full,
        )

    @staticmethod
    def open(
        what: AppConfig | str | os.PathLike[str] | None = None,
        request: LaunchRequest | None = None,
        /,
        *,
        image: str | None = None,
        network: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        emit: Emit | None = None,
        root: str | None = None,
        user: str = "",
        limits: ShellLimits | None = None,
        validator: CommandValidator | None = CommandValidator(),  # noqa: B008 - it has no state
    ) -> AbstractContextManager[PodmanShell]:
        """A shell in a sandbox of its own for the block; both end with it.

        The sandbox is that of :func:`podbot.sandbox`, with its errors: on a directory of this host with the user's
        configuration, or of a configuration and a request (None: ``LaunchRequest()``) alone.
        ``image``: counts more than the configured one, and goes, as ``network`` and ``overrides``, with the first form.
        ``root``, ``user``, ``limits``, ``validator``: see :meth:`Sandbox.open_shell`.
        """
        from podbot.api.shells import opened_shell  # the one call of this room that opens what it runs in: ADR 0051

        options = {"network": network, "overrides": overrides, "environ": environ, "emit": emit}
        shell = {"root": root, "user": user, "limits": limits, "validator": validator}
        return opened_shell(what, request, image=image, options=options, shell=shell)

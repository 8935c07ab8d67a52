"""The connection of a workspace's shell and files, which starts the workspace when it is used."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from podbot.errors import PodbotError
from podbot.shell.ports import Commands
from podbot.shell.reconnecting import CommandSource

if TYPE_CHECKING:
    from podbot.suites.backends import Opened


class WorkspaceConnection:
    """See CommandSource. ``in_use``: see :meth:`LazyWorkspace.in_use`."""

    def __init__(self, in_use: Callable[..., contextlib.AbstractContextManager[Opened]]) -> None:
        self._in_use = in_use
        self._starts: weakref.WeakKeyDictionary[Commands, Opened] = weakref.WeakKeyDictionary()

    @contextlib.contextmanager
    def use(self) -> Iterator[Commands]:
        """See CommandSource."""
        with self._in_use() as opened, opened.connection.use() as commands:
            self._starts[commands] = opened
            yield commands

    @contextlib.contextmanager
    def watching(self, commands: Commands) -> Iterator[None]:
        """See CommandSource. Raises WorkspaceDied for commands of a container that has ended."""
        with self._in_use(self._starts[commands]) as opened, opened.connection.watching(commands):
            yield

    def close(self) -> None:
        """Nothing: the connection is the workspace's, and ends with it."""


def has_running_jobs(connection: CommandSource) -> bool:
    """Whether a job runs; not if the connection is broken."""
    with contextlib.suppress(PodbotError), connection.use() as commands:
        return any(job.ended is None for job in commands.jobs())
    return False

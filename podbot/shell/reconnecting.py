"""A shell's connection to the object that runs its commands, opened again after it broke."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from podbot.errors import ChannelLost, CommandSurvived, ContainerError, NoGuest, PodbotError
from podbot.shell.ports import Commands

BROKEN = (ContainerError, ChannelLost, NoGuest)
Explain = Callable[[PodbotError], PodbotError]


class CommandSource(Protocol):
    """Where a shell and the files worker get the object that runs their commands. Any thread may call it."""

    def use(self) -> AbstractContextManager[Commands]:
        """The object for the block. Raises ContainerError and ChannelLost."""
        ...

    def watching(self, commands: Commands) -> AbstractContextManager[None]:
        """As :meth:`use`, for a block that continues to use ``commands``."""
        ...

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        ...


class Connection:
    """The :class:`Commands` object that ``connect`` returns. Any thread may call it.

    A call on a broken connection raises; the next call connects again, as the container may have been restarted.
    A CommandSurvived concerns one command, so the connection stays open for the others.
    ``explain``: returns the cause of an error, such as a sandbox that ended, or the error itself.
    """

    def __init__(self, connect: Callable[[], Commands], explain: Explain | None = None) -> None:
        self._connect = connect
        self._explain = explain or (lambda error: error)
        self._lock = threading.Lock()
        self._current: Commands | None = None

    @contextlib.contextmanager
    def use(self) -> Iterator[Commands]:
        """The connection for the block; if it breaks there, it is not used again. Raises the errors of ``connect``."""
        with self._explained():
            with self._lock:
                if self._current is None:
                    self._current = self._connect()
                commands = self._current
            with self._given_up(commands):
                yield commands

    @contextlib.contextmanager
    def watching(self, commands: Commands) -> Iterator[None]:
        """As :meth:`use`, for a block that continues to use ``commands``."""
        with self._explained(), self._given_up(commands):
            yield

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self._lock:
            current, self._current = self._current, None
        if current is not None:
            current.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except CommandSurvived:
            raise
        except BROKEN as exc:
            explained = self._explain(exc)
            if explained is exc:
                raise
            raise explained from exc

    @contextlib.contextmanager
    def _given_up(self, commands: Commands) -> Iterator[None]:
        try:
            yield
        except CommandSurvived:
            raise
        except BROKEN:
            self._drop(commands)
            raise

    def _drop(self, commands: Commands) -> None:
        with self._lock:
            if self._current is not commands:
                return
            self._current = None
        with contextlib.suppress(*BROKEN, OSError):
            commands.close()

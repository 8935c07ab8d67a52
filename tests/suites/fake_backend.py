"""A backend of real local workspaces whose containers can end."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from podbot.errors import ChannelLost, PodbotError, SandboxDied
from podbot.events import Emit
from podbot.shell.ports import Commands
from podbot.shell.reconnecting import CommandSource
from podbot.suites.backends import LocalBackend, Opened
from podbot.suites.settings import WorkspaceSettings


class Container:
    """One start of a workspace. ``dead``: its commands raise SandboxDied. ``closed``: how often it was ended.

    ``lost``: its commands raise ChannelLost; ``ends``: and its container then ends. ``asked``: how often somebody
    asked for that.
    """

    def __init__(self, inner: CommandSource) -> None:
        self._inner = inner
        self.dead = self.lost = self.ends = False
        self.closed = self.asked = 0

    @contextlib.contextmanager
    def use(self) -> Iterator[Commands]:
        self._check()
        with self._inner.use() as commands:
            yield commands
            self._check()

    @contextlib.contextmanager
    def watching(self, commands: Commands) -> Iterator[None]:
        self._check()
        with self._inner.watching(commands):
            yield

    def close(self) -> None:
        self._inner.close()

    def ended(self) -> bool:
        self.asked += 1
        return self.ends

    def _check(self) -> None:
        if self.dead or self.closed:
            raise SandboxDied(container="c", reason="the container is exited")
        if self.lost:
            raise ChannelLost(where="c", reason="it ended")


class FakeBackend:
    """``starts``: the containers so far. ``failures``: errors of the next starts."""

    shell_name, sandboxed, code_chars, owner = "podman", True, None, None

    def __init__(self, directory: Path) -> None:
        self._local = LocalBackend(root=str(directory / "overlays"))
        self.starts: list[Container] = []
        self.failures: list[PodbotError] = []

    def overlays(self) -> str:
        return self._local.overlays()

    def where(self, ident: str) -> str:
        return f"box-{ident}"

    def root(self, directory: str) -> str:
        return directory

    def open(self, ident: str, directory: str, settings: WorkspaceSettings, now: datetime, emit: Emit) -> Opened:
        if self.failures:
            raise self.failures.pop(0)
        opened = self._local.open(ident, directory, settings, now, emit)
        container = Container(opened.connection)
        self.starts.append(container)

        def close() -> None:
            container.closed += 1
            opened.close()

        return dataclasses.replace(opened, connection=container, close=close, ended=container.ended)

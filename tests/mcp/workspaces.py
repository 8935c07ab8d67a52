"""Workspaces for tests: directories of this host, served by real guests, with what a test says of their start."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mcp.server.lowlevel import Server

from podbot.events import Event
from podbot.guest.local import LocalGuest
from podbot.mcp.offered_mounts import OfferedMount
from podbot.mcp.sandbox_registry import SandboxRegistry
from podbot.mcp.serving import ServedTools
from podbot.mcp.workspace_port import ExportPatch
from podbot.sections.host_mounts import MountPlan
from podbot.shell.host_shell import HostShell
from podbot.shell.reconnecting import Connection
from podbot.tools.files import Files
from podbot.tools.tool_limits import SUITE_SHELL_LIMITS
from tests.guest.liar import PATIENT


class LocalWorkspace:
    """A directory that is served without isolation. ``failure``: what its start raises."""

    def __init__(self, directory: Path, failure: Exception | None = None) -> None:
        self.path = directory
        self.directory = str(directory)
        self.plan = MountPlan()
        self.state: object | None = None
        self.closed = 0
        self.left: tuple[str, ...] = ()
        self.ending: Callable[[], object] | None = None
        self._failure = failure
        self._stack = contextlib.ExitStack()
        directory.mkdir(parents=True)
        self.shell = HostShell(directory, limits=SUITE_SHELL_LIMITS)
        self.files = Files(Connection(self._channel), self.directory, where="here")

    def start(self) -> object:
        if self._failure is not None:
            raise self._failure
        self.state = "running"
        return self.state

    def remove(self) -> tuple[str, ...]:
        self.closed += 1
        if self.ending is not None:
            self.ending()
        self.state = None
        self.shell.close()
        self._stack.close()
        return self.left

    def _channel(self) -> Any:
        return self._stack.enter_context(LocalGuest.start(patience=PATIENT)).channel


class Making:
    """Makes workspaces below a directory, and remembers them.

    ``failure``: what their starts raise. ``before``: is called before one is made.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self.made: list[LocalWorkspace] = []
        self.mounts: list[tuple[OfferedMount, ...]] = []
        self.failure: Exception | None = None
        self.before: Callable[[], object] | None = None

    def __call__(self, ident: str, mounts: Sequence[OfferedMount]) -> LocalWorkspace:
        if self.before is not None:
            self.before()
        made = LocalWorkspace(self._root / ident / "workspace", self.failure)
        with self._lock:
            self.made.append(made)
            self.mounts.append(tuple(mounts))
        return made


class Served:
    """A server on local workspaces, and what it reported."""

    def __init__(self, root: Path, *, export: ExportPatch | None = None, **options: Any) -> None:
        self.making = Making(root)
        self.events: list[Event] = []
        self.owner = "a"
        given = {name: options.pop(name) for name in ("read_only", "code_chars") if name in options}
        offered: Sequence[OfferedMount] = options.pop("offered", ())
        self.registry = SandboxRegistry(self.making, offered, emit=self.events.append, **given, **options)
        self.tools = ServedTools(registry=self.registry, export=export, **given)

    def server(self, owner_of: Callable[[], str] | None = None, **times: float) -> Server[Any]:
        return self.tools.server(owner_of or (lambda: self.owner), **times)

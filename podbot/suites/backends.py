"""The two kinds of workspace: a sealed sandbox, and a directory of this host without isolation."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import podbot
from podbot.errors import ContainerError, ContainerNotFound, WorkspaceDied
from podbot.events import Emit
from podbot.launch.names import is_name
from podbot.places import cache_dir, home_dir
from podbot.sections.host_copy import Owner
from podbot.shell.host_shell import LocalCommands
from podbot.shell.reconnecting import CommandSource, Connection
from podbot.suites.settings import WorkspaceSettings
from podbot.suites.state import PodmanWorkspace, UnsafeLocalWorkspace, WorkspaceState
from podbot.tools.paths import invalid
from podbot.tools.tool_limits import LOCAL_CODE_CHARS, WORKSPACE

# A model's key or a token in this process's environment is not for the commands of a model.
_INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
# Python takes old bytecode for a file of the same size that is changed within a second; tools edit and run in one.
_VARIABLES = {"PYTHONDONTWRITEBYTECODE": "1"}
_PROBE_SECONDS = 10.0
_ENDING_SECONDS, _PAUSE = 3.0, 0.02  # the engine reports the end of a container 0.1 to 0.5 s after its guest's
PREFIX = "podbot-ws"
PREFIX_CHARS = 14  # with an ident of 48 that is the longest name of a session
_NOBODY = (65534, 65534)  # the user of a sealed sandbox
# Seconds between TERM and KILL at the end of a local workspace. With a command's usual 2 s, `podbot mcp` would end more
# than 2 s after its client. A sandbox is killed at once.
_LOCAL_END = 0.5


@dataclass(frozen=True)
class Opened:
    """A workspace that runs. ``state``: as at its start. ``close``: ends it; its files stay.

    ``ended``: whether its container has ended, or ends within seconds; asked after its guest was lost.
    """

    connection: CommandSource
    state: WorkspaceState
    close: Callable[[], None]
    ended: Callable[[], bool] = lambda: False


class Backend(Protocol):
    """Where workspaces run. ``shell_name``: what their shells are called; ``code_chars``: see ToolSuite."""

    @property
    def shell_name(self) -> str: ...

    @property
    def sandboxed(self) -> bool: ...

    @property
    def code_chars(self) -> int | None: ...

    @property
    def owner(self) -> Owner | None:
        """Who must own the files; None: this user."""
        ...

    def overlays(self) -> str:
        """The directory of this host in which workspaces have their directories."""
        ...

    def where(self, ident: str) -> str:
        """The workspace's name for messages."""
        ...

    def root(self, directory: str) -> str:
        """The path of the workspace where its commands run. ``directory``: of the workspace on this host."""
        ...

    def open(self, ident: str, directory: str, settings: WorkspaceSettings, now: datetime, emit: Emit) -> Opened:
        """Start the workspace. Raises ConfigError, ContainerError, FilesystemError and ToolError subclasses."""
        ...


class PodmanBackend:
    """Sealed sandboxes: no network, no capability, a read-only root, uid 65534. See docs/reference/sandbox.md.

    ``environ``: variables that select the engine and podbot's configuration; None: those of this process.
    ``name_prefix``: of the names of their containers, before a dash. Raises ToolValidationError.
    """

    shell_name, sandboxed, code_chars = "podman", True, None

    def __init__(self, environ: Mapping[str, str] | None = None, *, name_prefix: str = PREFIX) -> None:
        if not is_name(name_prefix) or len(name_prefix) > PREFIX_CHARS:
            reason = f"it has at most {PREFIX_CHARS} letters, digits, dots, dashes and underscores"
            raise invalid("name_prefix", name_prefix, reason)
        self._environ = os.environ if environ is None else environ
        self._prefix = name_prefix

    @property
    def owner(self) -> Owner | None:
        """See Backend. A rootless engine maps the sandbox's user to this one."""
        return _NOBODY if os.geteuid() == 0 else None

    def overlays(self) -> str:
        """See Backend. Workspaces with another prefix are others, also with the same ident."""
        name = "sandbox" if self._prefix == PREFIX else f"sandbox.{self._prefix}"
        return os.path.join(cache_dir(self._environ), name)

    def where(self, ident: str) -> str:
        """See Backend: the name of its session and container."""
        return f"{self._prefix}-{ident}"

    def root(self, directory: str) -> str:
        """See Backend."""
        del directory
        return WORKSPACE

    def open(self, ident: str, directory: str, settings: WorkspaceSettings, now: datetime, emit: Emit) -> Opened:
        """See Backend."""
        overrides = _overrides(directory, settings)
        config = podbot.load_config(podbot.LoadOptions(environ=self._environ, overrides=overrides))
        # What is in it is a copy, made by podbot, that nothing on this host runs.
        request = podbot.LaunchRequest(name=self.where(ident), trusted_workspace=True)
        stack = contextlib.ExitStack()
        try:
            box = stack.enter_context(podbot.sandbox(config, request, environ=self._environ, emit=emit))
            _probe(box)
            state = PodmanWorkspace(
                container_name=box.name,
                image=box.image,
                workdir=WORKSPACE,
                overlay_path=directory,
                env=tuple(settings.environment.items()),
                started_at=now,
                last_used_at=now,
            )
            return Opened(box.connection(), state, stack.close, lambda: _has_ended(box))
        except BaseException:
            stack.close()
            raise


class LocalBackend:
    """Directories of this host. Commands run as this user, without any isolation.

    They get the variables that programs need to run, such as PATH and HOME, and those of the settings; no others of
    this process. ``root``: the directory in which workspaces are made; None: a private one in the temporary directory.
    """

    shell_name, sandboxed, code_chars, owner = "host", False, LOCAL_CODE_CHARS, None

    def __init__(self, environ: Mapping[str, str] | None = None, *, root: str | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._root = root

    def overlays(self) -> str:
        """See Backend."""
        if self._root is not None:
            return os.path.join(os.path.abspath(self._root), "podbot-workspaces")
        return os.path.join(tempfile.gettempdir(), f"podbot-{os.geteuid()}")

    def where(self, ident: str) -> str:
        """See Backend."""
        return f"local workspace {ident}"

    def root(self, directory: str) -> str:
        """See Backend."""
        return directory

    def open(self, ident: str, directory: str, settings: WorkspaceSettings, now: datetime, emit: Emit) -> Opened:
        """See Backend."""
        del emit
        where = self.where(ident)
        env = {name: self._environ[name] for name in _INHERITED if name in self._environ}
        env.setdefault("HOME", home_dir(self._environ))
        env |= _VARIABLES | dict(settings.environment)
        is_over = threading.Event()

        def connect() -> LocalCommands:
            if is_over.is_set():  # a late call must not start a guest that nobody ends
                raise ContainerNotFound(container=where)
            return LocalCommands.start_in(directory, env, end_grace=_LOCAL_END)

        def close() -> None:
            is_over.set()
            connection.close()  # waits for a connect

        connection = Connection(connect)
        state = UnsafeLocalWorkspace(
            workspace_path=directory,
            workdir=WORKSPACE,
            env=tuple(settings.environment.items()),
            started_at=now,
            last_used_at=now,
        )
        return Opened(connection, state, close)


def _overrides(directory: str, settings: WorkspaceSettings) -> dict[str, Any]:
    """What ``LoadOptions.overrides`` gets, by dotted keys.

    The operator's mounts, variables and other profiles are for the operator's own agents.
    """
    chosen = {} if settings.image is None else {"image": settings.image}
    return chosen | {
        "workspace.source": "host_mount",
        "workspace.host_path": directory,
        "workspace.container_path": WORKSPACE,
        "workspace.allowed_roots": (directory,),
        "workspace.read_only": False,
        "workspace.guard": "off",  # nothing on this host runs what is in a copy
        "session.keep": False,
        "sandbox.profile": "sealed",
        "sandbox.privileged": False,
        "sandbox.extra_mounts": (),
        "sandbox.env": _VARIABLES | dict(settings.environment),
        "sandbox.network": "none",
        "sandbox.memory": settings.memory,
        "sandbox.cpus": settings.cpus,
        "sandbox.pids": settings.pids,
    }


def _has_ended(box: podbot.Sandbox) -> bool:
    """The guest ends before its container does, and the engine says so later still."""
    end = time.monotonic() + _ENDING_SECONDS
    while time.monotonic() < end:
        try:
            if not box.is_running():
                return True
        except ContainerError:
            return False  # the engine does not answer
        time.sleep(_PAUSE)
    return False


def _probe(box: podbot.Sandbox) -> None:
    """Raises WorkspaceDied when the workspace cannot be written: a mount or an owner that is not as planned."""
    probed = box.run(["sh", "-c", f"test -d {WORKSPACE} && test -w {WORKSPACE}"], timeout=_PROBE_SECONDS)
    if not probed.success:
        raise WorkspaceDied(where=box.name, reason=f"{WORKSPACE} cannot be written in it (status {probed.exit_code})")

"""The sections that offer a workspace and its tools: on Podman, and on this host without isolation."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Self, TypeVar

from podbot.errors import PromptInvalid
from podbot.events import Emit, ignore
from podbot.frozen import Frozen, shown_argument
from podbot.sections.dispatcher import Dispatcher
from podbot.sections.host_mounts import HostMount, checked_mounts
from podbot.sections.mount_preview import with_mounts
from podbot.sections.section import Section
from podbot.sections.session_state import Session, Slice
from podbot.shell.command_shell import CommandShell
from podbot.suites.backends import LocalBackend, PodmanBackend
from podbot.suites.lazy_workspace import LazyWorkspace
from podbot.suites.settings import WorkspaceSettings, check_roots
from podbot.suites.state import PodmanWorkspace, UnsafeLocalWorkspace, WorkspaceState
from podbot.suites.virtual_files import seed_files, track_files
from podbot.tools.files import Files
from podbot.tools.workspace_filesystem import WorkspaceFilesystem

PODMAN_TEMPLATE = """\
You have access to an isolated Linux container powered by Podman. The tools `ls`, `read_file`, `write_file`,
`edit_file`, `glob`, `grep` and `rm` work on `/workspace` inside the container. `evaluate_python` runs a Python program
there (5 seconds at most), and `shell_execute` a command (120 seconds at most). No network access or privileged
operations are available. Do not assume that files outside `/workspace` exist."""

LOCAL_TEMPLATE = """\
You have access to a local workspace directory. The tools `ls`, `read_file`, `write_file`, `edit_file`, `glob`, `grep`
and `rm` work on `/workspace`, which is that directory. `evaluate_python` runs a Python program there (5 seconds at
most), and `shell_execute` a command on the host itself (120 seconds at most). No container isolates it. Do not assume
that files outside `/workspace` can be used."""

Roots = Sequence[os.PathLike[str] | str]


def _now() -> datetime:
    return datetime.now(UTC)


class _Config(Frozen):
    """What both configurations check when they are made."""

    def __post_init__(self) -> None:
        given = vars(self)
        checked_mounts(given["mounts"])
        check_roots(f"{type(self).__name__}()", given["allowed_host_roots"])


class PodmanSandboxConfig(_Config):
    """``mounts``, ``base_environment``, ``image`` and the limits: see :class:`WorkspaceSettings`.

    ``allowed_host_roots``: directories below which mounts lie. ``keep``: close the section without removing the files,
    which a later section with a session of the same id continues. ``environ``: variables that select the engine and
    podbot's configuration; None: those of this process. ``clock``: the time of timestamps.
    """

    mounts: Sequence[HostMount] = ()
    allowed_host_roots: Roots = ()
    base_environment: Mapping[str, str] | None = None
    image: str | None = None
    idle_seconds: float | None = None
    uptime_seconds: float | None = None
    keep: bool = False
    environ: Mapping[str, str] | None = None
    clock: Callable[[], datetime] = _now
    accepts_overrides: bool = False

    _elsewhere: ClassVar[Mapping[str, str]] = {
        name: f"It is a field of WorkspaceSettings, with which LazyWorkspace makes a workspace; here it is {usual}."
        for name, usual in (("memory", "1g"), ("cpus", "1"), ("pids", "512"))
    }
    text: ClassVar[str] = PODMAN_TEMPLATE
    state_type: ClassVar[type[PodmanWorkspace]] = PodmanWorkspace

    def backend(self) -> PodmanBackend:
        """Where workspaces of it run."""
        return PodmanBackend(self.environ)

    def settings(self) -> WorkspaceSettings:
        """What workspaces are made from. Raises ToolValidationError, and TypeError for mounts."""
        return WorkspaceSettings(
            mounts=checked_mounts(self.mounts),
            allowed_host_roots=_roots(self.allowed_host_roots),
            environment=self.base_environment or {},
            image=self.image,
            idle_seconds=self.idle_seconds,
            uptime_seconds=self.uptime_seconds,
        )


class UnsafeLocalSandboxConfig(_Config):
    """``workspace_root``: the directory in which workspaces are made; None: a private one in the temporary directory.

    The other fields: see :class:`PodmanSandboxConfig`.
    """

    mounts: Sequence[HostMount] = ()
    allowed_host_roots: Roots = ()
    base_environment: Mapping[str, str] | None = None
    workspace_root: os.PathLike[str] | str | None = None
    clock: Callable[[], datetime] = _now
    accepts_overrides: bool = False

    text: ClassVar[str] = LOCAL_TEMPLATE
    state_type: ClassVar[type[UnsafeLocalWorkspace]] = UnsafeLocalWorkspace
    keep: ClassVar[bool] = False

    def backend(self) -> LocalBackend:
        """Where workspaces of it run."""
        root = self.workspace_root
        return LocalBackend(root=None if root is None else os.fspath(root))

    def settings(self) -> WorkspaceSettings:
        """What workspaces are made from. Raises ToolValidationError, and TypeError for mounts."""
        return WorkspaceSettings(
            mounts=checked_mounts(self.mounts),
            allowed_host_roots=_roots(self.allowed_host_roots),
            environment=self.base_environment or {},
        )


SandboxConfig = PodmanSandboxConfig | UnsafeLocalSandboxConfig
_Kind = TypeVar("_Kind", PodmanSandboxConfig, UnsafeLocalSandboxConfig)


class SandboxSection(Section):
    """A workspace with its tools. Nothing starts before a tool, the shell or the filesystem is used.

    Use it in a ``with`` block, or call :meth:`close`. Its state in the session: the slice of PodmanWorkspace or
    UnsafeLocalWorkspace, which is empty while it does not run, and the slice of VirtualFileSystem.
    """

    def __init__(self, config: SandboxConfig, *, session: Session, emit: Emit, key: str, title: str) -> None:
        self.session = session
        self._text, self._emit = config.text, emit
        self._states: Slice[Any] = session[config.state_type]
        self._filled = False
        self.workspace = LazyWorkspace(
            config.backend(),
            ident=session.session_id.hex,
            settings=config.settings(),
            keep=config.keep,
            on_change=self._changed,
            emit=emit,
            clock=config.clock,
        )
        self._states.keep_from_clones()
        track_files(session, self.workspace.plan)
        tools = self.workspace.suite().tools
        super().__init__(title=title, key=key, tools=tools, accepts_overrides=config.accepts_overrides)

    @property
    def shell(self) -> CommandShell:
        """The shell of the workspace. Reading it starts nothing."""
        return self.workspace.shell

    @property
    def files(self) -> Files:
        """The files of the workspace, as its tools use them. Reading it starts nothing."""
        return self.workspace.files

    @property
    def filesystem(self) -> WorkspaceFilesystem:
        """The files of the workspace, as programs use them. Reading it starts nothing."""
        return self.workspace.filesystem

    def body(self) -> str:
        """See Section: the text, and behind it the mounts."""
        return with_mounts(self._text, self.workspace.plan.previews)

    def close(self) -> None:
        """End the workspace and remove its files, unless they are to be kept. Twice is once."""
        self.workspace.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _changed(self, state: WorkspaceState | None) -> None:
        if state is None:
            self._states.clear()
            return
        if not self._filled:
            self._filled = True
            seed_files(self.session, self.workspace.plan)
        self._states.seed(state)


class PodmanSandboxSection(SandboxSection):
    """Tools in a sealed sandbox of the session. Raises ToolValidationError for mounts that cannot be copied."""

    container_backed = True

    def __init__(
        self,
        *,
        session: Session,
        config: PodmanSandboxConfig | None = None,
        emit: Emit = ignore,
        key: str = "podman-sandbox",
        title: str = "Podman Workspace",
    ) -> None:
        self._config = config = _of_kind(config, PodmanSandboxConfig)
        super().__init__(config, session=session, emit=emit, key=key, title=title)

    def clone(self, *, session: Session, bus: Dispatcher | None = None) -> PodmanSandboxSection:
        """The same section for another session, with a container and files of its own.

        ``bus``: that session's, if it is named. Raises PromptInvalid when the session has this one's id.
        """
        check_clone(self.key, self.session, session, bus)
        return PodmanSandboxSection(
            session=session, config=self._config, emit=self._emit, key=self.key, title=self.title
        )


class UnsafeLocalSandboxSection(SandboxSection):
    """The same tools in a directory of this host, without isolation: for programs that are isolated themselves."""

    def __init__(
        self,
        *,
        session: Session,
        config: UnsafeLocalSandboxConfig | None = None,
        emit: Emit = ignore,
        key: str = "unsafe-local-sandbox",
        title: str = "Local Workspace",
    ) -> None:
        self._config = config = _of_kind(config, UnsafeLocalSandboxConfig)
        super().__init__(config, session=session, emit=emit, key=key, title=title)

    def clone(self, *, session: Session, bus: Dispatcher | None = None) -> UnsafeLocalSandboxSection:
        """See :meth:`PodmanSandboxSection.clone`."""
        check_clone(self.key, self.session, session, bus)
        return UnsafeLocalSandboxSection(
            session=session, config=self._config, emit=self._emit, key=self.key, title=self.title
        )


def _of_kind(config: _Kind | None, kind: type[_Kind]) -> _Kind:
    """``config``, or the usual one. Raises TypeError for the other kind, which would decide where commands run."""
    if config is None:
        return kind()
    if not isinstance(config, kind):
        raise TypeError(f"config is a {kind.__name__}, not {shown_argument(config)}. Write {kind.__name__}(…).")
    return config


def _roots(roots: Roots) -> tuple[str, ...]:
    return tuple(os.fspath(root) for root in roots)


def check_clone(key: str, own: Session, session: Session, bus: Dispatcher | None) -> None:
    """Raise PromptInvalid for a session that the section ``key`` of the session ``own`` cannot be cloned for."""
    reason = ""
    if session.session_id == own.session_id:
        reason = "a clone needs a session with another id, because files and containers are named by it"
    elif bus is not None and bus is not session.bus:
        reason = "the bus is not that of the session"
    if reason:
        raise PromptInvalid(name=key, reason=reason, hint="Use session.clone() and its bus.")

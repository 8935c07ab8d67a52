"""A workspace that starts when it is used, ends when it is idle, and starts again."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Self

from podbot.errors import (
    ChannelLost,
    ContainerError,
    ContainerNotFound,
    PodbotError,
    SandboxDied,
    WorkspaceClosed,
    WorkspaceDied,
)
from podbot.events import Emit, Event, ignore
from podbot.frozen import shown_argument
from podbot.sections.host_mounts import MountPlan
from podbot.sections.host_tree import look_at
from podbot.sections.mount_plan import plan_mounts
from podbot.shell.command_shell import CommandShell
from podbot.shell.validator import CommandValidator
from podbot.suites.backends import Backend, Opened
from podbot.suites.overlay import Overlay, remove_left_behind, workspace_path
from podbot.suites.settings import WorkspaceSettings, checked_ident
from podbot.suites.state import WorkspaceState
from podbot.suites.watchdog import Watchdog
from podbot.suites.workspace_connection import WorkspaceConnection, has_running_jobs
from podbot.tools.files import Files
from podbot.tools.suite import ToolSuite
from podbot.tools.tool_limits import SUITE_SHELL_LIMITS
from podbot.tools.workspace_filesystem import WorkspaceFilesystem

OnChange = Callable[[WorkspaceState | None], object]
"""Called with the state after each start and each use, and with None when the workspace has ended.

The workspace waits for it, so it must not use the workspace.
"""


class LazyWorkspace:
    """A workspace of ``backend``. Any thread may use it, and several calls may run at once.

    ``ident``: names its directory and its container; 1 to 48 of ``a-z 0-9 -``. With ``keep`` its files stay after its
    end, and the next one of the same ``ident`` continues them without copying the mounts again. Nothing is started
    or copied before the first call. A call during which the container ends raises WorkspaceDied; the next one starts
    another container on the same files. A stream or a terminal that nobody reads from is no call. ``files``,
    ``filesystem`` and ``shell``: see :class:`Files`, :class:`WorkspaceFilesystem` and :class:`CommandShell`; their
    calls also raise WorkspaceDied, WorkspaceClosed, WorkspaceInUse, and the errors of a start: ConfigError,
    SessionError, FilesystemError, ContainerError and ToolValidationError. ``clock`` is for the times in the
    state, ``monotonic`` for the limits.

    Raises ToolValidationError for an ``ident``, and for mounts that cannot be copied; TypeError for a ``backend`` and
    ``settings`` that are none.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        ident: str,
        settings: WorkspaceSettings | None = None,
        keep: bool = False,
        on_change: OnChange | None = None,
        emit: Emit = ignore,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        _check(backend, settings)
        self.ident = checked_ident(ident)
        self.name = backend.where(ident)
        self._backend, self._settings, self._keep = backend, settings or WorkspaceSettings(), keep
        self._on_change, self._emit, self._clock, self._monotonic = on_change, emit, clock, monotonic
        self._plan = self._planned()
        self._lock = threading.RLock()  # held while it starts and ends
        self._overlay: Overlay | None = None
        self._opened: Opened | None = None
        self._state: WorkspaceState | None = None
        self._watchdog: Watchdog | None = None
        self._calls = 0
        self._used = 0.0
        self._reason = ""  # why the last container ended
        self._closed = False
        self._pid = 0  # of the process that may remove the files at its exit
        self.directory = workspace_path(backend.overlays(), ident)
        self._connection = WorkspaceConnection(self.in_use)
        root = backend.root(self.directory)
        self.files = Files(self._connection, root, where=self.name)
        self.filesystem = WorkspaceFilesystem(self.files)
        self.shell = self.shell_at(root)

    @property
    def plan(self) -> MountPlan:
        """What its mounts are: found when it was made, and again when they were copied."""
        return self._plan

    @property
    def state(self) -> WorkspaceState | None:
        """None while it does not run."""
        return self._state

    def suite(self, *, read_only: bool = False) -> ToolSuite:
        """The tools on this workspace. ``read_only``: only those that change nothing."""
        return ToolSuite(self.files, self.shell, code_chars=self._backend.code_chars, read_only=read_only)

    def shell_at(self, root: str) -> CommandShell:
        """A shell whose commands run in ``root``, an absolute path where they run, or below it."""
        return CommandShell(
            self._connection,
            name=self._backend.shell_name,
            where=self.name,
            root=root,
            sandboxed=self._backend.sandboxed,
            network_enabled=not self._backend.sandboxed,
            limits=SUITE_SHELL_LIMITS,
            validator=CommandValidator(),
        )

    def start(self) -> WorkspaceState:
        """Start it now, unless it runs. Raises the errors of a start."""
        with self.in_use() as opened:
            return self._state or opened.state

    def stop(self) -> None:
        """End the container with its processes. The files stay, and the next call starts another one."""
        self._shut("it was stopped")

    def discard(self) -> None:
        """End the container and remove the files. The next call starts from the mounts again."""
        with self._lock:
            self._shut("it was stopped")
            self._claimed()  # files of an earlier workspace of this ident are removed, too
            self._release(keep=False)

    def close(self) -> None:
        """End the container, and remove the files unless they are to be kept. Twice is once."""
        atexit.unregister(self._close_at_exit)
        with self._lock:
            self._closed = True
            self._shut("it was closed")
            self._release(keep=self._keep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- for WorkspaceConnection and Watchdog -------------------------------------------------------

    @contextlib.contextmanager
    def in_use(self, only: Opened | None = None) -> Iterator[Opened]:
        """The running workspace for the block, which is a call; started if it does not run.

        ``only``: a part of an earlier call, which ended with that start of the workspace.
        """
        opened = self._begin(only)
        try:
            yield opened
        except (ContainerError, ChannelLost) as error:
            died = self._died(opened, error)
            if died is None:
                raise
            raise died from error
        finally:
            self._end(opened)

    def end_if_over(self, opened: Opened, since: float) -> float | None:
        """End ``opened`` if one of its limits is over. Returns the seconds until the next look; None if it has ended.

        ``since``: when it was started, on the monotonic clock.
        """
        idle, uptime = self._settings.idle_seconds, self._settings.uptime_seconds
        used = self._used  # a call that ends after this may leave a job that is not seen here
        has_jobs = idle is not None and not self._calls and has_running_jobs(opened.connection)
        with self._lock:
            if opened is not self._opened:
                return None
            now, left = self._monotonic(), []
            if has_jobs and idle is not None:
                self._used = now
                left.append(idle / 10)  # so that the time after the end of a job is at most a tenth shorter
            if uptime is not None:
                left.append(since + uptime - now)
                if left[-1] <= 0:
                    self._shut(f"it reached its time limit of {uptime:g} s")
                    return None
            if idle is not None:
                if used == self._used and self._is_idle(idle):
                    self._shut(f"it was idle for {idle:g} s")
                    return None
                left.append(idle if self._calls else self._used + idle - now)
        return max(min(left), 0.0)

    # --- implementation -----------------------------------------------------------------------------

    def _planned(self) -> MountPlan:
        mounts, roots = self._settings.resolved_mounts()
        return plan_mounts(mounts, roots, look_at)

    def _begin(self, only: Opened | None) -> Opened:
        with self._lock:
            if self._closed:
                raise WorkspaceClosed(where=self.name)
            if only is not None and only is not self._opened:
                raise WorkspaceDied(where=self.name, reason=self._reason)
            if self._opened is None:
                self._start()
            assert self._opened is not None  # noqa: S101 - for mypy
            self._calls += 1
            return self._opened

    def _end(self, opened: Opened) -> None:
        with self._lock:
            self._calls -= 1
            self._used = self._monotonic()
            if opened is not self._opened or self._state is None:
                return
            self._state = dataclasses.replace(self._state, last_used_at=self._clock())
            self._tell(self._state)

    def _start(self) -> None:
        overlay = self._claimed()
        if not overlay.has_files():
            self._plan = self._planned()
            overlay.fill(self._plan)
        if self._keep:
            overlay.keep()
        opened = self._backend.open(self.ident, self.directory, self._settings, self._clock(), self._emit)
        self._opened, self._state, self._used = opened, opened.state, self._monotonic()
        try:
            # Now, because this start has removed the containers of killed processes.
            remove_left_behind(self._backend.overlays(), self._emit)
            if self._settings.idle_seconds is not None or self._settings.uptime_seconds is not None:
                self._watchdog = Watchdog(self.ident, functools.partial(self.end_if_over, opened))
                self._watchdog.start()
            self._tell(self._state)
        except BaseException:
            self._shut("its start failed")
            raise

    def _claimed(self) -> Overlay:
        if self._overlay is None:
            self._overlay = Overlay.claim(self._backend.overlays(), self.ident, self._backend.owner)
            atexit.unregister(self._close_at_exit)
            atexit.register(self._close_at_exit)
            self._pid = os.getpid()
        return self._overlay

    def _close_at_exit(self) -> None:
        if os.getpid() == self._pid:  # not in a child that was forked
            self.close()

    def _died(self, opened: Opened, error: PodbotError) -> WorkspaceDied | None:
        """The error for a call whose container has ended; None if it still runs."""
        ended = isinstance(error, SandboxDied | ContainerNotFound) or (
            isinstance(error, ChannelLost) and opened is self._opened and opened.ended()
        )
        with self._lock:
            if opened is self._opened:
                if not ended:
                    return None
                self._shut(error.message)
            return WorkspaceDied(where=self.name, reason=self._reason)

    def _shut(self, reason: str) -> None:
        with self._lock:
            opened, self._opened, self._state = self._opened, None, None
            if opened is None:
                return
            self._reason = reason
            if self._watchdog is not None:
                self._watchdog.stop()
            try:
                opened.close()
            except PodbotError as error:
                message = f"the end of the workspace {self.name} failed: {error}"
                self._emit(Event("warning", "workspace.end_failed", message, {"workspace": self.name}))
            self._tell(None)

    def _tell(self, state: WorkspaceState | None) -> None:
        if self._on_change is not None:
            self._on_change(state)

    def _release(self, *, keep: bool) -> None:
        overlay, self._overlay = self._overlay, None
        if overlay is not None:
            overlay.release(keep=keep, emit=self._emit)

    def _is_idle(self, seconds: float) -> bool:
        return self._calls == 0 and self._monotonic() - self._used >= seconds


def _check(backend: object, settings: object) -> None:
    """Raise TypeError for what is no backend and no settings."""
    if isinstance(backend, type) or not hasattr(backend, "overlays"):
        raise TypeError(
            f"LazyWorkspace(): backend is a podbot.tools.PodmanBackend or LocalBackend, not {shown_argument(backend)}."
            ' Write LazyWorkspace(PodmanBackend(), ident="a").'
        )
    if not isinstance(settings, WorkspaceSettings | None):
        raise TypeError(
            f"LazyWorkspace(): settings is a podbot.tools.WorkspaceSettings or None, not {shown_argument(settings)}."
            ' Write settings=WorkspaceSettings(memory="2g").'
        )

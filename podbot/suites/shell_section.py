"""The section with one tool, podman_shell: a container that is started, used and stopped by it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Self

from podbot.events import Emit, ignore
from podbot.sections.dispatcher import Dispatcher
from podbot.sections.section import Section
from podbot.sections.session_state import Session
from podbot.shell.command_shell import CommandShell
from podbot.suites.backends import PodmanBackend
from podbot.suites.lazy_workspace import LazyWorkspace
from podbot.suites.sandbox_sections import check_clone
from podbot.suites.settings import WorkspaceSettings
from podbot.suites.state import PodmanWorkspace, WorkspaceState
from podbot.tools.container_shell import ContainerShellTool
from podbot.tools.tool_limits import WORKSPACE

SHELL_TEMPLATE = """\
The tool `podman_shell` runs commands in an isolated Linux container powered by Podman, without a network. The action
`exec` runs a command, and starts the container if it does not run; `start` only starts it; `stop` removes it with its
files and processes. Files can be written in `/workspace` and `/tmp`."""


class PodmanShellSection(Section):
    """A container with a shell, which the tool's first use starts. Use it in a ``with`` block, or call :meth:`close`.

    ``image``: None is the configured one. ``name_prefix``: of the container's name, before a dash and the session's id.
    ``workdir``: an absolute path inside, in which commands run. ``environment``: their variables besides the image's.
    ``timeout``: how long the container may run, after which it is removed. ``environ``: variables that select the
    engine and podbot's configuration; None: those of this process. The slice of PodmanWorkspace in the session is empty
    while it does not run. Raises ToolValidationError.
    """

    container_backed = True

    def __init__(
        self,
        *,
        session: Session,
        image: str | None = None,
        name_prefix: str = "podbot-shell",
        workdir: str | None = None,
        environment: Mapping[str, str] | None = None,
        timeout: dt.timedelta | None = None,
        environ: Mapping[str, str] | None = None,
        emit: Emit = ignore,
        key: str = "podman-shell",
        title: str = "Podman Shell",
    ) -> None:
        self.session = session
        self._image, self._prefix, self._workdir, self._environment = image, name_prefix, workdir, environment
        self._timeout, self._environ, self._emit = timeout, environ, emit
        self._workspace = LazyWorkspace(
            PodmanBackend(environ, name_prefix=name_prefix),
            ident=session.session_id.hex,
            settings=WorkspaceSettings(
                image=image,
                environment=environment or {},
                uptime_seconds=None if timeout is None else timeout.total_seconds(),
            ),
            on_change=self._changed,
            emit=emit,
        )
        self._shell = self._workspace.shell_at(workdir or WORKSPACE)
        session[PodmanWorkspace].keep_from_clones()
        super().__init__(title=title, key=key, tools=ContainerShellTool(self).tools())

    def body(self) -> str:
        """See Section."""
        return SHELL_TEMPLATE

    @property
    def shell(self) -> CommandShell:
        """The shell in the container. Reading it starts nothing."""
        return self._shell

    @property
    def container_name(self) -> str:
        """See ContainerShell."""
        return self._workspace.name

    def start(self) -> CommandShell:
        """See ContainerShell."""
        self._workspace.start()
        return self._shell

    def stop(self) -> None:
        """See ContainerShell. Its files are removed, too."""
        self._workspace.discard()

    def close(self) -> None:
        """Remove the container for good. Twice is once."""
        self._workspace.close()

    def clone(self, *, session: Session, bus: Dispatcher | None = None) -> PodmanShellSection:
        """The same section for another session, with a container of its own.

        ``bus``: that session's, if it is named. Raises PromptInvalid when the session has this one's id.
        """
        check_clone(self.key, self.session, session, bus)
        return PodmanShellSection(
            session=session,
            image=self._image,
            name_prefix=self._prefix,
            workdir=self._workdir,
            environment=self._environment,
            timeout=self._timeout,
            environ=self._environ,
            emit=self._emit,
            key=self.key,
            title=self.title,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _changed(self, state: WorkspaceState | None) -> None:
        if isinstance(state, PodmanWorkspace):
            self.session[PodmanWorkspace].seed(state)
        else:
            self.session[PodmanWorkspace].clear()

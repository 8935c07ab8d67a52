"""The section for prompts of the library weakincentives. Import it from ``podbot.integrations.weakincentives``."""

from __future__ import annotations

import dataclasses
import uuid
from dataclasses import dataclass
from typing import Any, Self

from weakincentives.filesystem import Filesystem
from weakincentives.prompt import Section, Tool, ToolContext, ToolResult
from weakincentives.resources import ResourceRegistry
from weakincentives.runtime.session import Replace, Session, SlicePolicy, replace_latest

from podbot.errors import ToolValidationError
from podbot.events import Emit, ignore
from podbot.integrations.weakincentives_filesystem import PodbotFilesystem, PodbotSnapshotFilesystem
from podbot.integrations.weakincentives_params import parameter_guide, with_whole_numbers
from podbot.sections.mount_preview import with_mounts
from podbot.shell.command_shell import CommandShell
from podbot.suites.lazy_workspace import LazyWorkspace
from podbot.suites.sandbox_sections import PodmanSandboxConfig, SandboxConfig
from podbot.suites.state import WorkspaceState
from podbot.suites.virtual_files import VirtualFileSystem
from podbot.tools.contract import AnyTool
from podbot.tools.contract import ToolResult as Outcome
from podbot.tools.files import Files
from podbot.tools.results import DeleteEntry, WriteFile
from podbot.tools.snapshot_filesystem import SnapshotFilesystem
from podbot.tools.snapshot_store import SnapshotStore

KEY, TITLE = "podbot-workspace", "Workspace"


@dataclass(frozen=True, slots=True)
class _NoParams:
    """The section has no parameters."""


class PodbotSection(Section[_NoParams]):
    """A workspace of podbot's with its tools. Nothing starts before a tool, the shell or the files are used.

    ``config``: a PodmanSandboxConfig or an UnsafeLocalSandboxConfig of :mod:`podbot.suites`; with its ``keep``, the
    workspace is named by the session's id. ``session``: gets the slices of PodmanWorkspace or UnsafeLocalWorkspace,
    which is empty while the workspace does not run, and of VirtualFileSystem. A tool that fails does not roll them
    back, because they say what is there. ``emit``: told of warnings. Raises ToolValidationError for mounts that cannot
    be copied.
    """

    def __init__(
        self,
        *,
        session: Session,
        config: SandboxConfig | None = None,
        emit: Emit = ignore,
        key: str = KEY,
        title: str = TITLE,
    ) -> None:
        self._session, self._emit = session, emit
        self._config = config = config or PodmanSandboxConfig()
        self._states = session[config.state_type]
        self._filled = False
        self.workspace = LazyWorkspace(
            config.backend(),
            # Not the session's id: a clone of a session of the library has the same one.
            ident=(session.session_id if config.keep else uuid.uuid4()).hex,
            settings=config.settings(),
            keep=config.keep,
            on_change=self._changed,
            emit=emit,
            clock=config.clock,
        )
        self._suite = self.workspace.suite()
        self._watch()
        super().__init__(
            title=title,
            key=key,
            default_params=_NoParams(),
            tools=[_adapted(tool, accepts_overrides=config.accepts_overrides) for tool in self._suite.tools],
            accepts_overrides=config.accepts_overrides,
        )

    @property
    def session(self) -> Session:
        """The session that the results of its tools change."""
        return self._session

    @property
    def shell(self) -> CommandShell:
        """The shell of the workspace. Reading it starts nothing."""
        return self.workspace.shell

    @property
    def files(self) -> Files:
        """The files of the workspace, as its tools use them. Reading it starts nothing."""
        return self.workspace.files

    def snapshots(self, store: SnapshotStore | None = None) -> PodbotSnapshotFilesystem:
        """One with snapshots, to bind as the prompt's. ``store``: see SnapshotFilesystem; close what this returns."""
        return PodbotSnapshotFilesystem(SnapshotFilesystem(self.workspace.files, store))

    def render_body(self, params: Any, **_: Any) -> str:
        """What the workspace is, the parameters of its tools, and its mounts."""
        del params
        text = f"{self._config.text}\n\n{parameter_guide(self._suite.tools)}"
        return with_mounts(text, self.workspace.plan.previews)

    def clone(self, **kwargs: Any) -> Self:
        """The same section for another ``session``, with a container and files of its own, which are never kept: the
        session may have the id by which this section's kept files are found.

        ``dispatcher``: that session's, if it is named. Raises TypeError, as the library's own sections.
        """
        session, dispatcher = kwargs.get("session"), kwargs.get("dispatcher")
        if not isinstance(session, Session):
            raise TypeError("session is required to clone PodbotSection.")
        if dispatcher is not None and dispatcher is not session.dispatcher:
            raise TypeError("Provided dispatcher must match the target session's dispatcher.")
        config = self._config
        if isinstance(config, PodmanSandboxConfig):
            config = dataclasses.replace(config, keep=False)
        return type(self)(session=session, config=config, emit=self._emit, key=self.key, title=self.title)

    def cleanup(self) -> None:
        """End the workspace and remove its files, unless they are to be kept. Twice is once."""
        self.workspace.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def _watch(self) -> None:
        """Let the session know the workspace, and not what a clone of a session brings of another one."""
        self._states.register(self._config.state_type, replace_latest, policy=SlicePolicy.LOG)
        files = self._session[VirtualFileSystem]
        files.register(WriteFile, _written, policy=SlicePolicy.LOG)
        files.register(DeleteEntry, _removed, policy=SlicePolicy.LOG)
        self._states.clear()
        files.seed(VirtualFileSystem.of(self.workspace.plan))

    def _changed(self, state: WorkspaceState | None) -> None:
        if state is None:
            self._states.clear()
            return
        if not self._filled:
            self._filled = True
            self._session[VirtualFileSystem].seed(VirtualFileSystem.of(self.workspace.plan))
        self._states.seed(state)


class PodbotWorkspaceSection(PodbotSection):
    """A PodbotSection whose files are the prompt's ``Filesystem`` as well.

    The library's adapters for agents then make no temporary directory for their agent: give them a ``cwd``. Without one
    they start it in the program's own working directory.
    """

    @property
    def filesystem(self) -> PodbotFilesystem:
        """The library's Filesystem of the workspace. Reading it starts nothing."""
        return PodbotFilesystem(self.workspace.filesystem)

    def resources(self) -> ResourceRegistry:
        """The filesystem, for the library's policies, feedback, and the context of tools."""
        return ResourceRegistry.build({Filesystem: self.filesystem})


class _Result(ToolResult[Any]):
    """A result whose text is podbot's: podbot's values do not render themselves."""

    __slots__ = ()

    def render(self) -> str:
        return Outcome(self.message, self.value, self.success).render()


def _adapted(tool: AnyTool, *, accepts_overrides: bool) -> Tool[Any, Any]:
    def handle(params: Any, *, context: ToolContext) -> _Result:
        context.beat()
        try:
            done = tool.run(params)
        except ToolValidationError as error:
            done = Outcome.error(str(error))
        context.beat()
        return _Result(done.message, done.value, done.success)

    made: Tool[Any, Any] = Tool[with_whole_numbers(tool.params_type), tool.result_type](
        name=tool.name, description=tool.description, handler=handle, accepts_overrides=accepts_overrides
    )
    return made


def _latest(view: Any) -> VirtualFileSystem:
    return view.latest() or VirtualFileSystem()


# Registering them twice, as in a clone of a session, changes nothing: the second one finds what the first one did.
def _written(view: Any, event: WriteFile, *, context: object) -> Replace[VirtualFileSystem]:
    del context
    return Replace((_latest(view).written(event),))


def _removed(view: Any, event: DeleteEntry, *, context: object) -> Replace[VirtualFileSystem]:
    del context
    return Replace((_latest(view).removed(event),))

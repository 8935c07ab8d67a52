"""What the server needs of a workspace, which `podbot.suites` makes on either backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from podbot.mcp.offered_mounts import OfferedMount
from podbot.sections.host_mounts import MountPlan
from podbot.shell.types import JobShell
from podbot.suites import ExportedPatch
from podbot.tools.file_port import FilePort
from podbot.tools.results import FileInfo


class ReadableFiles(FilePort, Protocol):
    """Files whose size can be asked for before they are read."""

    def stat(self, path: Sequence[str]) -> FileInfo:
        """One entry. Raises as the other calls do."""
        ...


class Workspace(Protocol):
    """A workspace that starts with its first use. Any thread may use it, several at once."""

    @property
    def files(self) -> ReadableFiles:
        """Its files."""
        ...

    @property
    def shell(self) -> JobShell:
        """Its commands; needs ``SUITE_SHELL_LIMITS``."""
        ...

    @property
    def state(self) -> object | None:
        """None while it does not run."""
        ...

    @property
    def plan(self) -> MountPlan:
        """What was, or will be, copied into it."""
        ...

    @property
    def directory(self) -> str:
        """Its files on this host; missing before its first start."""
        ...

    def start(self) -> object:
        """Start it, if it does not run. Raises ContainerError, FilesystemError and ToolError subclasses."""
        ...

    def remove(self) -> tuple[str, ...]:
        """End and remove it, and say what was not removed. Calls in other threads fail then. Twice is once."""
        ...


MakeWorkspace = Callable[[str, Sequence[OfferedMount]], Workspace]
"""Makes a workspace of that identity with copies of these mounts, not started. Raises ToolValidationError."""


class ExportPatch(Protocol):
    """The changes of the workspace in that directory of this host, since it was filled as the plan says.

    ``mount``: where one mount was copied to, for its changes alone, by paths relative to it; None: all, by paths
    relative to the workspace. Raises ToolValidationError, and FilesystemError subclasses.
    """

    def __call__(self, plan: MountPlan, directory: str, *, mount: str | None) -> ExportedPatch: ...

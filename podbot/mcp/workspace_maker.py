"""Makes the workspaces of a server on one of the backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podbot.events import Emit, Event
from podbot.mcp.offered_mounts import OfferedMount
from podbot.mcp.workspace_port import Workspace
from podbot.suites import LazyWorkspace, LocalBackend, PodmanBackend, WorkspaceSettings
from podbot.suites.backends import Backend

IDLE_SECONDS = 1800.0  # without a call and a running job; then the container is removed, and the files stay
_LEFT = ("workspace.end_failed", "workspace.not_removed")  # kinds of events


class RemovableWorkspace(LazyWorkspace):
    """A workspace that says what of it was not removed."""

    def __init__(self, backend: Backend, *, ident: str, settings: WorkspaceSettings, emit: Emit) -> None:
        self._not_removed: list[str] = []

        def report(event: Event) -> None:
            if event.kind in _LEFT:
                self._not_removed.append(event.message)
            emit(event)

        super().__init__(backend, ident=ident, settings=settings, emit=report)

    def remove(self) -> tuple[str, ...]:
        """Close it, and return the messages of what failed."""
        self._not_removed.clear()  # an idle container whose end failed is no matter any more
        self.close()
        return tuple(self._not_removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceMaker:
    """A :data:`~podbot.mcp.workspace_port.MakeWorkspace`.

    ``backend``: podman or unsafe-local. ``image``: None is the configured one. ``environ``: selects engine and
    configuration.
    """

    backend: str
    image: str | None
    environ: Mapping[str, str]
    emit: Emit

    @property
    def sandboxed(self) -> bool:
        """Whether its workspaces are isolated from this host."""
        return self.backend == "podman"

    @property
    def code_chars(self) -> int | None:
        """The most characters of ``evaluate_python``."""
        return self._backend().code_chars

    def __call__(self, ident: str, mounts: Sequence[OfferedMount]) -> Workspace:
        """A workspace with copies of these mounts. Raises ToolValidationError."""
        settings = WorkspaceSettings(
            mounts=tuple(offered.mount for offered in mounts),
            allowed_host_roots=tuple(dict.fromkeys(offered.root for offered in mounts)),
            image=self.image,
            idle_seconds=IDLE_SECONDS,
        )
        return RemovableWorkspace(self._backend(), ident=ident, settings=settings, emit=self._report)

    def _report(self, event: Event) -> None:
        """What a plan notes, such as that it mounts the workspace's directory, is podbot's own choice here."""
        if event.kind != "plan.note":
            self.emit(event)

    def _backend(self) -> PodmanBackend | LocalBackend:
        return PodmanBackend(self.environ) if self.sandboxed else LocalBackend(self.environ)

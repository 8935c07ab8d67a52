"""What becomes of a container whose agent has ended: it is removed, or kept because it has unsaved work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podbot.engine.port import Engine
from podbot.errors import ContainerNotFound
from podbot.events import Emit, Event
from podbot.session.network import remove_sandbox
from podbot.session.sessions import remove_directory

if TYPE_CHECKING:
    from podbot.launch.types import Keep, SandboxPlan
    from podbot.session.sessions import SessionDirectory

STOP_SECONDS = 2  # what a kept container's processes get before KILL


@dataclass(frozen=True)
class Disposal:
    """A session's container, by name, and what its plan says of its end. ``clone``: its directory inside.

    ``files``: a directory on the host that goes with the container.
    """

    container: str
    labels: Mapping[str, str]
    keep: Keep
    clone: str | None = None
    files: str | None = None

    @classmethod
    def of(cls, plan: SandboxPlan) -> Disposal:
        """The plan's own."""
        clone = plan.container.workdir if plan.source == "github_clone" else None
        return cls(plan.container.name, plan.container.labels, plan.keep, clone, plan.files_dir)


def dispose(engine: Engine, what: Disposal, directory: SessionDirectory, emit: Emit, *, agent_ran: bool = True) -> None:
    """Remove the container, or keep it, and say so. Raises ContainerError subclasses."""
    unsaved = _worth_keeping(engine, what, emit) if agent_ran else None
    # Asked after the look, which `podbot stop` breaks off when it comes in the middle of it.
    if agent_ran and what.keep == "when_unsaved" and directory.being_stopped():
        return  # it looks for itself, and then owns the container and its record
    if unsaved is not None:
        _keep(engine, what, directory, emit, unsaved)
        return
    remove_sandbox(engine, what.container, what.container)
    if what.files is not None:
        remove_directory(what.files)
    directory.move("gone")
    emit(Event("debug", "container.removed", f"removed the sandbox {what.container}"))


def _worth_keeping(engine: Engine, what: Disposal, emit: Emit) -> str | None:
    """What to say of a container that is to be kept; None for one that is not."""
    if what.keep != "when_unsaved" or what.clone is None:
        return "" if what.keep == "always" else None
    from podbot.session.unsaved import examine, since_of

    emit(Event("info", "clone.examine", f"looking for unsaved work in {what.clone}"))
    unsaved = examine(engine, what.container, what.clone, since_of(what.labels, 0))
    return str(unsaved) if unsaved else None


def _keep(engine: Engine, what: Disposal, directory: SessionDirectory, emit: Emit, unsaved: str) -> None:
    try:
        engine.stop(what.container, seconds=STOP_SECONDS)
    except ContainerNotFound:
        directory.move("gone")
        return
    directory.move("stopped")
    emit(kept_event(what.container, unsaved))


def kept_event(name: str, unsaved: str = "") -> Event:
    """The notice of a session that was kept; ``unsaved``: what is in it, when it was kept for that."""
    text = f"kept the sandbox {name}, stopped: `podbot start {name}` restarts it, `podbot stop --rm {name}` removes it"
    if unsaved:
        text = (
            f"kept the sandbox {name}, stopped, because it has unsaved work: {unsaved}. Look at it with"
            f" `podbot start {name}` and `podbot exec {name} git status`; `podbot stop --rm {name}` removes it all"
        )
    return Event("notice", "container.kept", text, {"session": name, "unsaved": unsaved})

"""Removing a container after its agent has ended, or keeping it because it has unsaved work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.engine.port import Engine
from podbot.errors import ContainerNotFound
from podbot.events import Emit, Event
from podbot.frozen import Frozen
from podbot.session.directory import remove_directory
from podbot.session.network import remove_sandbox
from podbot.session.stuck_servers import end_stuck

if TYPE_CHECKING:
    from podbot.launch.types import Keep, SandboxPlan
    from podbot.session.directory import SessionDirectory

STOP_SECONDS = 2  # between TERM and KILL for the processes of a container that is kept


class Disposal(Frozen):
    """A session's container, by name, and how its plan disposes of it. ``clone`` is the clone's directory inside.

    ``files`` is a directory on the host that is removed with the container.
    """

    container: str
    labels: Mapping[str, str]
    keep: Keep
    clone: str | None = None
    files: str | None = None

    @classmethod
    def of(cls, plan: SandboxPlan) -> Disposal:
        """The disposal that the plan asks for."""
        clone = plan.container.workdir if plan.source == "github_clone" else None
        return cls(plan.container.name, plan.container.labels, plan.keep, clone, plan.files_dir)


def dispose(
    engine: Engine,
    what: Disposal,
    directory: SessionDirectory,
    emit: Emit,
    *,
    agent_ran: bool = True,
    died: bool = False,
) -> None:
    """Remove the container or keep it, and report which. ``died``: it had ended before, so this is not its end.

    Raises ContainerError subclasses.
    """
    unsaved = _worth_keeping(engine, what, directory.record.guest, emit) if agent_ran else None
    # Checked after the search for unsaved work, because a `podbot stop` can interrupt that search.
    if agent_ran and what.keep == "when_unsaved" and directory.being_stopped():
        return  # podbot stop searches by itself, and then owns the container and its record
    if not died:
        directory.show_leaving()
    if unsaved is not None:
        _keep(engine, what, directory, emit, unsaved)
        return
    remove_sandbox(engine, what.container, what.container, ended=lambda: end_stuck(directory.record, emit))
    if what.files is not None:
        remove_directory(what.files)
    directory.move("gone")
    emit(Event("debug", "container.removed", f"removed the sandbox {what.container}"))


def _worth_keeping(engine: Engine, what: Disposal, guest: str | None, emit: Emit) -> str | None:
    """The unsaved work of a container that is to be kept, or empty when it is always kept; None to remove it.

    ``guest``: see ``run_exec``.
    """
    if what.keep != "when_unsaved" or what.clone is None:
        return "" if what.keep == "always" else None
    from podbot.session.unsaved import examine, since_of

    emit(Event("info", "clone.examine", f"looking for unsaved work in {what.clone}"))
    unsaved = examine(engine, what.container, what.clone, since_of(what.labels, 0), guest=guest)
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
    """The notice that a session was kept; ``unsaved`` describes the unsaved work that was the reason, if any."""
    text = f"kept the sandbox {name}, stopped: `podbot start {name}` restarts it, `podbot stop --rm {name}` removes it"
    if unsaved:
        text = (
            f"kept the sandbox {name}, stopped, because it has unsaved work: {unsaved}. Look at it with"
            f" `podbot start {name}` and `podbot exec {name} git status`; `podbot stop --rm {name}` removes it all"
        )
    return Event("notice", "container.kept", text, {"session": name, "unsaved": unsaved})

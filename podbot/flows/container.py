"""A started container as one context manager: whatever happens inside, it is gone (or kept) afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from podbot.credentials.pack import pack, upload
from podbot.engine.port import Engine
from podbot.errors import ContainerError, ContainerNotFound, CreateFailed
from podbot.events import Emit, Event
from podbot.flows.own_files import place_files
from podbot.flows.sessions import SessionDirectory
from podbot.flows.workspace import verified_mount
from podbot.launch.labels import LABEL
from podbot.launch.types import LaunchPlan
from podbot.streams.wake import Wake

CREATED = f"{LABEL}.created"
STOP_SECONDS = 2  # what a kept container's processes get before KILL


@contextlib.contextmanager
def started_container(
    engine: Engine, plan: LaunchPlan, directory: SessionDirectory, wake: Wake, emit: Emit
) -> Iterator[str]:
    """Create, furnish and start ``plan.container``, and clone into it; yields its id.

    The caller has ``wake`` listening. A clean-up that fails after another error leaves that error, and the
    session's record, for the next command to report. A container in which no agent ran is never kept.
    """
    directory.has_container = True
    ready = False
    try:
        container = _started(engine, plan, wake, emit)
        if plan.clone is not None:
            from podbot.flows.clone import Inside, clone_repository

            clone_repository(Inside(engine, container, plan.container.image, wake), plan.clone, emit)
        ready = True
        yield container
    except BaseException:
        with contextlib.suppress(ContainerError):
            _clean_up(engine, plan, directory, emit, agent_ran=ready)
        raise
    _finish(engine, plan, directory, emit, agent_ran=True)


def _started(engine: Engine, plan: LaunchPlan, wake: Wake, emit: Emit) -> str:
    emit(Event("info", "container.create", f"creating the sandbox {plan.session} from {plan.container.image}"))
    place_files(plan)
    with wake.interruptible():
        credentials = pack(plan, emit)  # before there is anything to clean up
    with contextlib.ExitStack() as checks:
        for mount in plan.container.mounts:
            checks.enter_context(verified_mount(mount))
        # Not to be interrupted: the engine would go on and make the container after our clean-up.
        container = engine.create(plan.container)
        _check_met(engine, container, plan, emit)
        with wake.interruptible():
            upload(engine, container, credentials, emit)
        emit(Event("info", "container.start", "starting the sandbox"))
        with wake.interruptible():
            engine.start(container)
    return container


def _clean_up(engine: Engine, plan: LaunchPlan, directory: SessionDirectory, emit: Emit, *, agent_ran: bool) -> None:
    """After an error, also before the container's id arrived, so it is looked for by name.

    The lock keeps other sessions off that name, but not other containers: with an image that is
    missing the engine never compares names. What lacks this very session's labels is not touched.
    """
    try:
        found = engine.inspect(plan.container.name)
    except ContainerNotFound:
        directory.has_container = False
        return
    if found.labels.items() >= plan.container.labels.items():
        _finish(engine, plan, directory, emit, agent_ran=agent_ran)
    else:
        directory.has_container = False
        directory.name_taken()


def _finish(engine: Engine, plan: LaunchPlan, directory: SessionDirectory, emit: Emit, *, agent_ran: bool) -> None:
    what = _worth_keeping(engine, plan, emit) if agent_ran else None
    # Asked after the look, which `podbot stop` breaks off when it comes in the middle of it.
    if agent_ran and plan.keep == "when_unsaved" and directory.being_stopped():
        return  # it looks for itself, and the container and its record are that one's
    if what is not None:
        _keep(engine, plan, directory, emit, what)
        return
    engine.remove(plan.container.name)
    directory.has_container = False
    emit(Event("debug", "container.removed", f"removed the sandbox {plan.session}"))


def _worth_keeping(engine: Engine, plan: LaunchPlan, emit: Emit) -> str | None:
    """What to say of a container that is to be kept; None for one that is not."""
    if plan.keep != "when_unsaved" or plan.clone is None:
        return "" if plan.keep == "always" else None
    from podbot.flows.unsaved import examine

    emit(Event("info", "clone.examine", f"looking for unsaved work in {plan.clone.directory}"))
    since = plan.container.labels.get(CREATED, "")
    unsaved = examine(engine, plan.container.name, plan.clone.directory, since)
    return str(unsaved) if unsaved else None


def _keep(engine: Engine, plan: LaunchPlan, directory: SessionDirectory, emit: Emit, unsaved: str) -> None:
    name = plan.container.name
    try:
        engine.stop(name, seconds=STOP_SECONDS)
    except ContainerNotFound:
        directory.has_container = False
        return
    directory.record(kept=True)
    emit(kept_event(name, unsaved))


def kept_event(name: str, unsaved: str = "") -> Event:
    """The notice of a session that was kept; ``unsaved``: what is in it, when it was kept for that."""
    text = f"kept the sandbox {name}, stopped: `podman start {name}` wakes it, `podbot stop --rm {name}` removes it"
    if unsaved:
        text = (
            f"kept the sandbox {name}, stopped, for what is only there: {unsaved}. Get at it with"
            f" `podman start {name}` and `podbot exec {name} -- git status`; `podbot stop --rm {name}` removes it all"
        )
    return Event("notice", "container.kept", text, {"session": name, "unsaved": unsaved})


def _check_met(engine: Engine, container: str, plan: LaunchPlan, emit: Emit) -> None:
    """Confinement that the engine dropped in silence ends the start; a dropped limit is said aloud."""
    for key, wanted, got in engine.unmet(container, plan.container):
        if key in ("sandbox.runtime", "sandbox.profile"):
            reason = f"it accepted {key} = {wanted} and did not apply it (it has {got or 'nothing'})"
            raise CreateFailed(container=plan.session, image=plan.container.image, reason=reason)
        text = f"this engine does not enforce {key} = {wanted} (it has {got})"
        emit(Event("warning", "limit.unmet", text, {"key": key, "wanted": wanted, "got": got}))

"""A started container as one context manager: whatever happens inside, it is gone (or kept) afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from podbot.credentials.pack import pack, upload
from podbot.engine.port import Engine
from podbot.errors import ContainerError, ContainerNotFound, CreateFailed
from podbot.events import Emit, Event
from podbot.flows.gitconfig import place_gitconfig
from podbot.flows.sessions import SessionDirectory
from podbot.flows.workspace import verified_mount
from podbot.launch.types import LaunchPlan
from podbot.streams.wake import Wake

STOP_SECONDS = 2  # what a kept container's processes get before KILL


@contextlib.contextmanager
def started_container(
    engine: Engine, plan: LaunchPlan, directory: SessionDirectory, wake: Wake, emit: Emit
) -> Iterator[str]:
    """Create, furnish and start ``plan.container``; yields its id. The caller has ``wake`` listening.

    A clean-up that fails after another error leaves that error, and the session's record, for the
    next command to report. A container in which no agent ran is never kept.
    """
    directory.has_container = True
    started = False
    try:
        container = _started(engine, plan, wake, emit)
        started = True
        yield container
    except BaseException:
        with contextlib.suppress(ContainerError):
            _clean_up(engine, plan, directory, emit, keep=started and plan.keep)
        raise
    _finish(engine, plan, directory, emit, keep=plan.keep)


def _started(engine: Engine, plan: LaunchPlan, wake: Wake, emit: Emit) -> str:
    emit(Event("info", "container.create", f"creating the sandbox {plan.session} from {plan.container.image}"))
    place_gitconfig(plan)
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


def _clean_up(engine: Engine, plan: LaunchPlan, directory: SessionDirectory, emit: Emit, *, keep: bool) -> None:
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
        _finish(engine, plan, directory, emit, keep=keep)
    else:
        directory.has_container = False
        directory.name_taken()


def _finish(engine: Engine, plan: LaunchPlan, directory: SessionDirectory, emit: Emit, *, keep: bool) -> None:
    if keep:
        _keep(engine, plan, directory, emit)
        return
    engine.remove(plan.container.name)
    directory.has_container = False
    emit(Event("debug", "container.removed", f"removed the sandbox {plan.session}"))


def _keep(engine: Engine, plan: LaunchPlan, directory: SessionDirectory, emit: Emit) -> None:
    name = plan.container.name
    try:
        engine.stop(name, seconds=STOP_SECONDS)
    except ContainerNotFound:
        directory.has_container = False
        return
    directory.record(kept=True)
    text = f"kept the sandbox {name}, stopped: `podman start {name}` wakes it, `podbot stop --rm {name}` removes it"
    emit(Event("notice", "container.kept", text, {"session": name}))


def _check_met(engine: Engine, container: str, plan: LaunchPlan, emit: Emit) -> None:
    """Confinement that the engine dropped in silence ends the start; a dropped limit is said aloud."""
    for key, wanted, got in engine.unmet(container, plan.container):
        if key in ("sandbox.runtime", "sandbox.profile"):
            reason = f"it accepted {key} = {wanted} and did not apply it (it has {got or 'nothing'})"
            raise CreateFailed(container=plan.session, image=plan.container.image, reason=reason)
        text = f"this engine does not enforce {key} = {wanted} (it has {got})"
        emit(Event("warning", "limit.unmet", text, {"key": key, "wanted": wanted, "got": got}))

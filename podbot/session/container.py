"""A started container as one context manager: whatever happens inside, it is gone (or kept) afterwards."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from podbot.credentials.pack import Bundle, pack, upload
from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import ContainerNotFound, CreateFailed, PodbotError, StartFailed
from podbot.events import Emit, Event
from podbot.launch.resources.clone import ClonePlan
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.launch.types import SandboxPlan
from podbot.session.confined import check_filtered
from podbot.session.degraded import unmet_limits, with_less
from podbot.session.disk_notice import low_disks
from podbot.session.disposal import Disposal, dispose
from podbot.session.network import isolate, remove_network
from podbot.session.own_files import place_files
from podbot.session.repository import check_linked_git
from podbot.session.sessions import SessionDirectory
from podbot.session.workspace import verified_mount
from podbot.streams.wake import Wake


@contextlib.contextmanager
def started_container(
    engine: Engine,
    plan: SandboxPlan,
    directory: SessionDirectory,
    wake: Wake,
    emit: Emit,
    *,
    before: Callable[[], None] = lambda: None,
) -> Iterator[str]:
    """Create, furnish and start ``plan.container``, and clone into it; yields its id.

    The caller has ``wake`` listening. A clean-up that fails after another error leaves that error, and the
    session's record, for the next command to report. A container in which no agent ran is never kept. One that was
    handed over is left to whoever has it now. ``before`` is called before anything runs inside, and may wait.
    """
    directory.has_container = True
    ready = False
    try:
        container = _started(engine, plan, wake, emit, before)
        if (clone := plan.find(ClonePlan)) is not None:
            from podbot.session.clone import Inside, clone_repository

            clone_repository(Inside(engine, container, plan.container.image, wake), clone, emit)
        ready = True
        yield container
    except BaseException as cause:
        if not directory.handed_over:
            try:
                _clean_up(engine, plan, directory, emit, agent_ran=ready)
            except PodbotError as exc:  # the error that ends the session is the one to report, once
                if type(exc) is not type(cause):
                    text = f"the sandbox {plan.session} may be left behind: {exc.message}"
                    about = {"session": plan.session, "error": type(exc).__name__}
                    emit(Event("warning", "container.left", text, about))
        raise
    if not directory.handed_over:
        dispose(engine, Disposal.of(plan), directory, emit)


def _started(engine: Engine, plan: SandboxPlan, wake: Wake, emit: Emit, before: Callable[[], None]) -> str:
    emit(Event("info", "container.create", f"creating the sandbox {plan.session} from {plan.container.image}"))
    place_files(plan, emit)
    with wake.interruptible():
        credentials = pack(
            plan.find(CredentialsPlan) or CredentialsPlan(), emit
        )  # before there is anything to clean up
    with contextlib.ExitStack() as checks:
        for mount in plan.container.mounts:
            checks.enter_context(verified_mount(mount))
        emit = _once(emit)
        lacking: list[Event] = []  # reported once it has started
        while True:
            try:
                container = _attempt(engine, plan, credentials, wake, emit, before=before)
            except (CreateFailed, StartFailed) as exc:
                fewer = with_less(plan, exc.reason)
                if fewer is None or not _removed(engine, plan):
                    raise
                plan, event = fewer
                lacking.append(event)
                wake.check()
            else:
                for event in lacking:
                    emit(event)
                return container


def _attempt(
    engine: Engine, plan: SandboxPlan, credentials: Bundle, wake: Wake, emit: Emit, *, before: Callable[[], None]
) -> str:
    check_linked_git(plan, os.getuid())
    # Not to be interrupted: the engine would go on and make the container after our clean-up.
    container = engine.create(plan.container)
    _check_met(engine, container, plan, emit)
    isolate(engine, container, plan, emit)
    with wake.interruptible():
        upload(engine, container, credentials, emit)
    with wake.interruptible():
        before()
    emit(Event("info", "container.start", "starting the sandbox"))
    with wake.interruptible():
        engine.start(container)
    if engine.local:
        found = engine.inspect(container)
        check_filtered(found, plan)
        for event in low_disks(plan.workspace, found.storage):
            emit(event)
    return container


def _once(emit: Emit) -> Emit:
    """``emit`` without what a second attempt says again."""
    told: list[Event] = []

    def once(event: Event) -> None:
        if event not in told:
            told.append(event)
            emit(event)

    return once


def _removed(engine: Engine, plan: SandboxPlan) -> bool:
    """Whether the name is free of what this session created. An error here is not the one to report."""
    try:
        found = engine.inspect(plan.container.name)
        if not _is_ours(found, plan):
            return False
        engine.remove(found.id)
    except ContainerNotFound:
        return True
    except PodbotError:
        return False
    return True


def _is_ours(found: ContainerInfo, plan: SandboxPlan) -> bool:
    return found.labels.items() >= plan.container.labels.items()


def _clean_up(engine: Engine, plan: SandboxPlan, directory: SessionDirectory, emit: Emit, *, agent_ran: bool) -> None:
    """After an error, also before the container's id arrived, so it is looked for by name.

    The lock keeps other sessions off that name, but not other containers: with an image that is
    missing the engine never compares names. What lacks this very session's labels is not touched.
    """
    try:
        found = engine.inspect(plan.container.name)
    except ContainerNotFound:
        remove_network(engine, plan.session)
        directory.has_container = False
        return
    if _is_ours(found, plan):
        dispose(engine, Disposal.of(plan), directory, emit, agent_ran=agent_ran)
    else:
        directory.has_container = False
        directory.name_taken()


def _check_met(engine: Engine, container: str, plan: SandboxPlan, emit: Emit) -> None:
    """Confinement that the engine dropped in silence ends the start; a dropped limit is said aloud."""
    dropped = []
    for unmet in engine.unmet(container, plan.container):
        if unmet.key in ("sandbox.runtime", "sandbox.profile"):
            reason = f"it accepted {unmet.key} = {unmet.wanted} and did not apply it (it has {unmet.got or 'nothing'})"
            raise CreateFailed(container=plan.session, image=plan.container.image, reason=reason)
        dropped.append(unmet)
    if dropped:
        emit(unmet_limits(plan, dropped))

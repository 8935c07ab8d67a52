"""``podbot start``: restart a kept session's container with its resources, to run without a podbot process.

A record is not trusted until it agrees with the engine's container and with this host. After any failure the
container is stopped and has no token.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping

from podbot.engine.port import BindMount, ContainerInfo, Engine
from podbot.errors import (
    AlreadyStarted,
    CreateFailed,
    MountRefused,
    PodbotError,
    SandboxPaused,
    SessionExists,
    SessionNotRestorable,
)
from podbot.events import Emit, Event
from podbot.frozen import Frozen, replace
from podbot.launch.mount_paths import checked_source
from podbot.launch.names import LABEL, RESOURCES, keep_of
from podbot.launch.own_file import files_directory
from podbot.launch.publish import port_notes, public_notes
from podbot.launch.refused_paths import within
from podbot.launch.resources.credentials import copied_targets
from podbot.launch.seccomp import profile_path
from podbot.launch.types import HostFacts, LaunchRequest, SandboxPlan
from podbot.places import runtime_root
from podbot.session.container import check_met, start_container
from podbot.session.directory import left_session
from podbot.session.disk_notice import low_disks
from podbot.session.disposal import STOP_SECONDS
from podbot.session.flags import is_live
from podbot.session.guarding import SCANNER, Scanner, report_left
from podbot.session.host_paths import path_facts, with_protected
from podbot.session.mount_check import check_mapped, verified_mount
from podbot.session.network import isolate, public_servers
from podbot.session.own_files import place_files
from podbot.session.plan_json import NotAPlan, plan_from
from podbot.session.record import SessionRecord, write_record
from podbot.session.repository import check_linked_git
from podbot.session.resources.every import opened_resources
from podbot.session.resources.resource import Opening
from podbot.session.restore import lasting_record
from podbot.session.seccomp_filter import check_filtered
from podbot.session.session_names import session_meant
from podbot.streams.wake import Wake

Facts = Callable[[LaunchRequest], HostFacts]
"""Collects the current facts of this host."""


class StartResult(Frozen):
    """A restarted session. ``credentials``: in-container paths of the families that were copied."""

    session: str
    credentials: tuple[str, ...] = ()


def start_session(
    engine: Engine,
    environ: Mapping[str, str],
    name: str,
    *,
    facts: Facts,
    wake: Wake,
    emit: Emit,
    scanner: Scanner = SCANNER,
) -> StartResult:
    """Restart the kept session ``name``, of whose name a part may be enough.

    ``scanner``: the guard's. Raises ContainerNotFound, AmbiguousName, NotOurs, SandboxPaused, AlreadyStarted,
    SessionNotRestorable, SessionRecordUnknown, MountRefused, the errors of a first start, and Interrupted when a signal
    arrived before it was done.
    """
    container = session_meant(engine, name)
    session = container.name
    if not engine.local:
        raise _refused(session, "its engine is on another host", "Run podbot on that host.")
    path = os.path.join(runtime_root(environ), session)
    _check_not_started(engine, container, path)
    _check_kept(container)
    record = lasting_record(engine, environ, container)
    with wake.listening(), _unless_held(session), left_session(path, otherwise=record) as directory:
        assert directory is not None  # noqa: S101 - there is a record by now
        container = engine.inspect(container.id)  # again, now that the lock keeps others from starting it
        _check_state(directory.record, container)
        plan = startable_plan(directory.record, container, facts)
        engine.stop(container.id, seconds=STOP_SECONDS)  # the engine may have lost a run that continues
        if directory.record.state == "detached":  # its container has ended since
            directory.move("stopped")
        directory.move("starting")
        try:
            _bring_back(Opening(engine, plan, directory, wake, emit, again=True, scanner=scanner), container)
        except BaseException:
            with contextlib.suppress(PodbotError):
                if directory.record.state == "starting":
                    directory.move("stopped")
            raise
    warnings = public_notes(plan.container.ports)
    for note in port_notes(plan.container.ports):
        emit(Event("warning" if note in warnings else "notice", "plan.note", note))
    if lost := directory.record.secrets:
        text = (
            f"values of variables are not kept, so {session} has no {', '.join(lost)}: pass them with `podbot exec -e`"
        )
        emit(Event("notice", "session.variables", text, {"session": session, "names": list(lost)}))
    emit(Event("info", "session.started", f"started {session}", {"session": session}))
    return StartResult(session, copied_targets(plan))


def _check_not_started(engine: Engine, container: ContainerInfo, path: str) -> None:
    if container.state == "paused":
        raise SandboxPaused(container=container.name, engine_hint=engine.words.continues(container.name))
    running = container.state == "running"
    if is_live(path) or (running and keep_of(container.labels) == "never"):
        state = AlreadyStarted.RUNNING if running else AlreadyStarted.CHANGING
        raise AlreadyStarted(session=container.name, state=state)


@contextlib.contextmanager
def _unless_held(session: str) -> Iterator[None]:
    """The error for a session that another podbot has taken since it was looked at."""
    try:
        yield
    except SessionExists as exc:
        raise AlreadyStarted(session=session, state=AlreadyStarted.CHANGING) from exc


def _check_kept(container: ContainerInfo) -> None:
    if keep_of(container.labels) == "never":
        hint = "Remove it."
        raise _refused(container.name, "it is a session that is not kept", hint)


def _check_state(record: SessionRecord, container: ContainerInfo) -> None:
    session = record.session
    if record.state == "detached" and container.state == "running":
        raise AlreadyStarted(session=session)
    if container.state not in ("exited", "stopped"):
        reason = f"its container is {container.state}, and podbot has not started it"
        raise _refused(session, reason, "Stop it.")
    if record.state not in ("stopped", "detached"):
        reason = "its podbot was killed, and it has not been cleaned up yet"
        raise _refused(session, reason, "Stop it first.")


def startable_plan(record: SessionRecord, container: ContainerInfo, facts: Facts) -> SandboxPlan:
    """The record's plan, if the container, this host's directories and the mount policy agree with it.

    Nothing is changed. Raises SessionNotRestorable and MountRefused.
    """
    hint = "Remove it; the engine's own program can still start the container."
    plan = _recorded_plan(record, hint)
    found = facts(LaunchRequest(name=record.session, trusted_workspace=True))
    runtime = os.path.join(found.runtime_dir, record.session)
    created = container.labels.get(f"{LABEL}.created", "")
    files = files_directory(plan.keep, record.session, runtime, replace(found, created=created))
    if (plan.runtime_dir, plan.files_dir) != (runtime, files):
        raise _refused(record.session, f"its directories were {plan.runtime_dir} and {plan.files_dir}", hint)
    if not (_is_of(plan, record, container) and _has_own_places(plan, found)):
        raise _refused(record.session, "its container is not the one of its record, or the record was changed", hint)
    _check_mounts(plan, found)
    resources = {name: resource.refreshed(found) for name, resource in plan.resources.items()}
    return replace(plan, resources=resources)


def _recorded_plan(record: SessionRecord, hint: str) -> SandboxPlan:
    if record.plan is None:
        raise _refused(record.session, "its record has no plan, because an older podbot wrote it", hint)
    try:
        return plan_from(record.plan)
    except NotAPlan as exc:
        raise _refused(record.session, f"its record was changed, or written by another version ({exc})", hint) from exc


def _is_of(plan: SandboxPlan, record: SessionRecord, container: ContainerInfo) -> bool:
    """Whether the container, as the engine describes it, matches the record."""
    spec = plan.container
    mounts = {BindMount(mount.source, mount.target, mount.read_only) for mount in (*spec.mounts, *spec.files)}
    return (
        record.container == container.id
        and plan.session == spec.name == container.name
        and container.labels.items() >= spec.labels.items()
        and container.labels.get(RESOURCES, "") == ",".join(plan.resources)
        and container.mounts == mounts
    )


def _has_own_places(plan: SandboxPlan, facts: HostFacts) -> bool:
    """Whether the paths that podbot creates and removes for the session are podbot's own on this host."""
    seccomp = plan.container.security.seccomp
    own_profile = seccomp is None or os.path.dirname(seccomp) == os.path.dirname(profile_path(facts.state_dir))
    return own_profile and all(resource.agrees_with(plan, facts) for resource in plan.resources.values())


def _check_mounts(plan: SandboxPlan, facts: HostFacts) -> None:
    """Apply the mount policy as at the first start. Each source counts as an allowed root. Raises MountRefused."""
    sources = {mount.source for mount in plan.container.mounts}
    tops = sorted(path for path in sources if not any(within(path, other) for other in sources - {path}))
    found = [path_facts(path, path) for path in tops]
    facts = with_protected(replace(facts, extra_mounts=tuple(found)))
    for path in found:
        if checked_source(path, _ORIGIN, [path], facts) != path.given:
            raise MountRefused(
                path=path.given,
                origin=_ORIGIN,
                reason=f"a part of its path became a link, which leads to {path.resolved}",
                hint="Check what changed there, then start again.",
            )


def _bring_back(session: Opening, container: ContainerInfo) -> None:
    """Start the container and leave the session detached. If this raises, it is stopped and the token removed."""
    engine, plan, wake, directory = session.engine, session.plan, session.wake, session.directory
    place_files(plan, session.emit, again=True)
    write_record(plan.files_dir, replace(directory.record, state="stopped"))
    with opened_resources(session) as resources:
        try:
            with contextlib.ExitStack() as checks:
                for mount in plan.container.mounts:
                    checks.enter_context(verified_mount(mount))
                check_linked_git(plan, os.getuid())
                try:
                    check_met(engine, container.id, plan, session.emit)
                except CreateFailed as exc:
                    raise _refused(plan.session, exc.reason, "Check the engine.") from exc
                isolate(engine, container.id, plan, session.emit)
                report_left(directory.path, session.emit, but=directory.guard_record, scanner=session.scanner)
                for resource in resources:
                    with wake.interruptible():
                        resource.starting()
                with wake.interruptible():
                    start_container(engine, container.id, plan)
                started = engine.inspect(container.id)
                check_filtered(started, plan)
                check_mapped(started, plan)
                for resource in resources:
                    resource.running(started)
                if (event := public_servers(plan, started)) is not None:
                    session.emit(event)
                for event in low_disks(plan.workspace, started.storage):
                    session.emit(event)
                # Only now: the engine copies into a running container through the container's own mounts. In a stopped
                # one it would follow a link that the agent left, even to a file that the sandbox may only read.
                for resource in resources:
                    with wake.interruptible():
                        resource.created(container.id)
            wake.check()
            for resource in resources:
                resource.detached()
            directory.move("detached")
            directory.handed_over = True  # nothing must be undone
        except BaseException:
            with contextlib.suppress(PodbotError):
                engine.stop(container.id, seconds=STOP_SECONDS)
            raise


def _refused(session: str, reason: str, hint: str) -> SessionNotRestorable:
    return SessionNotRestorable(session=session, reason=reason, hint=hint)


_ORIGIN = "the session's record"

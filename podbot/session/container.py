"""A started container as one context manager: whatever happens inside, it is removed (or kept) afterwards.

It also gives up, and reports, what the session asks for and the engine does not support.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Any

from podbot.engine.port import ContainerInfo, Engine, Unmet
from podbot.errors import ContainerNotFound, CreateFailed, NameTaken, PodbotError, SandboxDied, StartFailed
from podbot.events import Emit, Event
from podbot.frozen import replace
from podbot.launch.repository import is_placeholder, not_placed
from podbot.launch.security import without_defaults
from podbot.launch.types import SandboxPlan
from podbot.session.directory import SessionDirectory
from podbot.session.disk_notice import low_disks
from podbot.session.disposal import Disposal, dispose
from podbot.session.guarding import report_left
from podbot.session.mount_check import RUNTIMES, check_mapped, verified_mount
from podbot.session.network import isolate, public_servers, remove_network
from podbot.session.own_files import place_files
from podbot.session.plan_json import public_part
from podbot.session.record import write_record
from podbot.session.repository import check_linked_git
from podbot.session.resources.resource import Opening, SessionResource
from podbot.session.seccomp_filter import check_filtered

# What a runtime's error message names when it cannot set a limit, e.g. without cgroup v2 delegation: a file of the
# controller, or the controller, which may be missing alone. runc's words: "cannot set cpu limit".
_NAMED = {
    limit: rf"\b{name}\.({files})|\b(controllers?|set) ['`\"]?{name}\b|\b{name}['`\"]? controller\b"
    for limit, name, files in (
        ("memory", "memory", r"max|swap\.max|limit|memsw"),
        ("cpus", "cpu", "max|cfs_"),
        ("pids", "pids", "max"),
    )
}
# Podman uses its default for a name that it does not know (4.3).
_RUNTIME_HINT = (
    "Install that runtime where the engine runs, and name it below [engine.runtimes] in the engine's containers.conf."
    " Or leave sandbox.runtime unset."
)
MAIN_ENDED = "its main process ended while it started"
MAIN_SILENT = "its main process did not answer"


@contextlib.contextmanager
def started_container(session: Opening, resources: Sequence[SessionResource[Any]] = ()) -> Iterator[str]:
    """Create and start the container of ``session.plan`` with ``resources``, which are already open; yields its id.

    When the clean-up after an error fails too, the first error is raised, and the session's record stays so that the
    next command can report it. A container is never kept if no command of the caller's ran in it. A container that
    was handed over is left to its new owner.
    """
    engine, plan, directory, emit = session.engine, session.plan, session.directory, session.emit
    directory.move("creating")
    ready = False
    try:
        container, plan = _started(session, resources)
        directory.move("running", container=container, plan=public_part(plan))
        if plan.keep != "never":
            write_record(plan.files_dir, directory.record)  # a reboot deletes the session's own directory
        for resource in resources:
            resource.started(container)
        ready = True
        try:
            yield container
        finally:
            for resource in resources:
                resource.ending()
    except NameTaken:  # by a container that is not this session's, even with labels like its own
        directory.name_taken()
        raise
    except BaseException as cause:
        if not directory.handed_over:
            try:
                died = isinstance(cause, SandboxDied)
                _clean_up(engine, plan, directory, emit, agent_ran=ready, died=died)
            except PodbotError as exc:  # the error that ends the session is the one to report, once
                if type(exc) is not type(cause):
                    text = f"the sandbox {plan.session} may be left behind: {exc.message}"
                    about = {"session": plan.session, "error": type(exc).__name__}
                    emit(Event("warning", "container.left", text, about))
        raise
    if not directory.handed_over:
        dispose(engine, Disposal.of(plan), directory, emit)


def _started(session: Opening, resources: Sequence[SessionResource[Any]]) -> tuple[str, SandboxPlan]:
    """Start the container; return its id, and the plan reduced to what the engine supports."""
    engine, plan, emit = session.engine, session.plan, session.emit
    emit(Event("info", "container.create", f"creating the sandbox {plan.session} from {plan.container.image}"))
    place_files(plan, emit)
    if plan.container.security.own_ids and engine.host().rootless:
        session = replace(session, plan=_with_the_engines_ids(plan, emit))
    with contextlib.ExitStack() as checks:
        for mount in plan.container.mounts:
            checks.enter_context(verified_mount(mount))
        session = replace(session, emit=_once(emit))
        lacking: list[Event] = []  # reported once it has started
        while True:
            try:
                container = _attempt(session, resources)
            except (CreateFailed, StartFailed) as exc:
                fewer = with_less(session.plan, exc.fields.get("detail") or exc.reason)
                if fewer is None or not _removed(engine, session.plan):
                    raise
                fitting, event = fewer
                session = replace(session, plan=fitting)
                lacking.append(event)
                session.wake.check()
            else:
                for event in lacking:
                    emit(event)
                return container, session.plan


def _attempt(session: Opening, resources: Sequence[SessionResource[Any]]) -> str:
    engine, plan, wake, emit = session.engine, session.plan, session.wake, session.emit
    check_linked_git(plan, os.getuid())
    # Must not be interrupted: the engine would continue and create the container after our clean-up.
    container = engine.create(plan.container)
    session.directory.created(container)
    check_met(engine, container, plan, emit)
    isolate(engine, container, plan, emit)
    for resource in resources:
        with wake.interruptible():
            resource.created(container)
    # The container exists, so that of an earlier session of this name is gone; what it left has not been reported.
    report_left(session.directory.path, emit, but=session.directory.guard_record, scanner=session.scanner)
    for resource in resources:
        with wake.interruptible():
            resource.starting()
    emit(Event("info", "container.start", "starting the sandbox"))
    with wake.interruptible():
        start_container(engine, container, plan)
    if engine.local:
        found = _inspected(engine, container, plan)
        for resource in resources:
            resource.inspected(found)
            resource.running(found)
        check_filtered(found, plan)
        check_mapped(found, plan)
        if (event := public_servers(plan, found)) is not None:
            emit(event)
        for event in low_disks(plan.workspace, found.storage):
            emit(event)
    return container


def start_container(engine: Engine, container: str, plan: SandboxPlan, null: str = "/dev/null") -> None:
    """Start it. Raises what the engine does; a directory that may not be entered leads to the runtime.

    With user ids of its own the sandbox sees the host's ``null``. A runtime that gives it away is not used.
    """
    if not plan.container.security.own_ids:
        engine.start(container)
        return
    before = os.stat(null)
    try:
        engine.start(container)
    except StartFailed as exc:
        if exc.reason.startswith("its working directory ") and exc.reason.endswith("permission denied"):
            # By a runtime that mounted it without the sandbox's user ids.
            raise StartFailed(container=plan.session, reason=exc.reason, detail=exc.detail, hint=RUNTIMES) from exc
        raise
    if engine.local and _about(os.stat(null)) != _about(before):
        with contextlib.suppress(PermissionError):
            os.chown(null, before.st_uid, before.st_gid)
            os.chmod(null, stat.S_IMODE(before.st_mode))
        raise StartFailed(container=plan.session, reason=f"its runtime gave this machine's {null} to it", hint=RUNTIMES)


def _about(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_uid, found.st_gid, found.st_mode


def _inspected(engine: Engine, container: str, plan: SandboxPlan) -> ContainerInfo:
    try:
        return engine.inspect(container)
    except ContainerNotFound as exc:  # the engine has removed it, because its main process has ended
        raise StartFailed(container=plan.session, reason=MAIN_ENDED) from exc


def _once(emit: Emit) -> Emit:
    """``emit`` without repeating events that an earlier attempt emitted."""
    emitted: list[Event] = []

    def once(event: Event) -> None:
        if event not in emitted:
            emitted.append(event)
            emit(event)

    return once


def _with_the_engines_ids(plan: SandboxPlan, emit: Emit) -> SandboxPlan:
    """The plan for a rootless engine, in whose user namespace root is its owner."""
    text = "sandbox.own_user_ids has no effect: root inside is the engine's owner, who is not root"
    emit(Event("info", "engine.user_ids", text, {"session": plan.session}))
    security = replace(plan.container.security, own_ids=False)
    return replace(plan, container=replace(plan.container, security=security))


def _removed(engine: Engine, plan: SandboxPlan) -> bool:
    """Remove the failed attempt's container; returns whether its name is free. An error here is not worth reporting."""
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


def _clean_up(
    engine: Engine, plan: SandboxPlan, directory: SessionDirectory, emit: Emit, *, agent_ran: bool, died: bool
) -> None:
    """Dispose of the container after an error, which may come before its id is known, so it is looked up by name.

    The lock keeps other sessions from using that name, but not other containers: when the image is missing, the
    engine never compares names. A container without this session's exact labels is not touched.
    """
    try:
        found = engine.inspect(plan.container.name)
    except ContainerNotFound:
        remove_network(engine, plan.session)
        directory.move("gone")
        return
    if _is_ours(found, plan):
        dispose(engine, Disposal.of(plan), directory, emit, agent_ran=agent_ran, died=died)
    else:
        directory.name_taken()


def check_met(engine: Engine, container: str, plan: SandboxPlan, emit: Emit) -> None:
    """Read back what the engine applied of the plan, and warn of limits that it dropped.

    Raises CreateFailed when it dropped confinement.
    """
    dropped = []
    for unmet in engine.unmet(container, plan.container):
        if unmet.key in ("sandbox.runtime", "sandbox.profile", "sandbox.publish", "sandbox.own_user_ids"):
            origin = f" ({found})" if (found := plan.container.origins.get(unmet.key)) else ""
            reason = (
                f"it accepted {unmet.key} = {unmet.wanted}{origin} and did not apply it (it has"
                f" {unmet.got or 'nothing'})"
            )
            hint = _RUNTIME_HINT if unmet.key == "sandbox.runtime" else ""
            raise CreateFailed(container=plan.session, image=plan.container.image, reason=reason, hint=hint)
        dropped.append(unmet)
    if dropped:
        emit(unmet_limits(plan, dropped))


def with_less(plan: SandboxPlan, reason: str) -> tuple[SandboxPlan, Event] | None:
    """The plan to try after one failed to start for ``reason``, and the event to report; None when none is left.

    Placeholders for paths that a repository names are given up first, because the repository chose those paths and they
    may be part of ``reason``. Default limits that the engine cannot set come next: the operator did not ask for them,
    and no session could start on such an engine otherwise.
    """
    spec = plan.container
    files = tuple(mount for mount in spec.files if not is_placeholder(mount))
    if spec.guest is not None and reason in (MAIN_ENDED, MAIN_SILENT):
        return _without_guest(plan, reason)
    if number := len(spec.files) - len(files):
        less = replace(spec, files=files)
        event = _no_placeholders(plan, number)
    elif names := _not_settable(spec.limits.by_default, reason.lower()):
        less = replace(spec, limits=without_defaults(spec.limits, names))
        event = unmet_limits(plan, [Unmet(f"sandbox.{name}", str(getattr(spec.limits, name)), "") for name in names])
    else:
        return None
    return replace(plan, container=less), event


def _not_settable(limits: Sequence[str], reason: str) -> list[str]:
    """Those of ``limits`` that the engine could not set: all of the control group only if ``reason`` names none."""
    import re  # here: only a start that failed needs the patterns

    named = {name for name, pattern in _NAMED.items() if re.search(pattern, reason)}
    if not named and "cgroup" in reason:
        named = set(_NAMED)
    if "rlimit" in reason:
        named.add("nofile")
    return [name for name in limits if name in named]


def _without_guest(plan: SandboxPlan, reason: str) -> tuple[SandboxPlan, Event]:
    """The plan and the event for a sandbox whose main process, the guest, ended or did not answer.

    The usual cause is an image without a shell, or with a python3 that cannot run.
    """
    spec = plan.container
    files = tuple(mount for mount in spec.files if mount.target != spec.guest)
    why = reason.replace("its", "the sandbox's", 1)
    text = f"{why}: {plan.session} is started without podbot's guest, and its commands go over the engine"
    event = Event("notice", "guest.none", text, {"session": plan.session, "image": spec.image})
    less = replace(spec, files=files, guest=None)
    return replace(plan, container=less), event


def _no_placeholders(plan: SandboxPlan, number: int) -> Event:
    why = "the sandbox did not start with empty directories over linked worktrees elsewhere, so it was started without"
    fields = {"session": plan.session, "worktrees": number}
    return Event("notice", "git.no_placeholders", f"{why}: {not_placed(number)}", fields)


def unmet_limits(plan: SandboxPlan, unmet: Sequence[Unmet]) -> Event:
    """One event for all limits that the engine does not enforce."""
    limits = " and ".join(f"{limit.key} = {_shown(limit)}" for limit in unmet)
    text = f"this engine does not enforce {limits}: a session can exhaust this machine"
    fields = {"session": plan.session, "limits": [dict(vars(limit)) for limit in unmet]}
    return Event("warning", "limit.unmet", text, fields)


def _shown(limit: Unmet) -> str:
    """The limit's value, with bytes as megabytes."""
    if limit.key in ("sandbox.memory", "sandbox.shm") and limit.wanted.isdigit():
        return f"{int(limit.wanted) >> 20}m"
    return limit.wanted

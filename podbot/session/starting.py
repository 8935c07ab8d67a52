"""``podbot start``: a kept session's container runs again with its resources, and without a podbot process.

Nothing of a record is believed before the engine's container and this host agree with it. Whatever fails leaves the
container stopped, without a token.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from podbot.engine.port import BindMount, ContainerInfo, Engine
from podbot.errors import CreateFailed, MountRefused, PodbotError, SessionExists, SessionNotRestorable
from podbot.events import Emit, Event
from podbot.launch.labels import LABEL, keep_of
from podbot.launch.own_file import files_directory
from podbot.launch.pipes import pipes_directory
from podbot.launch.refused_paths import within
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.launch.resources.history import DIRECTORY as STORES
from podbot.launch.resources.history import HistoryPlan
from podbot.launch.resources.streams import StreamsPlan
from podbot.launch.resources.token import SECRETS_DIRECTORY, TokenPlan
from podbot.launch.seccomp import profile_path
from podbot.launch.sources import checked_source
from podbot.launch.types import HostFacts, LaunchRequest, SandboxPlan
from podbot.places import runtime_root
from podbot.session.confined import check_filtered
from podbot.session.container import check_met
from podbot.session.disk_notice import low_disks
from podbot.session.disposal import STOP_SECONDS
from podbot.session.orphans import our_container
from podbot.session.own_files import place_files
from podbot.session.paths import path_facts, with_protected
from podbot.session.planned import NotAPlan, plan_from
from podbot.session.record import SessionRecord, write_record
from podbot.session.repository import check_linked_git
from podbot.session.resources.every import opened_resources
from podbot.session.resources.resource import Opening
from podbot.session.restore import lasting_record
from podbot.session.sessions import SessionDirectory, left_session
from podbot.session.workspace import verified_mount
from podbot.streams.wake import Wake

Facts = Callable[[LaunchRequest], HostFacts]


@dataclass(frozen=True, slots=True)
class StartResult:
    """A session that runs again. ``credentials``: in-container paths of the families that were copied."""

    session: str
    credentials: tuple[str, ...] = ()


def start_session(
    engine: Engine, environ: Mapping[str, str], name: str, *, facts: Facts, wake: Wake, emit: Emit
) -> StartResult:
    """Bring the kept session ``name`` back. ``facts``: of this host now.

    Raises ContainerNotFound, NotOurs, SessionExists, SessionNotRestorable, SessionRecordUnknown, MountRefused and
    what a first start raises, and Interrupted when a signal came before it was done.
    """
    container = our_container(engine, name)
    session = container.name
    if not engine.local:
        raise _refused(session, "its engine is on another host", "Run podbot on that host.")
    path = os.path.join(runtime_root(environ), session)
    _check_kept(container)
    with wake.listening(), left_session(path, otherwise=lasting_record(engine, environ, container)) as directory:
        assert directory is not None  # noqa: S101 - there is a record by now
        container = engine.inspect(container.id)  # while nobody else starts it
        _check_state(directory.record, container)
        found = facts(LaunchRequest(name=session, trusted_workspace=True))
        plan = _agreed_plan(directory, container, found)
        _check_mounts(plan, found)
        if directory.record.state == "detached":  # its container has ended since
            directory.move("stopped")
        directory.move("starting")
        try:
            _bring_back(Opening(engine, plan, directory, wake, emit, again=True), container)
        except BaseException:
            with contextlib.suppress(PodbotError):
                if directory.record.state == "starting":
                    directory.move("stopped")
            raise
    copied = plan.find(CredentialsPlan) or CredentialsPlan()
    if plan.find(TokenPlan) is not None:
        emit(_token_event(path, session))
    emit(Event("info", "session.started", f"started {session}", {"session": session}))
    return StartResult(session, tuple(source.target for source in copied.sources))


def _check_kept(container: ContainerInfo) -> None:
    if keep_of(container.labels) == "never":
        hint = f"`podbot stop {container.name}` removes it."
        raise _refused(container.name, "it was not to be kept", hint)


def _check_state(record: SessionRecord, container: ContainerInfo) -> None:
    session = record.session
    if record.state == "detached" and container.state == "running":
        raise SessionExists(session=session)
    if container.state not in ("exited", "stopped"):
        reason = f"its container is {container.state}, and podbot has not started it"
        raise _refused(session, reason, f"`podbot stop {session}` stops it.")
    if record.state not in ("stopped", "detached"):
        reason = "its podbot was killed, and nobody has looked at what it left"
        raise _refused(session, reason, f"`podbot stop {session}` does.")


def _agreed_plan(directory: SessionDirectory, container: ContainerInfo, facts: HostFacts) -> SandboxPlan:
    """The plan of the record, when the container and the places of this host are the record's."""
    record = directory.record
    hint = f"`podbot stop --rm {record.session}` removes it; the engine's own program can still start the container."
    if record.plan is None:
        raise _refused(record.session, "its record has no plan, as one of an older podbot", hint)
    try:
        plan = plan_from(record.plan)
    except NotAPlan as exc:
        raise _refused(record.session, f"its record is another version's, or was changed ({exc})", hint) from exc
    runtime = os.path.join(facts.runtime_dir, record.session)
    created = container.labels.get(f"{LABEL}.created", "")
    files = files_directory(plan.keep, record.session, runtime, dataclasses.replace(facts, created=created))
    if (plan.runtime_dir, plan.files_dir) != (runtime, files):
        raise _refused(record.session, f"its directories were {plan.runtime_dir} and {plan.files_dir}", hint)
    if not (_is_of(plan, record, container) and _has_own_places(plan, runtime, facts)):
        raise _refused(record.session, "its container is not the one of its record, or the record was changed", hint)
    return _with_logins(plan, facts)


def _is_of(plan: SandboxPlan, record: SessionRecord, container: ContainerInfo) -> bool:
    """Whether the engine says of the container what the record does."""
    spec, token = plan.container, plan.find(TokenPlan)
    mounts = {BindMount(mount.source, mount.target, mount.read_only) for mount in (*spec.mounts, *spec.files)}
    return (
        record.container == container.id
        and plan.session == spec.name == container.name
        and container.labels.items() >= spec.labels.items()
        and container.labels.get(f"{LABEL}.access", "") == (token.repo if token is not None else "")
        and container.mounts == mounts
    )


def _has_own_places(plan: SandboxPlan, runtime: str, facts: HostFacts) -> bool:
    """Whether what is made and removed on the host for the session is podbot's own."""
    token, streams, history = plan.find(TokenPlan), plan.find(StreamsPlan), plan.find(HistoryPlan)
    stores = os.path.join(facts.state_dir, STORES)
    seccomp = plan.container.security.seccomp
    return (
        (token is None or token.secrets_dir == os.path.join(runtime, SECRETS_DIRECTORY))
        and (streams is None or streams.directory == pipes_directory(runtime))
        and (history is None or os.path.dirname(os.path.dirname(history.store.source)) == stores)
        and (history is None or os.path.dirname(history.store.source) == history.directory)
        and (seccomp is None or os.path.dirname(seccomp) == os.path.dirname(profile_path(facts.state_dir)))
    )


def _check_mounts(plan: SandboxPlan, facts: HostFacts) -> None:
    """The refusals of a first start. What was typed then is its own allowed root. Raises MountRefused."""
    sources = {mount.source for mount in plan.container.mounts}
    tops = sorted(path for path in sources if not any(within(path, other) for other in sources - {path}))
    found = [path_facts(path, path) for path in tops]
    facts = with_protected(dataclasses.replace(facts, extra_mounts=tuple(found)))
    for path in found:
        if checked_source(path, _ORIGIN, [path], facts) != path.given:
            raise MountRefused(
                path=path.given,
                origin=_ORIGIN,
                reason=f"a part of its path became a link, which leads to {path.resolved}",
                hint="Check what changed there, then start again.",
            )


def _bring_back(session: Opening, container: ContainerInfo) -> None:
    """Leaves the session detached. The container is stopped, and the token gone, when this raises."""
    engine, plan, wake, directory = session.engine, session.plan, session.wake, session.directory
    place_files(plan, session.emit)
    write_record(plan.files_dir, dataclasses.replace(directory.record, state="stopped"))
    with opened_resources(session) as resources:
        try:
            with contextlib.ExitStack() as checks:
                for mount in plan.container.mounts:
                    checks.enter_context(verified_mount(mount))
                check_linked_git(plan, os.getuid())
                try:
                    check_met(engine, container.id, plan, session.emit)
                except CreateFailed as exc:
                    raise _refused(plan.session, exc.reason, "`podbot doctor` checks the engine.") from exc
                for resource in resources:
                    with wake.interruptible():
                        resource.starting()
                with wake.interruptible():
                    engine.start(container.id)
                started = engine.inspect(container.id)
                check_filtered(started, plan)
                for event in low_disks(plan.workspace, started.storage):
                    session.emit(event)
                # Only now: into a container that runs, the engine copies from within its own mounts. Into one that
                # stands, it would follow a link that the agent left, also to what the sandbox can only read.
                for resource in resources:
                    with wake.interruptible():
                        resource.created(container.id)
            wake.check()
            directory.move("detached")
            directory.handed_over = True  # nothing is to be undone
        except BaseException:
            with contextlib.suppress(PodbotError):
                engine.stop(container.id, seconds=STOP_SECONDS)
            raise


def _token_event(path: str, session: str) -> Event:
    from podbot.github.status import TokenStatus

    expires_at = (TokenStatus.load(path) or TokenStatus()).expires_at
    until = "for an hour at most" if expires_at is None else time.strftime("until %H:%M", time.localtime(expires_at))
    text = f"the GitHub token of {session} lasts {until}, and longer while a token-daemon runs"
    return Event("notice", "token.detached", text, {"session": session, "expires_at": expires_at})


def _with_logins(plan: SandboxPlan, facts: HostFacts) -> SandboxPlan:
    """The families that were copied, as this host has them now. The first-run file inside has become the agent's."""
    credentials = plan.find(CredentialsPlan)
    if credentials is None:
        return plan
    families = {source.family for source in credentials.sources}
    now = CredentialsPlan(tuple(source for source in facts.credentials if source.family in families))
    return dataclasses.replace(plan, resources={**plan.resources, "credentials": now})


def _refused(session: str, reason: str, hint: str) -> SessionNotRestorable:
    return SessionNotRestorable(session=session, reason=reason, hint=hint)


_ORIGIN = "the session's record"

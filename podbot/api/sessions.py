"""Sessions and the commands in them: plan, run, exec, list, stop.

>>> import podbot
>>> config = podbot.load_config(podbot.LoadOptions(environ=os.environ))   # doctest: +SKIP
>>> [session.session for session in podbot.ps(config)]                    # doctest: +SKIP
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from podbot.api.calls import host_facts, woken
from podbot.api.engines import NOT_STARTED, driver_of, environment, explained, open_engine, report_left
from podbot.config.load import load_config
from podbot.config.models import AppConfig
from podbot.errors import InvalidValue
from podbot.events import Emit, Event, ignore
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.frozen import replace
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.engine.port import Engine
    from podbot.exec_spec import ExecSpec
    from podbot.execution.command_control import Witness
    from podbot.launch.types import HostFacts, LaunchPlan, LaunchRequest, SessionSubcommand
    from podbot.management.manage import SessionInfo, StopResult
    from podbot.session.record import SessionRecord
    from podbot.session.run import SessionResult
    from podbot.session.starting import StartResult

LONGEST_STOP = 3600  # seconds between TERM and KILL; `podbot stop --time` has the same limit

__all__ = ["exec_", "load_config", "plan", "ps", "remove", "restart", "run", "start", "stop"]


def plan(
    config: AppConfig,
    request: LaunchRequest,
    *,
    subcommand: SessionSubcommand = "run",
    environ: Mapping[str, str] | None = None,
) -> LaunchPlan:
    """The plan of :func:`run`, or with ``subcommand="host"`` of :func:`host`, decided without contacting an engine.

    Raises ConfigError subclasses.
    """
    from podbot.launch.plan import plan_session

    return plan_session(config, request, host_facts(config, request, environment(environ)), subcommand)


def run(
    config: AppConfig,
    request: LaunchRequest,
    *,
    io: ExecIO | None = None,
    wake: Wake | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> SessionResult:
    """Run one interactive session to its end; the agent's failure is a status, not an exception.

    ``io`` defaults to the process's own descriptors; ``wake.post(Signal(SIGTERM))`` from another
    thread ends the session. Raises ConfigError before anything is created, then ContainerError,
    SessionError, FilesystemError and StreamError subclasses.
    """
    from podbot.api import killed_helper
    from podbot.api.advice import tell_outdated
    from podbot.session.kept_reports import tell_waiting
    from podbot.session.kill_watcher import HelperProgram
    from podbot.session.orphans import report_orphans
    from podbot.session.run import run_session

    environ = environment(environ)
    decided = plan(config, request, environ=environ)
    with open_engine(config, environ=environ, emit=emit) as engine, woken(wake) as waker:
        report_orphans(engine, environ, emit)
        tell_waiting(environ, emit)
        helper = HelperProgram(killed_helper.__file__, environ)
        try:
            result = run_session(
                engine, decided, io or ExecIO(), waker, emit,
                killed_helper=helper, origin=config.origin,
            )  # fmt: skip
        except NOT_STARTED as exc:
            raise explained(exc, engine, config, environ) from exc
        tell_outdated(engine, decided.sandbox.container.image, decided.agent.kind, environ, emit)
        return result


def exec_(
    config: AppConfig,
    container: str,
    spec: ExecSpec,
    *,
    io: ExecIO | None = None,
    wake: Wake | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> ExecStatus:
    """Run a command in any container on the engine; in a session with a guest, by that and without the engine.

    ``container``: its name, or as much of a session's as is enough. Raises ContainerNotFound, AmbiguousName,
    ExecFailed, EngineGone, EngineStorageFull, SandboxDied, ChannelLost, OutputClosed, CommandSurvived.
    """
    from podbot.errors import ContainerNotFound
    from podbot.execution.command_control import NOTHING_SEEN
    from podbot.execution.runner import run_in_guest
    from podbot.launch.names import is_name
    from podbot.places import runtime_root
    from podbot.session.end_cause import SessionWitness
    from podbot.session.flags import in_use

    environ, io = environment(environ), io or ExecIO()
    with contextlib.ExitStack() as stack:
        waker = stack.enter_context(woken(wake))

        @functools.cache
        def connect() -> Engine:
            return stack.enter_context(open_engine(config, environ=environ, emit=emit))

        container = _meant(container, environ, connect)
        path = os.path.join(runtime_root(environ), container)
        if is_name(container):  # of anything else (".", ".engine") the directory would be no session's, and get a file
            stack.enter_context(in_use(path))
            if spec.term_choices:
                from podbot.session.term_notice import telling

                io = replace(io, on_term=telling(path, spec, emit))
        seen = SessionWitness(path, for_one=True)
        status, by_engine = None, False
        if (guest := _guest_of(config, environ, container)) is not None:
            status = run_in_guest(guest, container, spec, io, waker, connect=connect, witness=seen)
        if status is None:
            engine, by_engine = connect(), True
            report_left(engine, environ, emit, spare=container)
            witness = seen if _record(environ, container, engine) is not None else NOTHING_SEEN
            try:
                status = _run_by_engine(engine, container, spec, io, waker, environ, witness)
            except ContainerNotFound:
                from podbot.session.session_names import container_meant

                # A kept session has no directory here after a reboot: only the engine knows its name.
                container = container_meant(engine, container).name
                status = _run_by_engine(engine, container, spec, io, waker, environ, NOTHING_SEEN)
        # Nothing is looked at after a command that ended well, or that did not start.
        if status.failed or status.out_of_memory or (status.forks_refused and status.code):
            from podbot.session.limits_reached import tell_command_limits

            record = _record(environ, container, connect() if by_engine else None)
            status = tell_command_limits(connect, container, status, emit, record=record, by_engine=by_engine)
        return status


def _run_by_engine(  # noqa: PLR0917
    engine: Engine,
    container: str,
    spec: ExecSpec,
    io: ExecIO,
    wake: Wake,
    environ: Mapping[str, str],
    witness: Witness,
) -> ExecStatus:
    """Run a command by the engine. A process waits for our end, because the engine's command would outlive a KILL."""
    from podbot.api import killed_exec_helper
    from podbot.execution.runner import run_exec
    from podbot.session.kill_watcher import HelperProgram, ended_if_killed

    with ended_if_killed(engine, container, HelperProgram(killed_exec_helper.__file__, environ)) as created:
        return run_exec(engine, container, spec, io, wake, witness=witness, created=created)


def _record(environ: Mapping[str, str], container: str, engine: Engine | None) -> SessionRecord | None:
    """The record of this user's session, or None.

    ``engine``: which ran the command, if no guest did, and where the container may be another one of that name.
    """
    from podbot.session.directory import record_of

    record = record_of(environ, container)
    return record if record is not None and (engine is None or record.is_on(engine)) else None


def _meant(given: str, environ: Mapping[str, str], connect: Callable[[], Engine]) -> str:
    """The name of the container that ``given`` means.

    The engine is asked only where ``given`` may be a part of a name, because that costs a request.
    """
    from podbot.launch.names import names_meant
    from podbot.session.directory import names_here

    meant = names_meant(given, names_here(environ))
    if meant == [given] or not (meant or not connect().local):
        return given
    from podbot.session.session_names import container_meant

    return container_meant(connect(), given).name


def _guest_of(config: AppConfig, environ: Mapping[str, str], container: str) -> str | None:
    """The directory of the guest's socket of a session of this user's, unless the configured engine is another one."""
    from podbot.session.directory import session_guest

    found = session_guest(environ, container)
    if found is None:
        return None
    record, directory = found
    if record.engine not in ("", config.engine):
        return None
    endpoint = driver_of(config).locate(config, environ)  # None: podbot's own service, which is contacted by its name
    return directory if endpoint is None or endpoint.uri == record.endpoint else None


def ps(
    config: AppConfig,
    *,
    include_stopped: bool = False,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> list[SessionInfo]:
    """podbot's sessions on the engine, newest first."""
    from podbot.management.manage import list_sessions
    from podbot.session.kept_reports import tell_waiting

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        report_left(engine, environ, emit)
        tell_waiting(environ, emit)
        return list_sessions(engine, environ, include_stopped=include_stopped)


def start(
    config: AppConfig,
    session: str,
    *,
    wake: Wake | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> StartResult:
    """Restart a kept session: its container runs again with its token, logins and guard, without a podbot process.

    ``exec_``, ``ps`` and ``stop`` work on it. ``session``: its name, or as much of it as is enough. Raises
    ContainerNotFound, AmbiguousName, NotOurs, SandboxPaused, AlreadyStarted, SessionNotRestorable,
    SessionRecordUnknown, MountRefused, then ContainerError, FilesystemError and GitHubError subclasses, and Interrupted
    when ``wake`` got a signal; after an error the container is stopped again.
    """
    from podbot.session.starting import start_session

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine, woken(wake) as waker:
        report_left(engine, environ, emit, spare=session)
        facts = _facts_of(config, environ)
        return start_session(engine, environ, session, facts=facts, wake=waker, emit=emit)


def _facts_of(config: AppConfig, environ: Mapping[str, str]) -> Callable[[LaunchRequest], HostFacts]:
    return lambda request: host_facts(config, request, environ)


def restart(
    config: AppConfig,
    names: Sequence[str],
    *,
    seconds: int = 10,
    wake: Wake | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> Iterator[StartResult]:
    """Stop kept sessions one by one, without removing them, :func:`start` each, and yield it once it runs.

    ``seconds``: the time of their processes between TERM and KILL. A podbot that runs one ends with it. All are checked
    before the first is stopped: raises SessionNotRestorable for one that its end removes or whose record does not agree
    with its container, MountRefused for a workspace that is gone, and what :func:`stop` and :func:`start` raise. After
    an error of a start that session stays stopped.
    """
    from podbot.management.restart import restartable, stop_for_restart

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        containers = restartable(engine, environ, names, facts=_facts_of(config, environ))
    for container in containers:
        with open_engine(config, environ=environ, emit=emit) as engine:
            text = f"stopping {container.name}"
            emit(Event("info", "session.stop", text, {"session": container.name, "next": f"start {container.name}"}))
            stop_for_restart(engine, environ, container, seconds=seconds, emit=emit)
        emit(Event("info", "session.stopped", f"stopped {container.name}", {"session": container.name}))
        yield start(config, container.name, wake=wake, environ=environ, emit=emit)


def stop(
    config: AppConfig,
    names: Sequence[str] = (),
    *,
    all_sessions: bool = False,
    seconds: int = 10,
    remove_kept: bool = False,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> list[StopResult]:
    """Stop sessions by name, or all of podbot's; sessions that are not kept are removed.

    A clone's session is kept if it has unsaved work, unless its start decided otherwise. ``names``: as much of
    each as is enough. ``seconds``: the time of the processes between TERM and KILL. Raises
    ContainerNotFound, AmbiguousName and NotOurs before anything is stopped, and InvalidValue for ``seconds`` that are
    not 0 to 3,600.
    """
    from podbot.management.manage import stop_sessions

    if not 0 <= seconds <= LONGEST_STOP:
        reason = f"{seconds} is not a number of seconds from 0 to {LONGEST_STOP}"
        raise InvalidValue(field="seconds", origin="argument seconds", reason=reason, hint="Write 10, the default.")
    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        results = []
        for result in stop_sessions(
            engine, environ, names, seconds=seconds, remove_kept=remove_kept, all_sessions=all_sessions, emit=emit
        ):
            emit(Event("info", "session.stopped", f"stopped {result.session}", {"session": result.session}))
            results.append(result)
        report_left(engine, environ, emit)  # afterwards, because it removes sessions that may have been named
        return results


def remove(
    config: AppConfig,
    names: Sequence[str] = (),
    *,
    all_sessions: bool = False,
    force: bool = False,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> list[StopResult]:
    """Remove sessions that have ended, with unsaved work: kept ones, by name or all of podbot's.

    ``force``: stop and remove those that run, too. Raises ContainerNotFound, AmbiguousName, NotOurs and SessionRuns
    before anything is removed; SessionRuns also later, for a named one that is restarted meanwhile.
    """
    from podbot.management.manage import stop_sessions

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        stopped = stop_sessions(
            engine,
            environ,
            names,
            seconds=10,
            remove_kept=True,
            all_sessions=all_sessions,
            only_ended=not force,
            emit=emit,
        )
        results = list(stopped)
        report_left(engine, environ, emit)  # afterwards, as in `stop`
        return results

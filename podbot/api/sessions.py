"""Sessions and the commands in them: plan, run, exec, list, stop.

>>> import podbot
>>> config = podbot.load_config(podbot.LoadOptions(environ=os.environ))   # doctest: +SKIP
>>> [session.session for session in podbot.ps(config)]                    # doctest: +SKIP
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from podbot.api.calls import check_subcommand, host_facts, woken
from podbot.api.engines import environment, explained, open_engine, report_left
from podbot.config.load import load_config
from podbot.config.models import AppConfig
from podbot.errors import ImageNotFound
from podbot.events import Emit, Event, ignore
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.launch.command import ExecSpec
    from podbot.launch.types import HostFacts, LaunchPlan, LaunchRequest
    from podbot.management.manage import SessionInfo, StopResult
    from podbot.session.run import SessionResult
    from podbot.session.sandbox import Sandbox
    from podbot.session.starting import StartResult

__all__ = ["exec_", "load_config", "plan", "ps", "run", "sandbox", "start", "stop"]


def plan(config: AppConfig, request: LaunchRequest, *, environ: Mapping[str, str] | None = None) -> LaunchPlan:
    """What :func:`run` or :func:`host` would do, decided without touching an engine. Raises ConfigError subclasses."""
    from podbot.launch.plan import normalize

    if request.subcommand == "sandbox":
        check_subcommand(request, "run")
    return normalize(config, request, host_facts(config, request, environment(environ)))


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
    FilesystemError and StreamError subclasses.
    """
    from podbot.session.orphans import report_orphans
    from podbot.session.run import run_session

    environ = environment(environ)
    check_subcommand(request, "run")
    decided = plan(config, request, environ=environ)
    with open_engine(config, environ=environ, emit=emit) as engine, woken(wake) as waker:
        report_orphans(engine, environ, emit)
        try:
            return run_session(engine, decided, io or ExecIO(), waker, emit)
        except ImageNotFound as exc:
            raise explained(exc, config, environ) from exc


@contextlib.contextmanager
def sandbox(
    config: AppConfig,
    request: LaunchRequest,
    *,
    environ: Mapping[str, str] | None = None,
    emit: Emit | None = None,
) -> Iterator[Sandbox]:
    """A sandbox without an agent for the block, in which commands are run: see :class:`Sandbox`.

    The same refusals, limits, guard, GitHub token and clone as for :func:`run`; settings of the agent have no effect.
    It ends with the block: removed, or kept as ``run`` keeps one. Raises ConfigError before anything is created, then
    ContainerError, FilesystemError, GitHubError and CloneError subclasses.
    """
    from podbot.launch.plan import plan_sandbox
    from podbot.session.sandbox import Sandbox
    from podbot.session.session import opened_sandbox

    environ, emit = environment(environ), emit or ignore
    check_subcommand(request, "sandbox")
    decided = plan_sandbox(config, request, host_facts(config, request, environ))
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(open_engine(config, environ=environ, emit=emit))
        wake = stack.enter_context(woken(None))
        report_left(engine, environ, emit)
        try:
            opened = stack.enter_context(opened_sandbox(engine, decided, wake, emit, subcommand="sandbox"))
        except ImageNotFound as exc:
            raise explained(exc, config, environ) from exc
        made = Sandbox(opened)
        stack.callback(made.close)
        yield made


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
    """Run a command in any container that the engine lets the operator reach.

    Raises ContainerNotFound, ExecFailed, EngineGone, EngineStorageFull, SandboxDied, OutputClosed, CommandSurvived.
    """
    from podbot.execution.runner import run_exec
    from podbot.places import runtime_root
    from podbot.session.flags import in_use
    from podbot.session.sessions import session_pipes

    environ = environment(environ)
    with (
        open_engine(config, environ=environ, emit=emit) as engine,
        woken(wake) as waker,
        in_use(os.path.join(runtime_root(environ), os.path.basename(container))),
    ):
        report_left(engine, environ, emit, spare=container)
        pipes = session_pipes(engine, environ, container)
        return run_exec(engine, container, spec, io or ExecIO(), waker, pipes=pipes)


def ps(
    config: AppConfig,
    *,
    include_stopped: bool = False,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> list[SessionInfo]:
    """podbot's sessions on the engine, newest first."""
    from podbot.management.manage import list_sessions

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        report_left(engine, environ, emit)
        return list_sessions(engine, environ, include_stopped=include_stopped)


def start(
    config: AppConfig,
    session: str,
    *,
    wake: Wake | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> StartResult:
    """Bring a kept session back: its container runs again, with its token, logins and guard, and no podbot process.

    ``exec_``, ``ps`` and ``stop`` work on it. Raises ContainerNotFound, NotOurs, SessionExists, SessionNotRestorable,
    SessionRecordUnknown, MountRefused, then ContainerError, FilesystemError and GitHubError subclasses, and
    Interrupted when ``wake`` got a signal; the container is then stopped, as it was.
    """
    from podbot.session.starting import start_session

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine, woken(wake) as waker:
        report_left(engine, environ, emit, spare=session)

        def facts(request: LaunchRequest) -> HostFacts:
            return host_facts(config, request, environ)

        return start_session(engine, environ, session, facts=facts, wake=waker, emit=emit)


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
    """Stop sessions by name, or all of podbot's; a session that is not to be kept is removed.

    A clone's is kept while it holds unsaved work, unless that was decided otherwise at its start.

    ``seconds``: what the processes get between TERM and KILL. Raises ContainerNotFound and NotOurs
    before anything is stopped.
    """
    from podbot.management.manage import stop_sessions

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        results = []
        for result in stop_sessions(
            engine, environ, names, seconds=seconds, remove_kept=remove_kept, all_sessions=all_sessions, emit=emit
        ):
            emit(Event("info", "session.stopped", result.session, {"session": result.session}))
            results.append(result)
        report_left(engine, environ, emit)  # afterwards: it removes what may have been named
        return results

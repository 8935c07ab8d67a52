"""The library's front door: typed calls that never print, never exit and install no signal handler.

The only place that picks an engine. Each call opens its own connection; imports happen inside, so
that a caller pays for what it uses.

>>> import podbot
>>> config = podbot.load_config(podbot.LoadOptions(environ=os.environ))   # doctest: +SKIP
>>> [session.session for session in podbot.ps(config)]                    # doctest: +SKIP
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from podbot.config.load import load_config
from podbot.config.models import AppConfig
from podbot.errors import IllegalCombination, ImageNotFound
from podbot.events import Emit, Event, ignore
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.engine.port import Engine
    from podbot.hosting.host import HostResult
    from podbot.hosting.hosted import HasFileno, HostedSession
    from podbot.launch.command import ExecSpec
    from podbot.launch.types import HostFacts, LaunchPlan, LaunchRequest, Subcommand
    from podbot.management.history_list import ProjectHistory
    from podbot.management.manage import SessionInfo, StopResult
    from podbot.session.run import SessionResult
    from podbot.session.sandbox import Sandbox
    from podbot.streams.channel import Channel
    from podbot.tokens.token_once import TokenRenewal
    from podbot.tokens.token_serve import ServiceNotifier

__all__ = [
    "exec_", "find_history", "history", "host", "load_config", "open_engine", "plan", "ps", "remove_history", "run",
    "sandbox", "stop", "token_daemon",
]  # fmt: skip


@contextlib.contextmanager
def open_engine(
    config: AppConfig, *, environ: Mapping[str, str] | None = None, emit: Emit = ignore
) -> Iterator[Engine]:
    """A checked engine for the block. Raises ContainerError subclasses when there is none."""
    from podbot.engine.podman.connect import connect

    engine = connect(config, _environ(environ), emit)
    try:
        yield engine
    finally:
        engine.close()


def plan(config: AppConfig, request: LaunchRequest, *, environ: Mapping[str, str] | None = None) -> LaunchPlan:
    """What :func:`run` or :func:`host` would do, decided without touching an engine. Raises ConfigError subclasses."""
    from podbot.launch.plan import normalize

    if request.subcommand == "sandbox":
        _check_subcommand(request, "run")
    return normalize(config, request, _facts(config, request, _environ(environ)))


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

    environ = _environ(environ)
    _check_subcommand(request, "run")
    decided = plan(config, request, environ=environ)
    with open_engine(config, environ=environ, emit=emit) as engine, _woken(wake) as waker:
        report_orphans(engine, environ, emit)
        try:
            return run_session(engine, decided, io or ExecIO(), waker, emit)
        except ImageNotFound as exc:
            raise _explained(exc, config, environ) from exc


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

    environ, emit = _environ(environ), emit or ignore
    _check_subcommand(request, "sandbox")
    decided = plan_sandbox(config, request, _facts(config, request, environ))
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(open_engine(config, environ=environ, emit=emit))
        wake = stack.enter_context(_woken(None))
        _report(engine, environ, emit)
        try:
            opened = stack.enter_context(opened_sandbox(engine, decided, wake, emit))
        except ImageNotFound as exc:
            raise _explained(exc, config, environ) from exc
        made = Sandbox(opened)
        stack.callback(made.close)
        yield made


def host(
    config: AppConfig,
    request: LaunchRequest,
    *,
    stdin: int | HasFileno,
    stdout: int | HasFileno,
    stderr: int | HasFileno | None = None,
    transcript: str | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> HostedSession:
    """Start one agent that speaks a protocol with the caller, in a thread; see :class:`HostedSession`.

    ``stdin``: what the client sends is read from here; ``stdout`` gets the agent's frames and nothing else;
    ``stderr`` None: the agent's diagnostics are events. Descriptors, or objects with ``fileno()``; one socket
    may be both. ``transcript``: a file to which what passes is added, redacted. ``emit`` is called in that
    thread. Raises ConfigError before anything is created; all else is raised by ``wait``.
    """
    from podbot.hosting.hosted import HostedSession

    channel, work = _hosting(config, request, transcript, environ, emit)
    return HostedSession(work, channel, stdin=stdin, stdout=stdout, stderr=stderr)


def host_until_end(
    config: AppConfig,
    request: LaunchRequest,
    *,
    io: ExecIO,
    wake: Wake,
    transcript: str | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> HostResult:
    """:func:`host` in the calling thread, for a process that then ends; what ``podbot host`` itself is made of.

    A client that leaves is not kept waiting: a helper process ends the agent and removes the sandbox.
    """
    return _hosting(config, request, transcript, environ, emit, leaves=True)[1](io, wake)


def _hosting(
    config: AppConfig,
    request: LaunchRequest,
    transcript: str | None,
    environ: Mapping[str, str] | None,
    emit: Emit,
    *,
    leaves: bool = False,
) -> tuple[Channel, Callable[[ExecIO, Wake], HostResult]]:
    """The channel of a hosted session, and what carries it out. Raises ConfigError subclasses."""
    from podbot.hosting.host import channel_for, run_hosted

    environ = _environ(environ)
    _check_subcommand(request, "host")
    decided = plan(config, request, environ=environ)
    channel = channel_for(decided)

    def work(io: ExecIO, wake: Wake) -> HostResult:
        with open_engine(config, environ=environ, emit=emit) as engine:
            _report(engine, environ, emit)
            return run_hosted(engine, decided, io, wake, emit, channel=channel, transcript=transcript, leaves=leaves)

    return channel, work


def _check_subcommand(request: LaunchRequest, wanted: Subcommand) -> None:
    if request.subcommand != wanted:
        raise IllegalCombination(
            field="subcommand",
            value=request.subcommand,
            origin="the caller",
            reason=f"this is the call for {wanted}",
            hint=f"Use LaunchRequest(subcommand={wanted!r}).",
        )


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
    from podbot.session.sessions import in_use, session_pipes

    environ = _environ(environ)
    with (
        open_engine(config, environ=environ, emit=emit) as engine,
        _woken(wake) as waker,
        in_use(os.path.join(runtime_root(environ), os.path.basename(container))),
    ):
        _report(engine, environ, emit, spare=container)
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

    environ = _environ(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        _report(engine, environ, emit)
        return list_sessions(engine, environ, include_stopped=include_stopped)


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

    environ = _environ(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        results = []
        for result in stop_sessions(
            engine, environ, names, seconds=seconds, remove_kept=remove_kept, all_sessions=all_sessions, emit=emit
        ):
            emit(Event("info", "session.stopped", result.session, {"session": result.session}))
            results.append(result)
        _report(engine, environ, emit)  # afterwards: it removes what may have been named
        return results


def history(*, environ: Mapping[str, str] | None = None) -> list[ProjectHistory]:
    """The projects whose conversations are kept on this host, the one used last first. Asks no engine."""
    from podbot.management.history_list import list_history

    return list_history(_environ(environ))


def find_history(project: str, *, environ: Mapping[str, str] | None = None) -> ProjectHistory:
    """The one of :func:`history` that ``project`` names: a directory, ``owner/name``, a key. Raises HistoryNotFound."""
    from podbot.management.history_remove import find_history as find

    return find(_environ(environ), os.getcwd(), project)


def remove_history(
    config: AppConfig,
    projects: Sequence[ProjectHistory],
    *,
    agent: str | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> list[ProjectHistory]:
    """Remove conversations for good, of one ``agent`` or of all; returns the projects that had any.

    Raises HistoryInUse before anything is removed when a session mounts them, and HistoryNotFound; HistoryNotRemoved.
    """
    from podbot.management.history_remove import remove_history as remove

    environ = _environ(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        return list(remove(engine, environ, projects, agent))


def token_daemon(
    names: Sequence[str] = (),
    *,
    once: bool = False,
    notifier: ServiceNotifier | None = None,
    wake: Wake | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> list[TokenRenewal]:
    """Keep the GitHub tokens of the runtime directory's sessions, or of ``names``, fresh; ``once``: what is due now.

    Blocks until ``wake.post(Signal(SIGTERM))`` from another thread; the list is then empty (SIGHUP does not end it).
    With ``once`` it is one entry a session, failures included. ``notifier`` receives READY, WATCHDOG and STATUS.
    Reads no configuration: each session's record has what its renewal needs. Raises TokenSessionMissing and
    UnsafeDirectory, and with ``once`` Interrupted.
    """
    environ = _environ(environ)
    with _woken(wake) as waker:
        if once:
            from podbot.tokens.token_once import renew_once

            return renew_once(environ, names, wake=waker, emit=emit)
        from podbot.tokens.notify import Notifier
        from podbot.tokens.token_serve import serve

        serve(environ, names, wake=waker, notifier=notifier or Notifier({}), emit=emit)
        return []


def _explained(exc: ImageNotFound, config: AppConfig, environ: Mapping[str, str]) -> ImageNotFound:
    """The error with its cause, where an image cannot be on this user's own engine."""
    from podbot.diagnosis.rootless_checks import user_ids_hint
    from podbot.engine.podman.connect import locate
    from podbot.engine.podman.private.machine import detect

    hint = user_ids_hint(detect(environ)) if locate(config, environ) is None else ""
    return ImageNotFound(image=exc.image, origin=exc.origin, hint=hint)


def _environ(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environ is None else environ


def _facts(config: AppConfig, request: LaunchRequest, environ: Mapping[str, str]) -> HostFacts:
    from podbot.engine.podman.connect import locate
    from podbot.places import runtime_root
    from podbot.session.facts import collect_facts

    endpoint = locate(config, environ)
    socket = endpoint.path if endpoint is not None and endpoint.scheme == "unix" else None
    return collect_facts(config, request, environ=environ, runtime_dir=runtime_root(environ), engine_socket_path=socket)


def _report(engine: Engine, environ: Mapping[str, str], emit: Emit, *, spare: str = "") -> None:
    """Orphans are looked for only when the runtime directory holds a session at all."""
    from podbot.places import runtime_root

    with contextlib.suppress(OSError), os.scandir(runtime_root(environ)) as entries:
        if any(not entry.name.startswith(".") for entry in entries):
            from podbot.session.orphans import report_orphans

            report_orphans(engine, environ, emit, spare=spare)


@contextlib.contextmanager
def _woken(wake: Wake | None) -> Iterator[Wake]:
    if wake is not None:
        yield wake
        return
    with contextlib.closing(Wake()) as own:
        yield own

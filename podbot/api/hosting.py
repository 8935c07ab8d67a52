"""Hosting: an agent that speaks a protocol with a client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from podbot.api.calls import check_subcommand
from podbot.api.engines import environment, open_engine, report_left
from podbot.api.sessions import plan
from podbot.config.models import AppConfig
from podbot.events import Emit, ignore
from podbot.execution.runner import ExecIO
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.hosting.host import HostResult
    from podbot.hosting.hosted import HasFileno, HostedSession
    from podbot.launch.types import LaunchRequest
    from podbot.streams.channel import Channel

__all__ = ["host", "host_until_end"]


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
    from podbot.api import ending_helper

    return _hosting(config, request, transcript, environ, emit, helper=ending_helper.__file__)[1](io, wake)


def _hosting(
    config: AppConfig,
    request: LaunchRequest,
    transcript: str | None,
    environ: Mapping[str, str] | None,
    emit: Emit,
    *,
    helper: str | None = None,
) -> tuple[Channel, Callable[[ExecIO, Wake], HostResult]]:
    """The channel of a hosted session, and what carries it out. Raises ConfigError subclasses."""
    from podbot.hosting.host import channel_for, run_hosted

    environ = environment(environ)
    check_subcommand(request, "host")
    decided = plan(config, request, environ=environ)
    channel = channel_for(decided)

    def work(io: ExecIO, wake: Wake) -> HostResult:
        with open_engine(config, environ=environ, emit=emit) as engine:
            report_left(engine, environ, emit)
            return run_hosted(engine, decided, io, wake, emit, channel=channel, transcript=transcript, helper=helper)

    return channel, work

"""Hosting: an agent that communicates with a client over a protocol."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from podbot.api.engines import environment, open_engine, report_left
from podbot.api.sessions import plan
from podbot.config.models import AppConfig
from podbot.events import Emit, ignore
from podbot.execution.runner import ExecIO
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.execution.hosted_end import HostedLimits
    from podbot.hosting.host import HostResult
    from podbot.hosting.hosted_session import HasFileno, HostedSession
    from podbot.launch.types import LaunchRequest
    from podbot.streams.protocol_channel import Channel

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
    """Start one agent that communicates with the caller over a protocol, in a thread; see :class:`HostedSession`.

    ``stdin``: the client's frames are read from it; ``stdout``: gets only the agent's frames; ``stderr``: with None,
    the agent's diagnostics become events. Each is a descriptor or an object with ``fileno()``; one socket may be both.
    ``transcript``: a file to which the redacted traffic is appended. ``emit`` is called in that thread. Raises
    ConfigError before anything is created; ``wait`` raises all other errors.
    """
    from podbot.hosting.hosted_session import HostedSession

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
    limits: HostedLimits | None = None,
) -> HostResult:
    """Like :func:`host`, in the calling thread, for a process that ends afterwards, such as ``podbot host``.

    A client that leaves does not have to wait: a helper process ends the agent and removes the sandbox. ``limits``: if
    not podbot's own.
    """
    from podbot.api import ending_helper

    helper = ending_helper.__file__
    return _hosting(config, request, transcript, environ, emit, helper=helper, limits=limits)[1](io, wake)


def _hosting(
    config: AppConfig,
    request: LaunchRequest,
    transcript: str | None,
    environ: Mapping[str, str] | None,
    emit: Emit,
    *,
    helper: str | None = None,
    limits: HostedLimits | None = None,
) -> tuple[Channel, Callable[[ExecIO, Wake], HostResult]]:
    """The channel of a hosted session, and the function that runs it. Raises ConfigError subclasses."""
    from podbot.api import killed_helper
    from podbot.execution.hosted_end import HOSTED_LIMITS
    from podbot.hosting.host import channel_for, run_hosted
    from podbot.session.kept_reports import keeping, tell_waiting
    from podbot.session.kill_watcher import HelperProgram

    environ = environment(environ)
    decided = plan(config, request, subcommand="host", environ=environ)
    channel = channel_for(decided)

    def kept() -> contextlib.AbstractContextManager[Emit]:
        if helper is None:
            return contextlib.nullcontext(emit)
        return keeping(environ, decided.sandbox.session, emit, also=True)  # an editor swallows our stderr

    def work(io: ExecIO, wake: Wake) -> HostResult:
        with open_engine(config, environ=environ, emit=emit) as engine:
            with kept() as told:  # its own: an editor may kill us before the session ends
                report_left(engine, environ, told)
            if helper is not None:
                tell_waiting(environ, emit)
            with kept() as told:
                return run_hosted(
                    engine, decided, io, wake, told, channel=channel, transcript=transcript, helper=helper,
                    killed_helper=HelperProgram(killed_helper.__file__, environ), limits=limits or HOSTED_LIMITS,
                    origin=config.origin,
                )  # fmt: skip

    return channel, work

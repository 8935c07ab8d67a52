"""What is known of a session, and the log of its output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.api.engines import environment, open_engine, report_left
from podbot.config.models import AppConfig
from podbot.events import Emit, ignore

if TYPE_CHECKING:
    from podbot.management.inspection import Inspection
    from podbot.management.logs import SessionLog


def inspect(
    config: AppConfig, session: str, *, environ: Mapping[str, str] | None = None, emit: Emit = ignore
) -> Inspection:
    """All that is known of a session of podbot's; ``session``: its name, or the beginning if no other begins so.

    Raises ContainerNotFound, AmbiguousName, NotOurs and other ContainerErrors.
    """
    from podbot.management.inspection import inspect_session

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        report_left(engine, environ, emit, spare=session)
        return inspect_session(engine, environ, session)


def log(
    config: AppConfig, session: str, *, environ: Mapping[str, str] | None = None, emit: Emit = ignore
) -> SessionLog:
    """The log of a session's output; ``session``: its name, or the beginning if no other begins so.

    Its bytes are the agent's and may contain anything. Raises NoLog, ContainerNotFound, AmbiguousName, NotOurs and
    other ContainerErrors.
    """
    from podbot.management.logs import session_log

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        report_left(engine, environ, emit, spare=session)
        return session_log(engine, environ, session)

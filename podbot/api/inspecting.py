"""What is known of a session: its state, the log of its output, its filtered network, and reports of hosted ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from podbot.api.engines import environment, open_engine, report_left
from podbot.config.models import AppConfig
from podbot.events import Emit, ignore

if TYPE_CHECKING:
    from podbot.management.filtered_network import FilteredNetwork
    from podbot.management.inspection import Inspection
    from podbot.management.logs import SessionLog
    from podbot.session.kept_reports import KeptReport


def inspect(
    config: AppConfig, session: str, *, environ: Mapping[str, str] | None = None, emit: Emit = ignore
) -> Inspection:
    """All that is known of a session of podbot's; ``session``: its name, or as much of it as is enough.

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
    """The log of a session's output; ``session``: its name, or as much of it as is enough.

    Its bytes are the agent's and may contain anything. Raises NoLog, ContainerNotFound, AmbiguousName, NotOurs and
    other ContainerErrors.
    """
    from podbot.management.logs import session_log

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        report_left(engine, environ, emit, spare=session)
        return session_log(engine, environ, session)


def filtered_network(session: str, *, environ: Mapping[str, str] | None = None) -> FilteredNetwork:
    """The policy and the log of a session's filtered network; ``session``: its name, or as much of it as is enough.

    Raises NoGateway if no running session of that name has such a network, and AmbiguousName.
    """
    from podbot.management.filtered_network import filtered_network as found

    return found(environment(environ), session)


def reports(
    session: str | None = None, *, shown: bool = False, environ: Mapping[str, str] | None = None
) -> list[KeptReport]:
    """The kept reports, newest first: those that were not shown, with ``shown`` all. Contacts no engine.

    ``session``: all of that session's; its name, or as much of it as is enough. Raises ReportNotFound,
    AmbiguousName and ReportsUnreadable.
    """
    from podbot.session.kept_reports import kept_reports

    return kept_reports(environment(environ), session, shown=shown)


def mark_shown(found: Sequence[KeptReport], *, environ: Mapping[str, str] | None = None) -> None:
    """These reports were shown."""
    from podbot.session.kept_reports import mark_shown as mark

    mark(environment(environ), found)

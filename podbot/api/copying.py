"""Copying files between this host and a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.api.calls import host_facts, woken
from podbot.api.engines import environment, open_engine, report_left
from podbot.config.models import AppConfig
from podbot.events import Emit, Event, ignore
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.transfer.limits import CopyReport


def copy(
    config: AppConfig,
    source: str,
    target: str,
    *,
    most: int | None = None,
    wake: Wake | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> CopyReport:
    """Copy a file or directory; one of ``source`` and ``target`` is NAME:PATH in a running session of podbot's.

    ``most``: bytes of all files; None: 4 GiB. Nothing is written outside of the target. Raises UsageError, CopyFailed,
    ContainerNotFound, AmbiguousName, NotOurs, SandboxStopped, SandboxPaused, DiskFull, PathError, Interrupted and other
    ContainerErrors; after an error a part may have been copied.
    """
    from podbot.launch.types import LaunchRequest
    from podbot.session.directory import session_guest
    from podbot.session.session_names import session_meant
    from podbot.session.shells import unless_running
    from podbot.transfer.copy_operands import read_locations
    from podbot.transfer.copying import CopyJob, copy_from, copy_to
    from podbot.transfer.limits import COPY_LIMITS, CopyReport

    first, second = read_locations(source, target)
    session = first.session or second.session
    environ = environment(environ)
    limits = COPY_LIMITS if most is None else COPY_LIMITS._replace(size=most)
    with open_engine(config, environ=environ, emit=emit) as engine, woken(wake) as waker:
        report_left(engine, environ, emit, spare=session)
        container = session_meant(engine, session)
        error = unless_running(engine, container)
        if error is not None:
            raise error
        guest = session_guest(environ, container.name)
        directory = guest[1] if guest is not None and guest[0].is_on(engine) else None
        facts = host_facts(config, LaunchRequest(), environ)
        text = f"copying {source} to {target}"
        emit(Event("info", "copy.start", text, {"session": container.name, "source": source, "target": target}))
        job = CopyJob(engine, container.name, directory, waker, facts, limits, CopyReport())
        if first.session:
            copy_from(job, first, second.path)
        else:
            copy_to(job, first.path, second)
        return job.report

"""Stops kept sessions so that they can be started again, after checks of what would keep them from that."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import AlreadyStarted, SandboxPaused, SessionNotRestorable
from podbot.events import Emit, ignore
from podbot.launch.names import keep_of
from podbot.management.manage import end_session
from podbot.places import runtime_root
from podbot.session.flags import is_live
from podbot.session.guarding import SCANNER, Scanner
from podbot.session.record import read_record
from podbot.session.restore import lasting_record
from podbot.session.session_names import session_meant
from podbot.session.starting import Facts, startable_plan

# The session's podbot looks over the workspace before it ends: for 6 s at most, four times that on a busy machine.
RELEASE_SECONDS = 60.0
_CHANGING = ("claimed", "creating", "starting")


def restartable(
    engine: Engine, environ: Mapping[str, str], names: Sequence[str], *, facts: Facts
) -> list[ContainerInfo]:
    """The sessions that ``names`` mean, each once. Nothing is changed.

    Raises ContainerNotFound, AmbiguousName, NotOurs, SandboxPaused, AlreadyStarted for one that a podbot is starting,
    SessionRecordUnknown, MountRefused as for a workspace that is gone, and SessionNotRestorable for a session on a
    remote engine, whose record does not agree with its container, or that its end removes: one that is not to be kept,
    or a clone that a podbot runs. What needs the stopped container or the network is found only by the start.
    """
    found = {container.id: container for container in (session_meant(engine, name) for name in names)}
    for container in found.values():
        _check(engine, environ, container, facts)
    return list(found.values())


def _check(engine: Engine, environ: Mapping[str, str], container: ContainerInfo, facts: Facts) -> None:
    session, keep = container.name, keep_of(container.labels)
    if not engine.local:
        hint = "Run podbot on that host."
        raise SessionNotRestorable(session=session, reason="its engine is on another host", hint=hint)
    if container.state == "paused":
        raise SandboxPaused(container=session, engine_hint=engine.words.continues(session))
    if keep == "never":
        raise SessionNotRestorable(session=session, reason=SessionNotRestorable.NOT_KEPT)
    path = os.path.join(runtime_root(environ), session)
    record, live = read_record(path, session), is_live(path)
    if live and (record is None or record.state in _CHANGING):
        raise AlreadyStarted(session=session, state=AlreadyStarted.CHANGING)
    if live and keep == "when_unsaved":
        raise SessionNotRestorable(session=session, reason=SessionNotRestorable.CLONE_RUNS)
    startable_plan(record or lasting_record(engine, environ, container), container, facts)


def stop_for_restart(
    engine: Engine,
    environ: Mapping[str, str],
    container: ContainerInfo,
    *,
    seconds: int,
    emit: Emit = ignore,
    release_seconds: float = RELEASE_SECONDS,
    scanner: Scanner = SCANNER,
) -> None:
    """Stop one of :func:`restartable`, remove nothing, and wait for the end of the podbot that ran it."""
    end_session(
        engine, environ, container, seconds=seconds, remove=False, only_ended=False, emit=emit,
        release_seconds=release_seconds, scanner=scanner,
    )  # fmt: skip

"""Finding what a killed podbot left behind, and telling podbot's containers from others."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import ContainerError, ContainerNotFound, NotOurs, PodbotError, SessionExists
from podbot.events import Emit, Event
from podbot.launch.names import LABEL, can_mean, is_name, keep_of
from podbot.places import runtime_root
from podbot.session.directory import left_session, sessions, sweep, take_untold
from podbot.session.flags import ENDING, flagged, is_in_use
from podbot.session.guarding import SCANNER, Scanner, report_left
from podbot.session.kept_reports import reporting
from podbot.session.network import remove_network
from podbot.session.record import observed, read_record

if TYPE_CHECKING:
    from podbot.launch.types import Keep
    from podbot.session.record import SessionRecord

OWN_END = 10.0  # seconds in which a sandbox without its podbot ends: TERM, 2 s, KILL, and the engine's clean-up
_LOOK = 0.05
_END: Mapping[Keep, str] = {
    "never": "removes it",
    "when_unsaved": "removes it unless it holds unsaved work",
    "always": "stops it, with `--rm` it is removed",
}


def our_container(engine: Engine, name: str) -> ContainerInfo:
    """The container called ``name``. Raises ContainerNotFound, or NotOurs when podbot did not make it."""
    container = engine.inspect(name)
    if not is_ours(container):
        raise NotOurs(container=name)
    return container


def is_ours(container: ContainerInfo) -> bool:
    """Whether podbot made the container. It inherits its image's labels, so an image could set "managed" by itself.

    The engine may be remote and the name becomes a path here, so a name that podbot would not choose is rejected.
    """
    labels = container.labels
    return (
        is_name(container.name)
        and labels.get(f"{LABEL}.managed") == "true"
        and labels.get(f"{LABEL}.session") == container.name
    )


def container_called(engine: Engine, name: str) -> ContainerInfo:
    """As :func:`our_container`, but rejects a container whose id begins with ``name``, which an engine finds too."""
    container = our_container(engine, name)
    if container.name != name:
        raise ContainerNotFound(container=name)
    return container


def is_kept(engine: Engine, name: str) -> bool:
    """Whether the container called ``name`` belongs to a kept session and is stopped."""
    try:
        container = container_called(engine, name)
    except ContainerError:
        return False
    return keep_of(container.labels) != "never" and container.state in ("exited", "stopped")


def await_own_end(engine: Engine, earlier: SessionRecord | None, emit: Emit, *, seconds: float = OWN_END) -> None:
    """Wait until the sandbox of ``earlier``, whose podbot was killed, has ended by itself; ``seconds`` at most.

    Returns at once where none is expected to end. Raises ContainerError subclasses other than ContainerNotFound.
    """
    if earlier is None or not earlier.leased or observed(earlier.state, live=False) != "orphaned":
        return
    name, until, reported = earlier.session, time.monotonic() + seconds, False
    with contextlib.suppress(ContainerNotFound, NotOurs):
        while _lasts(container_called(engine, name)) and time.monotonic() < until:
            if not reported:
                text = f"waiting for the previous session {name} to end"
                emit(Event("info", "session.ending", text, {"session": name}))
            reported = True
            time.sleep(_LOOK)


def _lasts(container: ContainerInfo) -> bool:
    """Whether its end is yet to come. One that may be kept stays, stopped, until its unsaved work was looked for."""
    return container.state not in ("exited", "stopped", "created") or keep_of(container.labels) == "never"


def report_orphans(
    engine: Engine, environ: Mapping[str, str], emit: Emit, *, spare: str = "", scanner: Scanner = SCANNER
) -> None:
    """Report once what killed podbots left on this engine, and remove directories whose container is gone.

    Orphaned sessions are removed if they are hosted or nothing runs in them, except those that the command may be about
    (``spare``: what was typed for a container's name or id) and one in which another `podbot exec` is running. Costs
    one directory listing when nothing was left behind. ``scanner``: the guard's.
    """
    sweep(environ)
    for found in sessions(environ):
        path = os.path.join(runtime_root(environ), found.session)
        if found.untold and not found.live:
            for event in take_untold(path):
                emit(event)
        if found.state is None and not found.live:
            text = f"this podbot cannot read the record of the session {found.session} in {path}"
            emit(Event("warning", "session.record_unknown", text, {"session": found.session, "path": path}))
        if found.live or not found.is_on(engine):
            continue
        try:
            container = container_called(engine, found.session)
        except (ContainerNotFound, NotOurs):
            _forget(engine, environ, path, emit, scanner)
            continue
        needed = is_in_use(path) or can_mean(spare, container.name) or (spare and container.id.startswith(spare))
        if found.left_behind and (needed or not _removed(engine, environ, container, emit, scanner)):
            text = f"the session {found.session} ({container.state}) was left behind by a podbot that was killed"
            if found.leased and container.state == "running":
                text += ", and ends by itself within seconds"
            hint = f"`podbot stop {found.session}` {_END[keep_of(container.labels)]}"
            emit(Event("notice", "session.orphan", f"{text}; {hint}", {"session": found.session}))


def _forget(engine: Engine, environ: Mapping[str, str], path: str, emit: Emit, scanner: Scanner) -> None:
    """Remove the directory of a session whose container is gone, unless another podbot now uses the name."""
    with contextlib.suppress(SessionExists), flagged(path, ENDING), left_session(path) as left:
        if left is None:
            return  # another podbot has removed it
        before = read_record(path)
        try:
            container_called(engine, os.path.basename(path))
        except (ContainerNotFound, NotOurs):
            from podbot.session.abandoned import clear_unlisted  # imported here: few commands find such a session
            from podbot.session.own_files import forget_files
            from podbot.session.stuck_servers import end_stuck

            end_stuck(left.record, emit)
            remove_network(engine, os.path.basename(path))
            if before is not None and before.state == "creating":
                try:
                    clear_unlisted(engine, before)
                except ContainerError as exc:  # it would come again with every command
                    text = f"what the engine has of the session {before.session} could not be removed: {exc.message}"
                    emit(Event("warning", "session.not_removed", text, {"session": before.session}))
            forget_files(environ, os.path.basename(path), left.record.created)
            if left.has_container:
                left.move("gone")
            with reporting(environ, left.record, emit) as told:
                report_left(path, told, scanner=scanner)


def _removed(
    engine: Engine, environ: Mapping[str, str], container: ContainerInfo, emit: Emit, scanner: Scanner
) -> bool:
    """Remove or keep an orphaned session; returns whether nothing is left for the caller to report."""
    from podbot.session.abandoned import is_over, remove_abandoned  # imported here: few commands find such a session

    record = read_record(os.path.join(runtime_root(environ), container.name))
    if not is_over(container, never_ran=record is not None and record.never_ran):
        return False
    try:
        remove_abandoned(engine, environ, container, emit, scanner=scanner)
    except SessionExists:
        return True
    except PodbotError as exc:
        text = f"the sandbox {container.name} of a killed podbot could not be removed: {exc.message}"
        emit(Event("warning", "session.not_removed", text, {"session": container.name}))
        return False
    return True

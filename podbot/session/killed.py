"""Removal, by a process that waited for that, of what is left of a session whose podbot was killed: ``kill_watcher``.

In this order: the sandbox, which as a rule ends by itself with its podbot (``resources.guest``); its network; the
session's directory.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from podbot.errors import ContainerError, ContainerNotFound, NotOurs, PodbotError, SessionExists
from podbot.events import Event
from podbot.launch.names import LABEL, keep_of
from podbot.session.abandoned import LIVES, clear_unlisted, end_abandoned
from podbot.session.container_processes import first_process, lives
from podbot.session.directory import left_session
from podbot.session.disposal import STOP_SECONDS
from podbot.session.flags import ENDING, ORPHANED, flagged, is_in_use, is_live
from podbot.session.guarding import report_left
from podbot.session.kept_reports import reporting
from podbot.session.network import remove_network
from podbot.session.orphans import container_called
from podbot.session.own_files import forget_files
from podbot.session.record import observed
from podbot.session.stuck_servers import end_stuck

if TYPE_CHECKING:
    from podbot.engine.port import ContainerInfo, Engine
    from podbot.session.record import SessionRecord

_LOOK = 0.1


class EndLimits(NamedTuple):
    """Seconds. ``own``: for a sandbox with a guest to end by itself (TERM, 2 s, KILL). ``removal``: for the engine to
    remove it after that. ``creation``: for a container whose creation podbot had requested to appear.
    """

    own: float = 4.0
    removal: float = 0.5
    creation: float = 5.0


END_LIMITS = EndLimits()
PAUSES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # seconds before each attempt


def until_done(work: Callable[[], None], pauses: Sequence[float] = PAUSES) -> None:
    """Do ``work``, and again after an error: an engine's service may be killed at any moment, too."""
    for pause in pauses:
        time.sleep(pause)
        with contextlib.suppress(PodbotError, OSError):  # OSError: of the files of an engine that is started again
            work()
            return


def _is_gone(pid: int) -> bool:
    """Whether the engine names a process that does not exist on this host."""
    return pid > 0 and not os.path.exists(f"/proc/{pid}")


def remove_left(
    engine: Engine,
    environ: Mapping[str, str],
    path: str,
    record: SessionRecord,
    limits: EndLimits = END_LIMITS,
    *,
    first: Callable[[int, str], int | None] = first_process,
    gone: Callable[[int], bool] = _is_gone,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Remove the session in directory ``path``, whose podbot was killed; a kept one that ran, and unsaved work, stay.

    What the operator has to know is kept for `podbot report` if it was hosted; else it is left in its record for the
    next podbot command. ``first``: opens a container's
    first process; ``gone``: whether that process does not exist. ``clock`` measures the ``limits``, and ``sleep`` waits
    between two looks. Raises ContainerError and FilesystemError subclasses; the next command continues then.
    """
    if observed(record.state, live=False) != "orphaned":
        return  # it was killed before it took the name of an earlier session
    over = _await_end(engine, path, record, limits, first=first, gone=gone, clock=clock, sleep=sleep)
    if is_live(path):
        return  # another podbot has taken it over
    events: list[Event] = []
    with (
        contextlib.suppress(SessionExists),
        flagged(path, ENDING),
        flagged(path, ORPHANED),  # left_session takes the session's lock, as a podbot does that runs it
        left_session(path) as directory,
    ):
        if directory is None or directory.record.state != "orphaned" or directory.record.created != record.created:
            return
        container = _container(engine, directory.record)
        if container is not None and _goes_on(container, record):
            return
        if container is not None and container.state in LIVES and not over:
            if _is_needed(path, record):
                return
            with contextlib.suppress(ContainerError):  # it is removed in any case
                engine.stop(container.id, seconds=STOP_SECONDS)
            container = _container(engine, directory.record)
        with reporting(environ, record, events.append) as told:
            if container is None:
                end_stuck(directory.record, told)
                remove_network(engine, record.session)
                if record.state == "creating":
                    clear_unlisted(engine, directory.record)
                forget_files(environ, record.session, record.created)
                directory.move("gone")
                report_left(path, told)
            else:
                end_abandoned(engine, environ, container, directory, told)
        untold = [event for event in events if event.level in ("notice", "warning") and event.kind != "session.removed"]
        if untold:
            directory.leave(untold)


def _container(engine: Engine, record: SessionRecord) -> ContainerInfo | None:
    """The session's own, not one of a later session of that name."""
    with contextlib.suppress(ContainerNotFound, NotOurs):
        found = container_called(engine, record.session)
        if record.created in ("", found.labels.get(f"{LABEL}.created")):
            return found
    return None


def _goes_on(container: ContainerInfo, record: SessionRecord) -> bool:
    """Whether it is its operator's to stop it."""
    return keep_of(container.labels) == "always" and not record.never_ran


def _is_needed(path: str, record: SessionRecord) -> bool:
    """Whether a `podbot exec` uses a sandbox that does not end by itself; then the next podbot command decides."""
    return not record.leased and is_in_use(path)


def _await_end(
    engine: Engine,
    path: str,
    record: SessionRecord,
    limits: EndLimits,
    *,
    first: Callable[[int, str], int | None],
    gone: Callable[[int], bool],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> bool:
    """Wait until the sandbox has ended by itself, has to be stopped, or is another podbot's.

    Returns whether all of its processes are known to have ended. Podman does not notice the end of a container whose
    monitor was killed (4.3), so the kernel is asked, which answers for the process that was the first while it lived.
    """
    began = clock()
    ended = handle = None
    try:
        while (waited := clock() - began) < limits.own + limits.removal and not is_live(path):
            container = _container(engine, record)
            if container is None:
                if record.state != "creating" or waited > limits.creation:
                    return True
            elif _goes_on(container, record):
                return False
            else:
                if handle is None and container.state in LIVES:
                    handle = first(container.pid, container.id)
                if container.state in LIVES and not gone(container.pid) and (handle is None or lives(handle)):
                    by_itself = record.leased or record.state == "creating"
                    if waited > limits.own or not (by_itself or _is_needed(path, record)):
                        return False
                else:
                    ended = ended or clock()  # its monitor removes it now, if that was not killed, too
                    if container.state == "created" or clock() - ended > limits.removal:
                        return True
            sleep(_LOOK)
    finally:
        if handle is not None:
            os.close(handle)
    return ended is not None

"""The helper process that ends a session after podbot has exited: agent, container, and the session's name."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podbot.engine.endpoint import EngineRef
from podbot.engine.port import Engine
from podbot.errors import ContainerNotFound, FilesystemError, PodbotError
from podbot.events import Event
from podbot.execution.command_control import CommandControl, terminated
from podbot.execution.engine_command import EngineCommand
from podbot.execution.guest_start import GuestControl
from podbot.execution.hosted_end import HOSTED_LIMITS, HostedLimits
from podbot.frozen import Frozen
from podbot.guest.link import SocketLink
from podbot.guest.polled_command import ConnectionState, PolledCommand
from podbot.launch.names import LABEL
from podbot.session.directory import SessionDirectory, remove_directory, remove_reported
from podbot.session.disposal import Disposal, dispose
from podbot.session.flags import WANTED, is_live
from podbot.session.guarding import report_left
from podbot.session.kept_reports import keeping
from podbot.session.killed import until_done
from podbot.session.login_copies import forget_copies, withdraw_copies
from podbot.session.network import remove_network
from podbot.session.record import SessionRecord, read_record
from podbot.session.stuck_servers import end_stuck

if TYPE_CHECKING:
    from podbot.launch.types import Keep

LOOK = 0.1  # seconds between checks whether the agent has ended
# Seconds before each attempt to remove the session. An engine's service that was killed is started again in 0.2 s;
# the session's name is taken until the last attempt has ended.
PAUSES = (0.0, 0.2, 0.8, 2.0)


class Job(Frozen):
    """A session to end. ``exec_id``, ``connection`` and ``state``: its agent, see ``LeftCommand``."""

    directory: str
    endpoint: str
    engine: str
    lock: int
    container: str
    labels: Mapping[str, str]
    keep: Keep
    clone: str | None
    files: str | None
    exec_id: str
    connection: int
    state: Mapping[str, Any]
    hurried: bool


def run(
    data: bytes,
    reopen: Callable[[EngineRef], Engine],
    *,
    environ: Mapping[str, str],
    pauses: Sequence[float] = PAUSES,
    limits: HostedLimits = HOSTED_LIMITS,
) -> None:
    """Carry out the job that ``data`` describes. ``environ`` names podbot's directories.

    ``reopen`` opens its engine without contacting it: a guest ends the agent without one. Errors cannot be reported
    here: unfinished work stays in the session's record for the next podbot command.
    """
    job = Job(**json.loads(data))
    ref = EngineRef(job.endpoint, job.engine)
    with contextlib.suppress(PodbotError), contextlib.closing(reopen(ref)) as engine:
        end_agent(engine, job, limits)

    def removed() -> None:
        with contextlib.closing(reopen(ref)) as engine:
            remove_session(engine, job, environ)

    until_done(removed, pauses)


def remove_session(engine: Engine, job: Job, environ: Mapping[str, str]) -> None:
    """Remove or keep the container, and what the session has on this host.

    Raises ContainerError and FilesystemError subclasses; the record then stays as it is, and a further call continues.
    """
    directory = SessionDirectory(job.directory, job.lock, _record(job))
    with directory.flags:
        events: list[Event] = []
        try:
            if directory.kept:
                pass  # by an earlier attempt
            elif _is_the_session_s(engine, job):
                what = Disposal(job.container, job.labels, job.keep, job.clone, job.files)
                dispose(engine, what, directory, events.append)
            else:
                end_stuck(directory.record, events.append)
                remove_network(engine, job.container)  # the container ended by itself, and the engine removed it
                directory.move("gone")
                if job.files is not None:
                    remove_directory(job.files)
        finally:
            _end_token(directory, events)
        created = job.labels.get(f"{LABEL}.created", "")
        if directory.kept:
            withdraw_copies(environ, job.container, created)
        elif not directory.has_container:
            forget_copies(environ, job.container, created)
        keep_events(directory, job, environ, events)


def keep_events(directory: SessionDirectory, job: Job, environ: Mapping[str, str], events: Sequence[Event]) -> None:
    """Keep what the operator has to know for `podbot report`: of a session that is gone only the warnings.

    What cannot be kept there is left for the next command.
    """
    left: list[Event] = []
    with keeping(environ, job.container, left.append) as told:
        for event in events:
            if directory.kept or event.level == "warning":
                told(event)
        if not directory.has_container or directory.kept:
            report_left(directory.path, told)
    untold = [event for event in left if event.level in ("notice", "warning")]
    if directory.kept or untold:
        directory.leave(untold)
    elif not directory.has_container:
        remove_reported(directory.path)


def _record(job: Job) -> SessionRecord:
    """The session's record, or a new one if it cannot be read: that must not prevent ending the session."""
    with contextlib.suppress(PodbotError):
        if (record := read_record(job.directory)) is not None:
            return record
    return SessionRecord(os.path.basename(job.directory), job.endpoint, "running", engine=job.engine)


def _is_the_session_s(engine: Engine, job: Job) -> bool:
    try:
        found = engine.inspect(job.container)
    except ContainerNotFound:
        return False
    return found.labels.items() >= job.labels.items()


def end_agent(engine: Engine, job: Job, limits: HostedLimits) -> None:
    """Wait for the grace, then TERM, then KILL. The container is removed afterwards even if none of it works."""
    control = _agent(engine, job, limits)
    if control is None:
        return
    try:
        if not _ends_by_itself(control, job, 0 if job.hurried else limits.grace):
            terminated(control, limits)
    finally:
        control.close()


def _agent(engine: Engine, job: Job, limits: HostedLimits) -> CommandControl | None:
    if job.connection >= 0:
        link = SocketLink(socket.socket(fileno=job.connection), job.container)
        running = PolledCommand.resumed(link, ConnectionState.read(job.state))
        return GuestControl(running, job.container, "", lambda: engine, limits)
    return EngineCommand(engine, job.container, job.exec_id, "", limits) if job.exec_id else None


def _ends_by_itself(control: CommandControl, job: Job, seconds: float) -> bool:
    """Wait for the agent's end; false if it still runs after ``seconds``, or if a new session needs the name.

    Its output is dropped meanwhile. A container or engine that is gone, which later steps handle, counts as its end.
    """
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if control.ends_within(max(0.0, min(left, LOOK))) is not False:
            return True
        if left <= 0 or is_live(job.directory, WANTED):
            return False


def _end_token(directory: SessionDirectory, events: list[Event]) -> None:
    """Remove a clone's token, and restore the grant of a kept container for a token-daemon."""
    from podbot.github.grant import Grant

    try:
        grant = Grant.load(directory.path)
    except FilesystemError:
        return
    if grant is None:
        return
    from podbot.github.keeper import clear_token
    from podbot.session.resources.token import restore_grant

    clear_token(directory.path, events.append)
    restore_grant(directory, grant, events.append)

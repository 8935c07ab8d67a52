"""What a helper process does for a podbot that has left: end the agent, remove or keep its container, free the name."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podbot.engine.port import Engine
from podbot.errors import ContainerError, ContainerNotFound, FilesystemError, PodbotError
from podbot.events import Event
from podbot.execution.group import signal_group
from podbot.execution.hosted import GRACE
from podbot.execution.runner import KILL_GRACE, TERM_GRACE
from podbot.session.disposal import Disposal, dispose
from podbot.session.flags import WANTED, is_live
from podbot.session.guarding import report_left
from podbot.session.record import SessionRecord, read_record
from podbot.session.sessions import SessionDirectory, remove_directory, remove_reported

if TYPE_CHECKING:
    from podbot.launch.types import Keep

LOOK = 0.1  # seconds between questions whether the agent has ended
CHUNK = 1 << 16


@dataclass(frozen=True)
class Job:
    """One session to be ended. ``exec_id`` empty: its agent has. ``descriptors``: see ``CommandSide.hand_over``."""

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
    descriptors: Sequence[int]
    hurried: bool


def run(data: bytes, reopen: Callable[[str, str], Engine]) -> None:
    """Carry out the job that ``data`` describes, on an engine that ``reopen`` opens, given its endpoint and kind.

    Nobody is there to be told of errors: what could not be done stays in the session's record for the next command.
    """
    job = Job(**json.loads(data))
    with contextlib.suppress(PodbotError), contextlib.closing(reopen(job.endpoint, job.engine)) as engine:
        end_session(engine, job)


def end_session(engine: Engine, job: Job) -> None:
    """Raises ContainerError and FilesystemError subclasses; the record then stays as it is."""
    directory = SessionDirectory(job.directory, job.lock, _record(job))
    told: list[Event] = []
    _end_agent(engine, job)
    try:
        if _is_the_session_s(engine, job):
            what = Disposal(job.container, job.labels, job.keep, job.clone, job.files)
            dispose(engine, what, directory, told.append)
        else:
            directory.move("gone")
            if job.files is not None:
                remove_directory(job.files)
    finally:
        _end_token(directory, told)
    left: list[Event] = []
    if not directory.has_container or directory.kept:
        report_left(directory.path, left.append)
    untold = [event for event in (*(told if directory.kept else ()), *left) if event.level in ("notice", "warning")]
    if directory.kept or untold:
        directory.leave(untold)
    elif not directory.has_container:
        remove_reported(directory.path)


def _record(job: Job) -> SessionRecord:
    """The session's own; what cannot be read keeps nobody from ending the session."""
    with contextlib.suppress(PodbotError):
        if (record := read_record(job.directory)) is not None:
            return record
    return SessionRecord(os.path.basename(job.directory), job.endpoint, "running")


def _is_the_session_s(engine: Engine, job: Job) -> bool:
    try:
        found = engine.inspect(job.container)
    except ContainerNotFound:
        return False
    return found.labels.items() >= job.labels.items()


def _end_agent(engine: Engine, job: Job) -> None:
    """Grace, TERM, KILL; what follows removes the container whatever came of it."""
    if not job.exec_id:
        return
    drain = _Drain(job.descriptors[:1])
    if _ended(engine, job, drain, 0 if job.hurried else GRACE, graceful=True):
        return
    for number, seconds in ((signal.SIGTERM, TERM_GRACE), (signal.SIGKILL, KILL_GRACE)):
        signal_group(engine, job.container, job.exec_id, number)
        if _ended(engine, job, drain, seconds):
            return


def _ended(engine: Engine, job: Job, drain: _Drain, seconds: float, *, graceful: bool = False) -> bool:
    """Wait for the agent's end; false when it is still there after ``seconds``, or somebody wants the name."""
    end = time.monotonic() + seconds
    while True:
        try:
            if not engine.exec_inspect(job.exec_id).running:
                return True
        except ContainerError:  # of a container that is gone, or an engine: what follows will see
            return True
        left = end - time.monotonic()
        if left <= 0 or (graceful and is_live(job.directory, WANTED)):
            return False
        drain.wait(min(left, LOOK))


class _Drain:
    """Reads what nobody wants, so that an agent is not held up, or ended, by its last words."""

    def __init__(self, descriptors: Sequence[int]) -> None:
        self._poller = select.poll()
        for fd in descriptors:
            self._poller.register(fd, select.POLLIN)

    def wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for fd, _ in self._poller.poll(left * 1000):
                try:
                    if os.read(fd, CHUNK):
                        continue
                except BlockingIOError:
                    continue
                except OSError:
                    pass
                self._poller.unregister(fd)


def _end_token(directory: SessionDirectory, told: list[Event]) -> None:
    """A clone's token goes with its session; a container that is kept has its grant back for a token-daemon."""
    from podbot.github.grant import Grant

    try:
        grant = Grant.load(directory.path)
    except FilesystemError:
        return
    if grant is None:
        return
    from podbot.github.keeper import clear_token
    from podbot.session.resources.token import restore_grant

    clear_token(directory.path, told.append)
    restore_grant(directory, grant, told.append)

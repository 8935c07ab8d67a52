"""The guard of a session: a record of the workspace before its agent starts, and a report behind its end.

The record is made beside the engine's own work on the container, the report once the container is gone (or stopped):
until then something inside could still write. The record lies in the session's directory, so that whoever ends the
session of a podbot that was killed can report as well.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from podbot.events import Emit, Event
from podbot.guard.marks import GuardReport
from podbot.locks import same_file
from podbot.session.first_process import first_process, lives

if TYPE_CHECKING:
    from podbot.engine.port import ContainerInfo
    from podbot.guard.child import Child
    from podbot.launch.resources.guard import GuardPlan
    from podbot.session.sessions import SessionDirectory

RECORD = "guard.record"
FIRST = {"seconds": 2.0}  # limits of the first scan: the agent waits for it
SECOND = {"seconds": 5.0}
PATIENCE = 1.0  # seconds beyond a scan's own limit, for a process that hangs
SECOND_PATIENCE = SECOND["seconds"] + PATIENCE


class Watch:
    """One session's guard."""

    def __init__(self, session: str, guard: GuardPlan, directory: SessionDirectory, emit: Emit) -> None:
        self._session = session
        self._workspace, self._git = guard.workspace, guard.git
        self._directory, self._emit = directory, emit
        self._record = ""
        self._child: Child | None = None
        self._first: int | None = None  # a descriptor of the container's first process
        self.recorded = False

    def begin(self) -> None:
        """Start the first scan. A record that is there stays: its session's container may still be at work."""
        names = (RECORD, *(f"guard.{number}.record" for number in range(1, 1 << 10)))
        paths = (os.path.join(self._directory.path, name) for name in names)
        self._record = next(path for path in paths if not os.path.lexists(path))
        job = {"what": "record", "session": self._session, "workspace": self._workspace, "git": self._git}
        self._child = self._started({**job, "record": self._record, "limits": FIRST})

    def ready(self) -> None:
        """Wait for the first scan: nothing inside may run before it has ended.

        The container exists: an earlier one of that name is gone, and what is there now it left.
        """
        report_left(self._directory.path, self._emit, but=self._record)
        if self._child is None:
            return
        answer = self._child.answer(FIRST["seconds"] + PATIENCE)
        self._child = None
        self.recorded = answer is not None
        if not self.recorded:
            self._warn(
                f"no record of {self._workspace} could be made in time, so podbot will not see what the agent leaves"
            )

    def started(self, container: ContainerInfo) -> None:
        """The container runs. Its first process is known from now on: its end is the end of all in it."""
        if self.recorded:
            self.close()
            self._first = first_process(container.pid, container.id)

    def prepare(self) -> None:
        """The agent has ended: a process for the second scan starts while its container is being removed.

        It begins when nothing runs inside any more, which is 85 to 300 ms before the engine has removed the container.
        A first process that has ended already tells nothing: somebody may have started the container again.
        """
        if self.recorded and not self._directory.handed_over:
            job = {"what": "compare", "record": self._record, "limits": SECOND}
            first = self._first if self._first is not None and lives(self._first) else None
            self._child = self._started(job, ended=first)

    def end(self, seconds: float) -> GuardReport | None:
        """Compare and report; None when there is nothing to compare, or not in time.

        The record stays where the container may still be at work, because its engine failed.
        """
        directory = self._directory
        if directory.handed_over:
            self.cancel()
            return None
        if not self.recorded:
            self.cancel()
            _unlink(self._record)
            return None
        if directory.has_container and not directory.kept:
            self.cancel()
            return None
        if self._child is None:
            self.prepare()
        left = None if self._child is None else _compared(self._child, seconds, self._emit)
        self._child = None
        if left is not None:
            _unlink(self._record)
        return left

    def cancel(self) -> None:
        """Nothing is to be reported."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def close(self) -> None:
        """Forget the container's first process."""
        if self._first is not None:
            os.close(self._first)
            self._first = None

    def _started(self, job: Mapping[str, object], *, ended: int | None = None) -> Child | None:
        from podbot.guard.child import Child

        try:
            return Child(job, ended=ended)
        except OSError as exc:
            self._warn(f"podbot cannot look at what the agent leaves in {self._workspace}: {exc}")
            return None

    def _warn(self, text: str) -> None:
        about = {"session": self._session, "workspace": self._workspace, "reasons": [text]}
        self._emit(Event("warning", "guard.incomplete", text, about))


def report_left(path: str, emit: Emit, *, but: str = "", seconds: float = SECOND_PATIENCE) -> GuardReport | None:
    """What the session in directory ``path`` left, whose podbot was killed or did not wait; None without a record.

    Its container does not run any more. Of several who do so at once one reports. A record that nobody could report of
    stays, and the directory with it. ``but``: a record of the caller's own.
    """
    left = None
    for record in records(path):
        if record != but:
            with _taken(record) as ours:
                if ours:
                    left = _reported(record, seconds, emit) or left
    return left


def records(path: str) -> list[str]:
    """The records in a session's directory that nobody has reported of."""
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return []
    return [os.path.join(path, name) for name in names if name.startswith("guard.") and name.endswith(".record")]


@contextlib.contextmanager
def _taken(record: str) -> Iterator[bool]:
    """Whether it is ours to report of; the kernel gives it back when we are killed."""
    try:
        lock = os.open(record, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield same_file(lock, record)
    finally:
        os.close(lock)


def _reported(record: str, seconds: float, emit: Emit) -> GuardReport | None:
    from podbot.guard.child import Child

    session = os.path.basename(os.path.dirname(record))
    try:
        child = Child({"what": "compare", "record": record, "limits": SECOND})
        try:
            left = _compared(child, seconds, emit)
        finally:
            child.close()
    except OSError as exc:
        text = f"podbot cannot look at what the agent of {session} left: {exc}"
        emit(Event("warning", "guard.incomplete", text, {"session": session, "reasons": [text]}))
        return None
    if left is not None or not _is_whole(record):
        _unlink(record)
    return left


def _is_whole(record: str) -> bool:
    """Whether a later command can report of it: not another version's."""
    import marshal

    from podbot.guard.marks import from_plain

    try:
        with open(record, "rb") as file:
            from_plain(marshal.load(file)["snapshot"])  # noqa: S302 - in podbot's own directory
    except (AttributeError, EOFError, KeyError, TypeError, ValueError):
        return False
    except OSError:
        return True
    return True


def _unlink(record: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(record)


def _compared(child: Child, seconds: float, emit: Emit) -> GuardReport | None:
    from podbot.guard.child import left_of
    from podbot.guard.render import events

    child.go()
    answer = child.answer(seconds)
    if answer is None:
        text = f"podbot could not look at what the agent left within {seconds:g} s"
        emit(Event("warning", "guard.incomplete", text, {"reasons": [text]}))
        return None
    left = left_of(answer)
    for event in events(left, answer["session"], answer["workspace"]):
        emit(event)
    return left

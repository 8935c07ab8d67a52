"""The guard of a session: a scan of the workspace before its agent starts, and a report after it has ended.

The first scan runs while the engine creates the container. The report is made once the container is removed or
stopped, since until then something inside could still write. The first scan's record is in the session's directory,
so that a later podbot can report even when the session's own podbot was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from podbot.events import Emit, Event
from podbot.frozen import Frozen
from podbot.guard.marks import GuardReport
from podbot.locks import same_file
from podbot.session.container_processes import first_process, lives
from podbot.session.directory import guard_records

if TYPE_CHECKING:
    from podbot.engine.port import ContainerInfo
    from podbot.guard.child import Child
    from podbot.launch.resources.guard import GuardPlan
    from podbot.session.directory import SessionDirectory

RECORD = "guard.record"


class Scanner(Frozen):
    """How a workspace is scanned. ``first`` and ``second`` are the time limits of the two scans, in seconds.

    ``patience``: seconds that a scan may exceed its limit before it is treated as hung. ``script``: the program; None
    for podbot's own.
    """

    first: float = 2.0  # the agent waits for it
    second: float = 5.0
    patience: float = 1.0
    script: str | None = None

    def record(self, job: Mapping[str, object]) -> Child:
        """Start the first scan. Raises OSError where no process can be started."""
        return self._started({**job, "what": "record", "limits": {"seconds": self.first}})

    def compare(self, record: str, *, ended: int | None = None) -> Child:
        """Start a process for the second scan. ``ended``: see ``Child``. Raises OSError."""
        return self._started({"what": "compare", "record": record, "limits": {"seconds": self.second}}, ended)

    def _started(self, job: Mapping[str, object], ended: int | None = None) -> Child:
        from podbot.guard.child import Child

        return Child(job, ended=ended, script=self.script)


SCANNER = Scanner()


class Watch:
    """One session's guard."""

    def __init__(
        self, session: str, guard: GuardPlan, directory: SessionDirectory, emit: Emit, scanner: Scanner = SCANNER
    ) -> None:
        self._session = session
        self._scanner = scanner
        self._workspace, self._git = guard.workspace, guard.git
        self._directory, self._emit = directory, emit
        self._record = ""
        self._child: Child | None = None
        self._first: int | None = None  # a descriptor of the container's first process
        self.recorded = False

    def begin(self) -> None:
        """Start the first scan. An existing record stays: the container of its session may still be running."""
        names = (RECORD, *(f"guard.{number}.record" for number in range(1, 1 << 10)))
        paths = (os.path.join(self._directory.path, name) for name in names)
        self._record = next(path for path in paths if not os.path.lexists(path))
        self._directory.guard_record = self._record
        job = {"session": self._session, "workspace": self._workspace, "git": self._git, "record": self._record}
        self._child = self._started(lambda: self._scanner.record(job))

    def ready(self) -> None:
        """Wait for the first scan: nothing inside may run before it has ended."""
        if self._child is None:
            return
        answer = self._child.answer(self._scanner.first + self._scanner.patience)
        self._child = None
        self.recorded = answer is not None
        if not self.recorded:
            self._warn(
                f"no record of {self._workspace} could be made in time, so podbot will not see what the agent leaves"
            )

    def started(self, container: ContainerInfo) -> None:
        """The container runs. Remember its first process: when that one ends, everything in the container has ended."""
        if self.recorded:
            self.close()
            self._first = first_process(container.pid, container.id)

    def prepare(self) -> None:
        """Start the process of the second scan after the agent's end, while its container is being removed.

        It scans as soon as nothing runs inside, which is 85 to 300 ms before the engine has removed the container.
        If the first process has ended already, that proves nothing: the container may have been started again.
        """
        if self.recorded and not self._directory.handed_over:
            first = self._first if self._first is not None and lives(self._first) else None
            self._child = self._started(lambda: self._scanner.compare(self._record, ended=first))

    def end(self) -> GuardReport | None:
        """Compare and report; None when there is no record, or when the comparison takes too long.

        The record stays if the container may still be running because its engine failed.
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
        left, whole = (None, False) if self._child is None else _compared(self._child, self._scanner, self._emit)
        self._child = None
        if whole:
            _unlink(self._record)
        return left

    def cancel(self) -> None:
        """Stop a scan that is under way; nothing is reported."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def close(self) -> None:
        """Forget the container's first process."""
        if self._first is not None:
            os.close(self._first)
            self._first = None

    def _started(self, start: Callable[[], Child]) -> Child | None:
        try:
            return start()
        except OSError as exc:
            self._warn(f"podbot cannot look at what the agent leaves in {self._workspace}: {exc}")
            return None

    def _warn(self, text: str) -> None:
        about = {"session": self._session, "workspace": self._workspace, "reasons": [text]}
        self._emit(Event("warning", "guard.incomplete", text, about))


def report_left(path: str, emit: Emit, *, but: str = "", scanner: Scanner = SCANNER) -> GuardReport | None:
    """Report on the session in directory ``path``, whose podbot was killed or did not wait; None without a record.

    Its container must have ended. If several processes call this at once, one of them reports. A record whose report
    failed stays, and so does the directory. ``but`` is the caller's own record, which is skipped.
    """
    left = None
    for record in guard_records(path):
        if record != but:
            with _taken(record) as ours:
                if ours:
                    left = _reported(record, scanner, emit) or left
    return left


@contextlib.contextmanager
def _taken(record: str) -> Iterator[bool]:
    """Lock the record; yields whether we got the lock. The kernel releases it if we are killed."""
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


def _reported(record: str, scanner: Scanner, emit: Emit) -> GuardReport | None:
    session = os.path.basename(os.path.dirname(record))
    try:
        child = scanner.compare(record)
        try:
            left, _ = _compared(child, scanner, emit)
        finally:
            child.close()
    except OSError as exc:
        text = f"podbot cannot look at what the agent of {session} left: {exc}"
        emit(Event("warning", "guard.incomplete", text, {"session": session, "reasons": [text]}))
        return None
    if left is not None or not _is_whole(record):  # also a part: another attempt would end as this one
        _unlink(record)
    return left


def _is_whole(record: str) -> bool:
    """Whether a later command can use the record: it is readable and was not written by another version."""
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


def _compared(child: Child, scanner: Scanner, emit: Emit) -> tuple[GuardReport | None, bool]:
    """The report, and whether it is about everything. The next command repeats one that is not, once."""
    from podbot.guard.child import left_of
    from podbot.guard.render import events

    seconds = scanner.second + scanner.patience
    child.go()
    answer = child.answer(seconds)
    if answer is None:
        text = f"podbot could not look at what the agent left within {seconds:g} s"
        emit(Event("warning", "guard.incomplete", text, {"reasons": [text]}))
        return None, False
    left, whole = left_of(answer), answer["whole"]
    if not whole:
        gap = f"only the repository at the top was looked at: the scan failed then, or took longer than {seconds:g} s"
        left = left._replace(gaps=(*left.gaps, gap))
    for event in events(left, answer["session"], answer["workspace"]):
        emit(event)
    return left, whole

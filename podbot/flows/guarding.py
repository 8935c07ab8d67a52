"""The guard of a session: a record of the workspace before its agent starts, and a report behind its end.

The record is made beside the engine's own work on the container, the report once the container is gone (or stopped):
until then something inside could still write. The record lies in the session's directory, so that whoever ends the
session of a podbot that was killed can report as well.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from podbot.events import Emit, Event
from podbot.guard.marks import GuardReport

if TYPE_CHECKING:
    from podbot.flows.sessions import SessionDirectory
    from podbot.guard.child import Child
    from podbot.launch.types import LaunchPlan

RECORD = "guard.json"
FIRST = {"seconds": 2.0}  # limits of the first scan: the agent waits for it
SECOND = {"seconds": 5.0}
PATIENCE = 1.0  # seconds beyond a scan's own limit, for a process that hangs


class Watch:
    """One session's guard."""

    def __init__(self, plan: LaunchPlan, directory: SessionDirectory, emit: Emit) -> None:
        self._session = plan.session
        self._workspace, self._git = (plan.guard.workspace, plan.guard.git) if plan.guard is not None else ("", "")
        self._directory, self._emit = directory, emit
        self._record = os.path.join(directory.path, RECORD)
        self._child: Child | None = None
        self.recorded = False

    def begin(self) -> None:
        """Start the first scan."""
        remove_record(self._directory.path)
        job = {"what": "record", "session": self._session, "workspace": self._workspace, "git": self._git}
        self._child = self._started({**job, "record": self._record, "limits": FIRST})

    def ready(self) -> None:
        """Wait for the first scan: nothing inside may run before it has ended."""
        if self._child is None:
            return
        answer = self._child.answer(FIRST["seconds"] + PATIENCE)
        self._child = None
        self.recorded = answer is not None
        if not self.recorded:
            self._warn(
                f"no record of {self._workspace} could be made in time, so podbot will not see what the agent leaves"
            )

    def prepare(self) -> None:
        """The agent has ended: a process for the second scan starts while its container is being removed."""
        if self.recorded and not self._directory.handed_over:
            self._child = self._started({"what": "compare", "record": self._record, "limits": SECOND})

    def end(self, seconds: float) -> GuardReport | None:
        """Compare and report; None when there is nothing to compare, or not in time."""
        if self._directory.handed_over or not self.recorded:
            self.cancel()
            return None
        if self._child is None:
            self.prepare()
        left = None if self._child is None else _compared(self._child, seconds, self._emit)
        self._child = None
        if left is None:
            self._directory.unreported = True
        else:
            remove_record(self._directory.path)
        return left

    def cancel(self) -> None:
        """Nothing is to be reported."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _started(self, job: dict[str, object]) -> Child | None:
        from podbot.guard.child import Child

        try:
            return Child(job)
        except OSError as exc:
            self._warn(f"podbot cannot look at what the agent leaves in {self._workspace}: {exc}")
            return None

    def _warn(self, text: str) -> None:
        about = {"session": self._session, "workspace": self._workspace, "reasons": [text]}
        self._emit(Event("warning", "guard.incomplete", text, about))


@contextlib.contextmanager
def watched(plan: LaunchPlan, directory: SessionDirectory, emit: Emit) -> Iterator[Watch]:
    """The guard of ``plan``, around the making and removing of its container; its result is ``directory.guard``."""
    watch = Watch(plan, directory, emit)
    if plan.guard is not None:
        watch.begin()
    try:
        yield watch
    finally:
        directory.guard = watch.end(SECOND["seconds"] + PATIENCE)


def report_left(path: str, emit: Emit, *, seconds: float = SECOND["seconds"] + PATIENCE) -> GuardReport | None:
    """What the session in directory ``path`` left, whose podbot was killed or did not wait; None without a record.

    Its container does not run any more. Of several who do so at once one reports.
    """
    record = os.path.join(path, RECORD)
    taken = f"{record}.{os.getpid()}"
    try:
        os.rename(record, taken)
    except OSError:
        return None
    from podbot.guard.child import Child

    try:
        return _compared(Child({"what": "compare", "record": taken, "limits": SECOND}), seconds, emit)
    except OSError as exc:
        text = f"podbot cannot look at what the agent of {os.path.basename(path)} left: {exc}"
        emit(Event("warning", "guard.incomplete", text, {"session": os.path.basename(path), "reasons": [text]}))
        return None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(taken)


def remove_record(path: str) -> None:
    """Of the session in directory ``path``: it has been reported."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(path, RECORD))


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

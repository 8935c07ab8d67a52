"""How a hosted command ends when a guest runs it: real processes, the real relay, an engine that only knows a pid."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from podbot.events import Event
from podbot.exec_spec import ExecSpec
from podbot.execution.command_control import LeftCommand
from podbot.execution.hosted_end import HostedEnd, HostedLimits
from podbot.execution.runner import ExecIO, ExecSession, ExecStatus
from podbot.execution.sandbox_start import SandboxStart
from podbot.streams.wake import Signal
from tests.execution.guests import Guests, guests, lives
from tests.execution.running import Running, running
from tests.streams.channels import LineFilter
from tests.streams.plumbing import in_thread
from tests.waiting import HANG, wait_until

NEVER = HostedLimits(
    term=HANG, kill=HANG, last_output=HANG, status=HANG, greeting=HANG, grace=HANG,
    rest=HANG, look=HANG, delivery=HANG,
)  # fmt: skip


@dataclass
class Successor:
    """Records what it gets, and keeps the connection open as the helper process does."""

    left: list[LeftCommand] = field(default_factory=list)
    held: int = -1

    def __call__(self, left: LeftCommand, *, hurried: bool) -> bool:
        del hurried
        self.left.append(left)
        if left.connection >= 0:
            self.held = os.dup(left.connection)
        return True


@dataclass
class Rig(Running):
    at: Guests
    place: Path
    events: list[Event] = field(default_factory=list)
    limits: HostedLimits = NEVER
    successor: Successor | None = None

    def run(self, line: str) -> ExecStatus:
        end = HostedEnd(self.events.append, limits=self.limits)
        end.successor = self.successor
        session = ExecSession(
            SandboxStart(self.engine, self.name, guest=self.at.directory),
            spec=ExecSpec(("/bin/sh", "-c", line)),
            io=ExecIO(self.stdin.read, self.stdout.write, self.stderr.write),
            wake=self.wake,
            policy=end,
            through=LineFilter(),
            sandbox_ends=True,
        )
        return session.run()

    def leave_at_pid(self) -> None:
        """The client leaves when the command has written its ``pid``."""
        try:
            wait_until(lambda: (self.place / "pid").exists() and (self.place / "pid").read_text().endswith("\n"))
        finally:
            self.stdin.close(self.stdin.write)

    @property
    def pid(self) -> int:
        """What the command wrote into the file ``pid``."""
        return int((self.place / "pid").read_text())


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with running() as made, guests(tmp_path) as at:
        rig = Rig(**vars(made), at=at, place=tmp_path)
        yield rig
        if rig.successor is not None and rig.successor.held >= 0:
            os.close(rig.successor.held)
    assert made.engine.sessions == {}, "the engine ran a command"


def test_what_it_prints_after_the_end_of_its_input_is_delivered(rig: Rig) -> None:
    os.write(rig.stdin.write, b"in\n")
    rig.stdin.close(rig.stdin.write)
    assert rig.run("cat; echo last; exit 4") == ExecStatus(4)
    assert rig.said(rig.stdout) == b"in\nlast\n"


def test_one_that_stays_is_left_to_the_successor_and_still_runs(rig: Rig) -> None:
    rig.limits = dataclasses.replace(NEVER, rest=0)
    rig.successor = Successor()
    with in_thread(rig.leave_at_pid):
        assert rig.run(f"echo $$ >{rig.place}/pid; cat; exec sleep 600") == ExecStatus(0)
    (left,) = rig.successor.left
    assert (left.exec_id, left.state["pid"]) == ("", rig.pid)
    assert lives(rig.pid)


def test_without_a_successor_it_is_terminated_with_what_left_its_group(rig: Rig) -> None:
    rig.limits = dataclasses.replace(NEVER, grace=0, term=0)
    line = f"setsid sh -c 'echo $$ >{rig.place}/pid; exec sleep 600' & until [ -s {rig.place}/pid ]; do :; done; wait"
    with in_thread(rig.leave_at_pid):
        status = rig.run(f"trap '' TERM; {line}")
        assert status == ExecStatus(128 + signal.SIGKILL, killed=signal.SIGKILL, cause="podbot")
    assert [event.kind for event in rig.events] == ["host.grace"]
    assert not lives(rig.pid)


def test_a_signal_ends_it(rig: Rig) -> None:
    rig.limits = dataclasses.replace(NEVER, grace=0)

    def terminate() -> None:
        try:
            wait_until((rig.place / "pid").exists)
        finally:
            rig.wake.post(Signal(signal.SIGTERM))

    with in_thread(terminate):
        assert rig.run(f"echo $$ >{rig.place}/pid; exec sleep 600") == ExecStatus(143, signal.SIGTERM)

"""A hosted exec whose agent is left to a successor, which sees to its end (issue 10.16)."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from podbot.errors import OutputClosed
from podbot.execution.command_control import LeftCommand
from podbot.execution.runner import ExecStatus
from podbot.streams.wake import Signal
from podbot.testing import STDOUT, ExecPeer
from tests.execution.hosted_rig import LONG, Rig, Stubborn
from tests.waiting import HANG, wait_until


@dataclass
class Heir:
    """A successor that records its job, and ends the agent when it takes over."""

    rig: Rig
    takes: bool = True
    given: list[tuple[LeftCommand, bool]] = field(default_factory=list)

    def __call__(self, left: LeftCommand, *, hurried: bool) -> bool:
        self.given.append((left, hurried))
        return self.takes


@pytest.fixture
def heir(rig: Rig) -> Iterator[Heir]:
    """Terminates the agents that are still running at the end of the test."""
    rig.successor = made = Heir(rig)
    yield made
    for session in rig.engine.sessions.values():
        if session.running:
            session.end(0)


def test_an_agent_that_does_not_exit_is_left_to_the_successor(rig: Rig, heir: Heir) -> None:
    rig.wait(rest=0)
    agent = Stubborn()
    rig.stdin.close(rig.stdin.write)
    assert rig.run(agent) == ExecStatus(0)
    (exec_id,) = rig.engine.sessions
    assert heir.given == [(LeftCommand(exec_id=exec_id), False)]
    assert agent.ended_input.wait(HANG)
    rig.engine.sessions[exec_id].end(0)
    assert agent.signals == []
    assert not rig.events


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_after_a_signal_the_status_is_128_plus_its_number(rig: Rig, heir: Heir, number: int) -> None:
    rig.wait(rest=0)
    rig.wake.post(Signal(number))
    assert rig.run(Stubborn()) == ExecStatus(128 + number, signal=number)
    assert [hurried for _, hurried in heir.given] == [False]


def test_a_second_signal_leaves_it_at_once(rig: Rig, heir: Heir) -> None:
    agent = Stubborn()

    def twice() -> None:
        rig.wake.post(Signal(signal.SIGTERM))
        assert agent.ended_input.wait(HANG)
        rig.wake.post(Signal(signal.SIGTERM))

    with rig.meanwhile(twice):
        assert rig.run(agent) == ExecStatus(143, signal=15)
    assert [hurried for _, hurried in heir.given] == [True]


def test_an_agent_that_leaves_in_time_needs_no_successor(rig: Rig, heir: Heir) -> None:
    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, io.read_all() + b"bye\n")
        return 4

    os.write(rig.stdin.write, b"hello\n")
    rig.stdin.close(rig.stdin.write)
    assert rig.run(agent) == ExecStatus(4)
    assert rig.said(rig.stdout) == b"hello\nbye\n"
    assert heir.given == []


def test_without_a_working_successor_we_end_the_agent_ourselves(rig: Rig, heir: Heir) -> None:
    rig.wait(rest=0, grace=0)
    heir.takes = False
    rig.stdin.close(rig.stdin.write)
    assert rig.run(Stubborn()) == ExecStatus(143)
    assert len(heir.given) == 1
    assert rig.kinds == ["host.grace"]


def test_and_after_two_signals_as_well(rig: Rig, heir: Heir) -> None:
    rig.wait(term=0)
    heir.takes = False
    agent = Stubborn(deaf=True)

    def twice() -> None:
        rig.wake.post(Signal(signal.SIGTERM))
        assert agent.ended_input.wait(HANG)
        rig.wake.post(Signal(signal.SIGTERM))

    with rig.meanwhile(twice):
        assert rig.run(agent) == ExecStatus(143, signal=15)
    assert agent.signals == [signal.SIGTERM, signal.SIGKILL]


def test_bytes_that_neither_side_reads_are_lost_and_reported(rig: Rig, heir: Heir) -> None:
    rig.wait(rest=0)
    written = threading.Event()  # which includes that podbot has read most of it

    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"z" * 899_999 + b"\n")
        written.set()
        io.ended.wait(LONG)
        return 0

    def client() -> None:
        assert written.wait(HANG)
        for _ in range(900):
            os.write(rig.stdin.write, b"x" * 1023 + b"\n")
        rig.stdin.close(rig.stdin.write)

    with rig.meanwhile(client):
        assert rig.run(agent) == ExecStatus(0)
    assert rig.kinds == ["host.undelivered", "host.unsent"]
    assert len(heir.given) == 1


def test_an_agent_that_ended_is_not_left_and_its_output_has_no_more_time(rig: Rig, heir: Heir) -> None:
    deadlines: list[float | None] = []

    def agent(io: ExecPeer) -> int:
        io.read_all()
        wait_until(lambda: deadlines)
        io.write(STDOUT, b"z" * 299_999 + b"\n")
        return 3

    def passes() -> None:
        wait_until(lambda: "input_ended" in rig.end.since.pauses)
        deadlines.append(rig.end.since.deadline)
        wait_until(lambda: "undelivered" in rig.end.since.pauses)
        deadlines.append(rig.end.since.deadline)
        rig.end.pass_deadline()

    rig.stdin.close(rig.stdin.write)
    with rig.meanwhile(passes):
        assert rig.run(agent).code == 3
    assert deadlines[0] == deadlines[1]
    assert rig.kinds == ["host.undelivered"]
    assert heir.given == []


def test_a_client_that_closed_its_stdout_does_not_wait_for_the_agent(rig: Rig, heir: Heir) -> None:
    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"hello\n")
        io.ended.wait(LONG)
        return 0

    rig.stdout.close(rig.stdout.read)
    with pytest.raises(OutputClosed):
        rig.run(agent)
    assert [hurried for _, hurried in heir.given] == [True]


def test_undelivered_output_is_still_a_failure(rig: Rig, heir: Heir) -> None:
    def agent(io: ExecPeer) -> int:
        io.read_all()
        io.write(STDOUT, b"hello\n")
        io.ended.wait(LONG)
        return 0

    def passes() -> None:
        assert rig.end.stdout_closed.wait(HANG)
        rig.end.pass_deadline()

    rig.stdin.close(rig.stdin.write)
    rig.stdout.close(rig.stdout.read)
    with rig.meanwhile(passes), pytest.raises(OutputClosed):
        rig.run(agent)
    assert len(heir.given) == 1

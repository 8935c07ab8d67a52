"""How a hosted exec ends: by the agent, by the client, by a signal, and with clients that read nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from podbot.errors import DiskFull, EngineGone, OutputClosed, RequestFailed, SandboxDied
from podbot.events import Event
from podbot.execution.command_control import LeftCommand
from podbot.execution.engine_start import EngineStart
from podbot.execution.hosted_end import HostedEnd, HostedLimits, Successor
from podbot.execution.runner import ExecIO, ExecSession, ExecStatus
from podbot.launch.types import ExecSpec
from podbot.streams.wake import Resize, Signal
from podbot.testing import STDERR, STDOUT, Command, ExecPeer, ScriptedExec
from tests.execution.running import Running
from tests.streams.channels import LineFilter
from tests.streams.plumbing import in_thread

SOON = HostedLimits(term=0.05, kill=0.05, status=0.05, grace=0.05, delivery=0.05, look=0.05, rest=0.05)


@dataclass
class Rig(Running):
    """The agent's steps come soon; :meth:`wait` changes that."""

    events: list[Event] = field(default_factory=list)
    through: LineFilter = field(default_factory=LineFilter)
    successor: Successor | None = None
    limits: HostedLimits = SOON

    def run(self, command: Command, io: ExecIO | None = None) -> ExecStatus:
        self.engine.on("it", command)
        end = HostedEnd(self.events.append, limits=self.limits)
        end.successor = self.successor
        session = ExecSession(
            EngineStart(self.engine, self.name),
            spec=ExecSpec(command=("it",)),
            io=io or ExecIO(self.stdin.read, self.stdout.write, self.stderr.write),
            wake=self.wake,
            policy=end,
            through=self.through,
        )
        return session.run()

    def wait(self, **seconds: float) -> None:
        """Other limits, by name."""
        self.limits = dataclasses.replace(self.limits, **seconds)  # type: ignore[arg-type]

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


@pytest.fixture
def rig(container: Running) -> Rig:
    return Rig(**vars(container))


class Stubborn:
    """An agent that ignores the end of its input, and, when ``deaf``, TERM as well."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.deaf = deaf
        self.signals: list[int] = []
        self.ended_input = threading.Event()

    def __call__(self, io: ExecPeer) -> int:
        if self.deaf:
            io.trap(signal.SIGTERM)
        io.read_all()
        self.ended_input.set()
        while not io.ended.wait(0.005):
            with contextlib.suppress(queue.Empty):
                self.signals.append(io.signals.get_nowait())
        return 99


# --- the agent's own end ----------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 3, 137, 255])
def test_the_session_ends_with_the_agent_while_the_client_is_connected(rig: Rig, code: int) -> None:
    assert rig.run(ScriptedExec(stdout=b"one\ntwo\n", stderr=b"err", code=code)) == ExecStatus(code)
    assert (rig.said(rig.stdout), rig.said(rig.stderr)) == (b"one\ntwo\n", b"err")
    assert rig.through.ends == ["agent"]
    assert not rig.events


def test_an_agent_that_exits_when_its_input_ends(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, io.read_all().upper())
        return 4

    os.write(rig.stdin.write, b"hello\nhalf")
    rig.stdin.close(rig.stdin.write)
    assert rig.run(agent) == ExecStatus(4)
    assert rig.said(rig.stdout) == b"HELLO\n"
    assert not rig.events


# --- the client's end, and signals ------------------------------------------------------------------


def test_an_agent_that_ignores_the_end_of_its_input_gets_term(rig: Rig) -> None:
    rig.stdin.close(rig.stdin.write)
    assert rig.run(Stubborn()) == ExecStatus(128 + signal.SIGTERM)
    assert rig.kinds == ["host.grace"]


def test_an_agent_that_ignores_term_is_killed(rig: Rig) -> None:
    agent = Stubborn(deaf=True)
    rig.stdin.close(rig.stdin.write)
    assert rig.run(agent) == ExecStatus(128 + signal.SIGKILL)
    assert agent.signals[:1] == [signal.SIGTERM]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_its_input_before_anything_else(rig: Rig, number: int) -> None:
    os.write(rig.stdin.write, b"queued\n")

    def agent(io: ExecPeer) -> int:
        got = io.read()
        rig.wake.post(Resize())
        rig.wake.post(Signal(number))
        io.write(STDOUT, got + io.read_all() + b"bye\n")
        return 0

    assert rig.run(agent) == ExecStatus(128 + number, signal=number)
    assert rig.said(rig.stdout) == b"queued\nbye\n"
    assert not rig.events


def test_a_second_signal_does_not_wait_for_the_grace(rig: Rig) -> None:
    rig.wait(grace=60.0, term=60.0)
    agent = Stubborn(deaf=True)

    def thrice() -> None:
        for _ in range(3):
            rig.wake.post(Signal(signal.SIGINT))
            agent.ended_input.wait(10)
            time.sleep(0.03)

    began = time.monotonic()
    with in_thread(thrice):
        assert rig.run(agent) == ExecStatus(130, signal=signal.SIGINT)
    assert time.monotonic() - began < 10
    assert agent.signals[:1] == [signal.SIGTERM]


def test_a_signal_after_the_clients_end_only_changes_the_status(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        io.read_all()
        rig.wake.post(Signal(signal.SIGTERM))
        time.sleep(0.01)
        io.write(STDOUT, b"saved\n")
        return 0

    rig.stdin.close(rig.stdin.write)
    assert rig.run(agent) == ExecStatus(143, signal=15)
    assert rig.said(rig.stdout) == b"saved\n"


def test_what_is_queued_reaches_a_slow_agent_before_its_input_ends(rig: Rig) -> None:
    rig.wait(grace=0.25)  # less than it takes
    sent = b"x" * 1023 + b"\n"
    took = bytearray()

    def agent(io: ExecPeer) -> int:
        while piece := io.read(64 << 10):
            took.extend(piece)
            time.sleep(0.02)
        return 0

    def client() -> None:
        for _ in range(1500):
            os.write(rig.stdin.write, sent)
        rig.stdin.close(rig.stdin.write)

    with in_thread(client):
        assert rig.run(agent) == ExecStatus(0)
    assert len(took) == 1500 * 1024


def test_an_agent_that_reads_nothing_is_not_waited_for(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        io.ended.wait(20)
        return 0

    def client() -> None:
        for _ in range(900):
            os.write(rig.stdin.write, b"x" * 1023 + b"\n")
        rig.stdin.close(rig.stdin.write)

    with in_thread(client):
        assert rig.run(agent) == ExecStatus(143)


# --- a client that does not read, or is gone ----------------------------------------------------------


def test_output_is_delivered_to_a_slow_reader_after_the_end(rig: Rig) -> None:
    line = b"y" * 1023 + b"\n"
    got = bytearray()

    def reader() -> None:
        while len(got) < 300 * 1024:
            got.extend(os.read(rig.stdout.read, 8192))
            time.sleep(0.002)

    with in_thread(reader):
        assert rig.run(ScriptedExec(stdout=line * 300)) == ExecStatus(0)
    assert got == line * 300


def test_a_client_that_reads_nothing_is_abandoned(rig: Rig) -> None:
    assert rig.run(ScriptedExec(stdout=b"z" * 299_999 + b"\n", code=3)) == ExecStatus(3)
    assert rig.kinds == ["host.undelivered"]
    assert rig.events[0].fields["bytes"] == 300_000 - 65_536


def test_with_a_client_that_reads_nothing_the_engine_is_asked(rig: Rig) -> None:
    """More output than all buffers can take: the stream's end is not seen, so the engine's answer decides."""

    def agent(io: ExecPeer) -> int:
        with contextlib.suppress(OSError):
            while True:
                io.write(STDOUT, b"z" * 8191 + b"\n")
        return 5

    def ends_unseen() -> None:
        while not rig.engine.sessions:
            time.sleep(0.001)
        (session,) = rig.engine.sessions.values()
        time.sleep(0.1)
        session.code = 5

    with in_thread(ends_unseen):
        assert rig.run(agent) == ExecStatus(5)
    assert rig.kinds == ["host.undelivered"]


def test_a_slow_reader_is_not_treated_as_one_that_reads_nothing(rig: Rig) -> None:
    """The bytes that were read count, not those that wait, because the queue is refilled each time."""
    size = 3 << 20
    line = b"y" * 8191 + b"\n"
    got = bytearray()

    def agent(io: ExecPeer) -> int:
        for _ in range(size // len(line)):
            io.write(STDOUT, line)
        return 0

    def reader() -> None:
        time.sleep(0.12)  # longer than ``look``: the engine is asked
        while len(got) < size:
            got.extend(os.read(rig.stdout.read, 64 << 10))
            time.sleep(0.02)

    def ends_unseen() -> None:
        while not rig.engine.sessions:
            time.sleep(0.001)
        (session,) = rig.engine.sessions.values()
        session.code = 0

    with in_thread(reader), in_thread(ends_unseen):
        assert rig.run(agent) == ExecStatus(0)
    assert got == line * (size // len(line))
    assert not rig.events


def test_a_client_that_reads_nothing_and_disconnects_ends_it(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        with contextlib.suppress(OSError):
            while True:
                io.write(STDOUT, b"z" * 8191 + b"\n")
        return 5

    rig.stdin.close(rig.stdin.write)
    assert rig.run(agent).code == 143


def test_a_closed_stdout_ends_the_agent(rig: Rig) -> None:
    ended = threading.Event()

    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"hello\n")
        io.ended.wait(20)
        ended.set()
        return 0

    rig.stdout.close(rig.stdout.read)
    with pytest.raises(OutputClosed, match="stdout went away, so the command inside was terminated"):
        rig.run(agent)
    assert ended.wait(5)


def test_a_client_that_is_all_gone_leaves_the_agent_its_grace(rig: Rig) -> None:
    rig.wait(grace=20.0)
    saved = threading.Event()

    def agent(io: ExecPeer) -> int:
        io.read_all()
        for _ in range(3):
            io.write(STDOUT, b"still at it\n")
            time.sleep(0.01)
        saved.set()
        return 0

    rig.stdin.close(rig.stdin.write)
    rig.stdout.close(rig.stdout.read)
    with pytest.raises(OutputClosed):
        rig.run(agent)
    assert saved.is_set(), "it was not killed in the middle"


def test_a_closed_stderr_ends_nothing(rig: Rig) -> None:
    rig.stderr.close(rig.stderr.read)
    assert rig.run(ScriptedExec(stdout=b"out\n", stderr=b"err", code=6)) == ExecStatus(6)
    assert rig.said(rig.stdout) == b"out\n"


def test_a_full_disk_behind_stdout(rig: Rig) -> None:
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(DiskFull):
        rig.run(ScriptedExec(stdout=b"out\n", waits=True), ExecIO(rig.stdin.read, full.fileno(), None))


# --- the engine, the container, the filter ------------------------------------------------------------


def test_the_container_is_stopped_during_a_stream(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"one\nhal")
        rig.engine.die(rig.name)
        return 0

    with pytest.raises(SandboxDied):
        rig.run(agent)
    assert rig.said(rig.stdout) == b"one\n"


def test_the_engine_stops(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"one\n")
        rig.engine.vanish()
        return 0

    with pytest.raises(EngineGone):
        rig.run(agent)


def test_a_filter_that_fails_ends_the_agent(rig: Rig) -> None:
    class Failing(LineFilter):
        def agent_data(self, data: bytes) -> None:
            raise RuntimeError("a bug")

    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"x\n")
        io.ended.wait(20)
        return 0

    rig.through = Failing()
    with pytest.raises(RuntimeError, match="a bug"):
        rig.run(agent)
    assert [session.code for session in rig.engine.sessions.values() if session.spec.command == ("it",)] == [143]
    assert rig.said(rig.stdout) == b""


def test_an_engine_that_does_not_answer_about_a_stuck_agent(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        with contextlib.suppress(OSError):
            while True:
                io.write(STDOUT, b"z" * 8191 + b"\n")
        return 5

    gone = RequestFailed(operation="inspect an exec session", status=500, reason="busy")
    rig.engine.fail("exec_inspect", gone, times=None)
    with pytest.raises(SandboxDied):
        rig.run(agent)


def test_noise_and_stderr_are_written_to_stderr(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"# banner\nframe\n")
        io.write(STDERR, b"warned")
        return 0

    assert rig.run(agent) == ExecStatus(0)
    assert rig.said(rig.stdout) == b"frame\n"
    assert rig.said(rig.stderr) in (b"# bannerwarned", b"warned# banner")


# --- somebody else sees to the end (issue 10.16) -----------------------------------------------------


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
    agent = Stubborn()
    rig.stdin.close(rig.stdin.write)
    assert rig.run(agent) == ExecStatus(0)
    (exec_id,) = rig.engine.sessions
    assert heir.given == [(LeftCommand(exec_id=exec_id), False)]
    assert agent.ended_input.wait(5)
    assert agent.signals == []
    assert not rig.events


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_after_a_signal_the_status_is_128_plus_its_number(rig: Rig, heir: Heir, number: int) -> None:
    rig.wake.post(Signal(number))
    assert rig.run(Stubborn()) == ExecStatus(128 + number, signal=number)
    assert [hurried for _, hurried in heir.given] == [False]


def test_a_second_signal_leaves_it_at_once(rig: Rig, heir: Heir) -> None:
    rig.wait(rest=60.0)
    agent = Stubborn()

    def twice() -> None:
        rig.wake.post(Signal(signal.SIGTERM))
        agent.ended_input.wait(10)
        rig.wake.post(Signal(signal.SIGTERM))

    with in_thread(twice):
        assert rig.run(agent) == ExecStatus(143, signal=15)
    assert [hurried for _, hurried in heir.given] == [True]


def test_an_agent_that_leaves_in_time_needs_no_successor(rig: Rig, heir: Heir) -> None:
    rig.wait(rest=20.0)

    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, io.read_all() + b"bye\n")
        return 4

    os.write(rig.stdin.write, b"hello\n")
    rig.stdin.close(rig.stdin.write)
    assert rig.run(agent) == ExecStatus(4)
    assert rig.said(rig.stdout) == b"hello\nbye\n"
    assert heir.given == []


def test_without_a_working_successor_we_end_the_agent_ourselves(rig: Rig, heir: Heir) -> None:
    heir.takes = False
    rig.stdin.close(rig.stdin.write)
    assert rig.run(Stubborn()) == ExecStatus(143)
    assert len(heir.given) == 1
    assert rig.kinds == ["host.grace"]


def test_and_after_two_signals_as_well(rig: Rig, heir: Heir) -> None:
    rig.wait(rest=60.0)
    heir.takes = False
    agent = Stubborn(deaf=True)

    def twice() -> None:
        rig.wake.post(Signal(signal.SIGTERM))
        agent.ended_input.wait(10)
        rig.wake.post(Signal(signal.SIGTERM))

    with in_thread(twice):
        assert rig.run(agent) == ExecStatus(143, signal=15)
    assert agent.signals[:1] == [signal.SIGTERM]


def test_bytes_that_neither_side_reads_are_lost_and_reported(rig: Rig, heir: Heir) -> None:
    def agent(io: ExecPeer) -> int:
        with contextlib.suppress(OSError):
            io.write(STDOUT, b"z" * 299_999 + b"\n")
        io.ended.wait(20)
        return 0

    def client() -> None:
        for _ in range(900):
            os.write(rig.stdin.write, b"x" * 1023 + b"\n")
        rig.stdin.close(rig.stdin.write)

    with in_thread(client):
        assert rig.run(agent) == ExecStatus(0)
    assert "host.undelivered" in rig.kinds
    assert len(heir.given) == 1


def test_an_agent_that_ended_is_not_left_and_its_output_has_no_more_time(rig: Rig, heir: Heir) -> None:
    rig.wait(rest=1.0)  # it has to end within that, on an emulated processor, too

    def agent(io: ExecPeer) -> int:
        io.read_all()
        io.write(STDOUT, b"z" * 299_999 + b"\n")
        return 3

    rig.stdin.close(rig.stdin.write)
    assert rig.run(agent).code == 3
    assert rig.kinds == ["host.undelivered"]
    assert heir.given == []


def test_a_client_that_closed_its_stdout_does_not_wait_for_the_agent(rig: Rig, heir: Heir) -> None:
    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"hello\n")
        io.ended.wait(20)
        return 0

    rig.stdout.close(rig.stdout.read)
    with pytest.raises(OutputClosed):
        rig.run(agent)
    assert [hurried for _, hurried in heir.given] == [True]


def test_undelivered_output_is_still_a_failure(rig: Rig, heir: Heir) -> None:
    def agent(io: ExecPeer) -> int:
        io.read_all()
        io.write(STDOUT, b"hello\n")
        io.ended.wait(20)
        return 0

    rig.stdin.close(rig.stdin.write)
    rig.stdout.close(rig.stdout.read)
    with pytest.raises(OutputClosed):
        rig.run(agent)
    assert len(heir.given) == 1

"""How a hosted exec ends: by the agent, by the client, by a signal, and with clients that read nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from podbot.errors import DiskFull, EngineGone, OutputClosed, RequestFailed, SandboxDied
from podbot.events import Event
from podbot.execution.command_control import LeftCommand
from podbot.execution.engine_start import EngineStart
from podbot.execution.hosted_end import HostedEnd, HostedLimits, Successor
from podbot.execution.runner import ExecIO, ExecSession, ExecStatus
from podbot.launch.types import ExecSpec
from podbot.streams.relay import LIMIT, Pause, Relay, SinkClosed
from podbot.streams.wake import Resize, Signal, Wake
from podbot.testing import STDERR, STDOUT, Command, ExecPeer, ScriptedExec
from tests.execution.running import Running
from tests.streams.channels import LineFilter
from tests.streams.plumbing import in_thread
from tests.waiting import HANG, wait_until

LONG = 2 * HANG  # seconds, which no test that succeeds waits for
NEVER = HostedLimits(
    term=LONG, kill=LONG, last_output=LONG, status=LONG, shell=LONG, grace=LONG, rest=LONG, flush=LONG, look=LONG,
    delivery=LONG,
)  # fmt: skip
BRIEF = 0.01  # seconds for what is repeated until something has happened; with 0, nothing could happen in between


@dataclass(frozen=True)
class Since:
    """The state when the relay was last asked to run, which is not before the present deadline was set."""

    pauses: tuple[Pause, ...] = ()
    deadline: float | None = None
    sent: int = 0
    delivered: int = 0


class Paced(HostedEnd):
    """Its deadline has passed as soon as a test says so, which shows what time does without waiting for it.

    A stand-in for the real relay, and passes everything on to that.
    """

    def __init__(self, emit: Callable[[Event], None], wake: Wake, limits: HostedLimits) -> None:
        super().__init__(emit, limits=limits)
        self.since = Since()
        self.stdout_closed = threading.Event()  # the relay has noticed it
        self._wake = wake
        self._real: Any = None
        self._pauses: list[Pause] = []
        self._state = threading.Condition()
        self._wanted = self._passed = self._handled = 0  # deadlines: asked for, passed, and what followed was done
        self._over = False

    def relay(self, session: ExecSession, relay: Relay) -> None:
        self._real = relay
        try:
            super().relay(session, cast("Relay", self))
        finally:
            with self._state:
                self._over = True
                self._state.notify_all()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    @property
    def undelivered(self) -> int:
        return self._real.undelivered if self._real is not None else 0

    def run(self, deadline: float | None = None) -> Pause:
        real = self._real
        self.since = Since(tuple(self._pauses), deadline, real.sent, real.delivered)
        with self._state:
            self._handled = self._passed
            self._state.notify_all()
        pause = self._run(deadline) if self._passed == self._wanted else None
        # Of the pauses only "woken" may be dropped: the next run returns it again.
        if self._passed < self._wanted and pause in (None, "woken"):
            self._passed += 1
            pause = "deadline"
        assert pause is not None
        self._pauses.append(pause)
        return pause

    def _run(self, deadline: float | None) -> Pause:
        try:
            return cast("Pause", self._real.run(deadline))
        except SinkClosed:
            self.stdout_closed.set()
            raise

    def pass_deadline(self) -> None:
        """In another thread: the present deadline passes, and what follows from that has been done at the return."""
        with self._state:
            self._wanted += 1
            wanted = self._wanted
            self._wake.post(Resize())  # which does nothing by itself
            assert self._state.wait_for(lambda: self._over or self._handled >= wanted, HANG)


@dataclass
class Rig(Running):
    """No step follows from the time unless a test says so: by :meth:`wait`, or by ``end.pass_deadline``."""

    events: list[Event] = field(default_factory=list)
    through: LineFilter = field(default_factory=LineFilter)
    successor: Successor | None = None
    limits: HostedLimits = NEVER
    end: Paced = field(init=False)

    def __post_init__(self) -> None:
        self.end = Paced(self.events.append, self.wake, self.limits)

    def run(self, command: Command, io: ExecIO | None = None) -> ExecStatus:
        self.engine.on("it", command)
        end = self.end
        end.limits, end.successor = self.limits, self.successor
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
        """Other limits, by name; 0: the step follows at once."""
        self.limits = dataclasses.replace(self.limits, **seconds)  # type: ignore[arg-type]

    @contextlib.contextmanager
    def meanwhile(self, work: Callable[[], None]) -> Iterator[None]:
        """``work`` of a client, in a thread. One that fails leaves, or the session would wait for it for ever."""

        def guarded() -> None:
            try:
                work()
            except BaseException:
                self.stdin.close(self.stdin.write)
                self.stdout.close(self.stdout.read)
                raise

        with in_thread(guarded):
            yield

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


@pytest.fixture
def rig(container: Running) -> Rig:
    return Rig(**vars(container))


class Stubborn:
    """An agent that ignores the end of its input, and, when ``deaf``, TERM as well.

    ``begun`` is called by it when it has made itself deaf: before, TERM would end it.
    """

    def __init__(self, *, deaf: bool = False, begun: Callable[[], object] = lambda: None) -> None:
        self.deaf = deaf
        self.ended_input = threading.Event()
        self._begun = begun
        self._signals: list[int] = []
        self._over = threading.Event()

    @property
    def signals(self) -> list[int]:
        """All that it received; waits for its end."""
        assert self._over.wait(HANG)
        return self._signals

    def __call__(self, io: ExecPeer) -> int:
        if self.deaf:
            io.trap(signal.SIGTERM)
        self._begun()
        io.read_all()
        self.ended_input.set()
        io.ended.wait(LONG)
        with contextlib.suppress(queue.Empty):
            while True:
                self._signals.append(io.signals.get_nowait())
        self._over.set()
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
    rig.wait(grace=0)
    rig.stdin.close(rig.stdin.write)
    assert rig.run(Stubborn()) == ExecStatus(128 + signal.SIGTERM)
    assert rig.kinds == ["host.grace"]


def test_an_agent_that_ignores_term_is_killed(rig: Rig) -> None:
    rig.wait(grace=0, term=0)
    agent = Stubborn(deaf=True, begun=lambda: rig.stdin.close(rig.stdin.write))
    assert rig.run(agent) == ExecStatus(128 + signal.SIGKILL)
    assert agent.signals == [signal.SIGTERM, signal.SIGKILL]


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
    agent = Stubborn(deaf=True)

    def thrice() -> None:
        for _ in range(3):
            rig.wake.post(Signal(signal.SIGINT))
            assert agent.ended_input.wait(HANG)

    with rig.meanwhile(thrice):
        assert rig.run(agent) == ExecStatus(130, signal=signal.SIGINT)
    assert agent.signals == [signal.SIGTERM, signal.SIGKILL]
    assert "deadline" not in rig.end.since.pauses, "none of it came by the time"


def test_a_signal_after_the_clients_end_only_changes_the_status(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        io.read_all()
        rig.wake.post(Signal(signal.SIGTERM))
        io.write(STDOUT, b"saved\n")  # podbot polls at least once between this and the end, and so sees the signal
        return 0

    rig.stdin.close(rig.stdin.write)
    assert rig.run(agent) == ExecStatus(143, signal=15)
    assert rig.said(rig.stdout) == b"saved\n"


def test_what_is_queued_reaches_a_slow_agent_before_its_input_ends(rig: Rig) -> None:
    """The grace passes twice, each time after the agent has taken something."""
    sent = b"x" * 1023 + b"\n"
    took = bytearray()
    graces = 0

    def agent(io: ExecPeer) -> int:
        nonlocal graces
        while piece := io.read(64 << 10):
            took.extend(piece)
            if len(took) < 600 << 10:
                continue
            wait_until(lambda: "input_ended" in rig.end.since.pauses)  # podbot can queue the rest
            if len(took) > rig.end.since.sent and graces < 2:
                graces += 1
                rig.end.pass_deadline()
        return 0

    def client() -> None:
        for _ in range(1500):
            os.write(rig.stdin.write, sent)
        rig.stdin.close(rig.stdin.write)

    with rig.meanwhile(client):
        assert rig.run(agent) == ExecStatus(0)
    assert len(took) == 1500 * 1024
    assert graces == 2
    assert not rig.events


def test_an_agent_that_reads_nothing_is_not_waited_for(rig: Rig) -> None:
    rig.wait(grace=0)

    def agent(io: ExecPeer) -> int:
        io.ended.wait(LONG)
        return 0

    def client() -> None:
        for _ in range(900):
            os.write(rig.stdin.write, b"x" * 1023 + b"\n")
        rig.stdin.close(rig.stdin.write)

    with rig.meanwhile(client):
        assert rig.run(agent) == ExecStatus(143)


# --- a client that does not read, or is gone ----------------------------------------------------------


def read_in_bites(rig: Rig, size: int, bites: int) -> bytes:
    """The client reads ``size`` bytes; so many times all patience passes, each time after it has taken something."""
    got = bytearray()
    while len(got) < size and (piece := os.read(rig.stdout.read, 8192)):
        got += piece
        if bites and len(got) > rig.end.since.delivered:
            bites -= 1
            rig.end.pass_deadline()
    assert not bites
    return bytes(got)


def test_output_is_delivered_to_a_slow_reader_after_the_end(rig: Rig) -> None:
    line = b"y" * 1023 + b"\n"
    got = b""

    def reader() -> None:
        nonlocal got
        wait_until(lambda: "undelivered" in rig.end.since.pauses)
        got = read_in_bites(rig, 900 * 1024, bites=5)

    with rig.meanwhile(reader):
        assert rig.run(ScriptedExec(stdout=line * 900)) == ExecStatus(0)
        rig.stdout.close(rig.stdout.write)
    assert got == line * 900
    assert not rig.events


def test_a_client_that_reads_nothing_is_abandoned(rig: Rig) -> None:
    rig.wait(delivery=0)
    assert rig.run(ScriptedExec(stdout=b"z" * 299_999 + b"\n", code=3)) == ExecStatus(3)
    assert rig.kinds == ["host.undelivered"]
    assert rig.events[0].fields["bytes"] == 300_000 - 65_536


def test_with_a_client_that_reads_nothing_the_engine_is_asked(rig: Rig) -> None:
    """More output than all buffers can take: the stream's end is not seen, so the engine's answer decides."""
    rig.wait(look=BRIEF, delivery=0)

    def agent(io: ExecPeer) -> int:
        with contextlib.suppress(OSError):
            while True:
                io.write(STDOUT, b"z" * 8191 + b"\n")
        return 5

    def ends_unseen() -> None:
        wait_until(lambda: [name for name, _ in rig.engine.calls].count("exec_inspect") > 2)
        assert not rig.events, "as long as it runs, nothing is given up"
        (session,) = rig.engine.sessions.values()
        session.code = 5

    with rig.meanwhile(ends_unseen):
        assert rig.run(agent) == ExecStatus(5)
    assert rig.kinds == ["host.undelivered"]


def test_a_slow_reader_is_not_treated_as_one_that_reads_nothing(rig: Rig) -> None:
    """The bytes that were read count, not those that wait, because the queue is refilled each time."""
    size = 3 << 20
    line = b"y" * 8191 + b"\n"
    got = b""

    def agent(io: ExecPeer) -> int:
        for _ in range(size // len(line)):
            io.write(STDOUT, line)
        return 0

    def reader() -> None:
        nonlocal got
        wait_until(lambda: rig.end.since.pauses == () and rig.end.undelivered >= LIMIT)
        (session,) = rig.engine.sessions.values()
        session.code = 0  # it ends unseen: the stream's end is behind what nobody reads
        for _ in range(2):  # the second look finds that nothing was read since the first, and asks the engine
            rig.end.pass_deadline()
        assert [name for name, _ in rig.engine.calls].count("exec_inspect") == 1
        got = read_in_bites(rig, size, bites=20)

    with rig.meanwhile(reader):
        assert rig.run(agent) == ExecStatus(0)
        rig.stdout.close(rig.stdout.write)
    assert got == line * (size // len(line))
    assert not rig.events


def test_a_client_that_reads_nothing_and_disconnects_ends_it(rig: Rig) -> None:
    rig.wait(grace=0, term=0, last_output=0)

    def agent(io: ExecPeer) -> int:
        with contextlib.suppress(OSError):
            for number in range(1 << 20):
                io.write(STDOUT, b"z" * 8191 + b"\n")
                if number == 100:  # more than a pipe takes
                    rig.stdin.close(rig.stdin.write)
        return 5

    assert rig.run(agent).code == 143


def test_a_closed_stdout_ends_the_agent(rig: Rig) -> None:
    ended = threading.Event()

    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"hello\n")
        io.ended.wait(LONG)
        ended.set()
        return 0

    rig.stdout.close(rig.stdout.read)
    with pytest.raises(OutputClosed, match="stdout went away, so the command inside was terminated"):
        rig.run(agent)
    assert ended.wait(HANG)


def test_a_client_that_is_all_gone_leaves_the_agent_its_grace(rig: Rig) -> None:
    saved = threading.Event()

    def agent(io: ExecPeer) -> int:
        io.read_all()
        for _ in range(3):
            io.write(STDOUT, b"still at it\n")
            rig.end.stdout_closed.wait(HANG)
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
        io.ended.wait(LONG)
        return 0

    rig.through = Failing()
    with pytest.raises(RuntimeError, match="a bug"):
        rig.run(agent)
    assert [session.code for session in rig.engine.sessions.values() if session.spec.command == ("it",)] == [143]
    assert rig.said(rig.stdout) == b""


def test_an_engine_that_does_not_answer_about_a_stuck_agent(rig: Rig) -> None:
    rig.wait(look=BRIEF, delivery=0)

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

"""A hosted exec whose deadlines pass when a test says so."""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from podbot.events import Event
from podbot.exec_spec import ExecSpec
from podbot.execution.engine_start import EngineStart
from podbot.execution.hosted_end import HostedEnd, HostedLimits, Successor
from podbot.execution.runner import ExecIO, ExecSession, ExecStatus
from podbot.streams.relay import Pause, Relay, SinkClosed
from podbot.streams.wake import Resize, Wake
from podbot.testing import Command, ExecPeer
from tests.execution.running import Running
from tests.streams.channels import LineFilter
from tests.streams.plumbing import in_thread
from tests.waiting import HANG

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

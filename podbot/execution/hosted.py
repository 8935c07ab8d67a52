"""The end of a command whose client is a program: when that leaves, the agent is asked to leave, and then made to."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from typing import Literal, Protocol

from podbot.errors import OutputClosed
from podbot.events import Emit, Event
from podbot.execution import runner
from podbot.execution.runner import ExecSession
from podbot.streams.relay import Pause, Relay, SinkClosed
from podbot.streams.sink import LIMIT
from podbot.streams.wake import Signal

GRACE = 10.0  # seconds for an agent to leave by itself once its stdin has ended
REST = 0.6  # seconds of that for which its last output is delivered when a successor sees to the end: clients kill
FLUSH_MOST = 60.0  # seconds in all for it to take what is queued, GRACE at a time without progress
LOOK = 5.0  # seconds between looks at whether the client still reads
DELIVERY = 10.0  # seconds without progress after which output of an agent that ended is given up

_Phase = Literal["open", "flushing", "leaving", "terminated", "killed", "delivering"]


class Successor(Protocol):
    """Another process, which sees to the end of an agent that podbot leaves running."""

    def __call__(self, exec_id: str, descriptors: Sequence[int], *, hurried: bool) -> bool:
        """Begin; false when it cannot. ``descriptors``: see ``CommandSide.hand_over``. ``hurried``: no grace."""
        ...


class HostedEnd:
    """See :class:`~podbot.execution.end_policy.EndPolicy`. The end of stdin and a signal both begin the same way out.

    The agent's stdin ends behind what is queued; GRACE later its group gets TERM, and KILL. A second
    signal shortens it by a step. Its own end comes first at any time; what it printed before is delivered
    as long as somebody reads it.

    With a ``successor`` all that takes REST: an agent that is still there then, or at a second signal, is its to end.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.ending: int | None = None
        self.successor: Successor | None = None
        self.client_left: float | None = None  # when (monotonic) the client ended the session
        self.left_running = False  # the agent: the successor has it
        self._phase: _Phase = "open"
        self._deadline = 0.0
        self._progress = 0  # bytes that had been taken when the current deadline was set
        self._flush_until = 0.0
        self._unread: SinkClosed | None = None

    def relay(self, session: ExecSession, relay: Relay) -> None:
        """See EndPolicy. A client that has closed its stdin may close the rest as well."""
        self._enter("open", LOOK, 0)
        over = False
        while not over:
            match self._relayed(session, relay):
                case "ended":
                    over = True
                case "input_ended" if self._phase == "open":
                    self._flush(relay)
                case "input_closed" if self._phase == "flushing":
                    self._enter("leaving", GRACE)
                case "undelivered":
                    self._deliver(relay)
                case "woken":
                    over = self._signalled(session, relay)
                case "deadline":
                    over = self._out_of_time(session, relay)

    def check(self) -> None:
        """See EndPolicy. Raises OutputClosed when output could not go out."""
        if self._unread is not None:
            raise OutputClosed(stream="stdout", effect=", and the agent had more to say") from self._unread.error

    def _relayed(self, session: ExecSession, relay: Relay) -> Pause | None:
        try:
            return relay.run(self._deadline)
        except SinkClosed as exc:
            if exc.stream == "stdout" and self._phase == "open":
                self._leave(session, relay, hurried=True)
                raise
            if exc.stream == "stdout":
                self._unread = exc
            relay.discard(exc.stream)
            return None

    def _enter(self, phase: _Phase, seconds: float, progress: int = 0) -> None:
        self._phase, self._progress = phase, progress
        self._deadline = time.monotonic() + seconds

    def _flush(self, relay: Relay) -> None:
        self.client_left = time.monotonic()
        if self.successor is not None:
            self._enter("leaving", REST)
            return
        self._flush_until = time.monotonic() + FLUSH_MOST
        self._enter("flushing", GRACE, relay.sent)

    def _deliver(self, relay: Relay) -> None:
        if self._is_short:
            self._phase = "delivering"  # with what is left of REST
            return
        self._enter("delivering", DELIVERY if self.ending is None else runner.KILL_GRACE, relay.delivered)

    def _look(self, session: ExecSession, relay: Relay) -> None:
        """Behind a client that reads nothing the end of the stream is not seen: ask the engine."""
        stuck = relay.delivered == self._progress and relay.undelivered >= LIMIT
        self._enter("open", LOOK, relay.delivered)
        if stuck and not session.is_running():
            self._deliver(relay)

    def _signalled(self, session: ExecSession, relay: Relay) -> bool:
        """Act on what was posted; true when nothing more is to be waited for."""
        for message in session.wake.take():
            if not isinstance(message, Signal):
                continue
            first, self.ending = self.ending is None, self.ending or message.number
            if self._phase == "open":
                self._flush(relay)
                relay.end_input()
            elif (not first or self._phase == "delivering") and self._hurry(session, relay):
                return True
        return False

    @property
    def _is_short(self) -> bool:
        """The client has left, and a successor is there."""
        return self.successor is not None and self.client_left is not None

    def _leave(self, session: ExecSession, relay: Relay, *, hurried: bool) -> bool:
        """Leave a running agent to the successor; false when there is none, or it cannot."""
        if self.successor is None:
            return False
        self._tell_lost(relay)
        self.left_running = self.successor(session.exec_id, relay.hand_over(), hurried=hurried)
        self.successor = None
        return self.left_running

    def _tell_lost(self, relay: Relay) -> None:
        if relay.undelivered:
            text = f"the client did not read the agent's last {relay.undelivered} bytes; they are lost"
            self._emit(Event("warning", "host.undelivered", text, {"bytes": relay.undelivered}))
        if relay.unsent:
            text = f"the agent did not read the client's last {relay.unsent} bytes; they are lost"
            self._emit(Event("warning", "host.unsent", text, {"bytes": relay.unsent}))

    def _out_of_time(self, session: ExecSession, relay: Relay) -> bool:
        """The next step; true when nothing more is to be waited for."""
        if self._phase == "open":
            self._look(session, relay)
            return False
        if self._phase == "flushing" and relay.sent > self._progress and time.monotonic() < self._flush_until:
            self._enter("flushing", GRACE, relay.sent)
            return False
        if self._phase == "delivering" and relay.delivered > self._progress and not self._is_short:
            self._deliver(relay)
            return False
        if self._is_short and self._phase == "leaving":
            if not self._leave(session, relay, hurried=False):
                self._enter("leaving", GRACE)
            return self.left_running
        if self._phase == "delivering":
            self._tell_lost(relay)
        elif self._phase in ("flushing", "leaving"):
            text = f"the agent is still there {GRACE:.0f} s after the end of its input: ending it"
            self._emit(Event("notice", "host.grace", text, {"seconds": GRACE}))
        return self._hurry(session, relay)

    def _hurry(self, session: ExecSession, relay: Relay) -> bool:
        if self._is_short and self._phase == "leaving" and self._leave(session, relay, hurried=True):
            return True
        if self._phase in ("killed", "delivering"):
            return True
        if self._phase == "terminated":
            session.kill()
            self._enter("killed", runner.KILL_GRACE)
        else:
            session.signal(signal.SIGTERM)
            self._enter("terminated", runner.TERM_GRACE)
        return False

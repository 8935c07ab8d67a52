"""How a command of ``host`` ends: when the client leaves, the agent gets time to exit and is then terminated."""

from __future__ import annotations

import time
from typing import Literal, Protocol

from podbot.errors import OutputClosed
from podbot.events import Emit, Event
from podbot.execution.command_control import LeftCommand
from podbot.execution.runner import ExecSession
from podbot.execution.time_limits import TimeLimits
from podbot.streams.relay import Pause, Relay, SinkClosed
from podbot.streams.sink import LIMIT
from podbot.streams.wake import Signal

_Phase = Literal["open", "flushing", "leaving", "terminated", "killed", "delivering"]


class HostedLimits(TimeLimits):
    """Those of a command whose client is a program."""

    grace: float = 10.0  # for an agent to exit by itself once its stdin has ended
    rest: float = 0.6  # in which its last output is delivered before a helper process takes over: clients kill podbot
    flush: float = 60.0  # in all for the agent to read queued input, at most ``grace`` at a time without progress
    look: float = 5.0  # between checks whether the client still reads
    delivery: float = 10.0  # without progress, after which output of an agent that has ended is dropped


HOSTED_LIMITS = HostedLimits()


class Successor(Protocol):
    """A helper process that ends an agent which podbot leaves running."""

    def __call__(self, left: LeftCommand, *, hurried: bool) -> bool:
        """Start it; false on failure. ``hurried``: skip the grace."""
        ...


class HostedEnd:
    """See :class:`~podbot.execution.end_policy.EndPolicy`. The end of stdin and a signal both start the same steps.

    The agent's stdin ends after the queued input; ``limits.grace`` later its group gets TERM, then KILL. A second
    signal skips one step. The agent may exit at any time before that; its output is delivered as long as the client
    reads it. With a ``successor``, podbot waits for ``limits.rest`` only: an agent that still runs then, or at a second
    signal, is left to the successor.
    """

    def __init__(self, emit: Emit, *, limits: HostedLimits = HOSTED_LIMITS) -> None:
        self.limits = limits
        self._emit = emit
        self.ending: int | None = None
        self.successor: Successor | None = None
        self.client_left: float | None = None  # when (monotonic) the client ended the session
        self.left_running = False  # the successor has taken over the agent
        self._phase: _Phase = "open"
        self._deadline = 0.0
        self._progress = 0  # bytes transferred when the current deadline was set
        self._flush_until = 0.0
        self._unread: SinkClosed | None = None

    def relay(self, session: ExecSession, relay: Relay) -> None:
        """See EndPolicy. A client that has closed podbot's stdin may close stdout and stderr too."""
        self._enter("open", self.limits.look, 0)
        over = False
        while not over:
            match self._relayed(session, relay):
                case "ended":
                    over = True
                case "input_ended" if self._phase == "open":
                    self._flush(relay)
                case "input_closed" if self._phase == "flushing":
                    self._enter("leaving", self.limits.grace)
                case "undelivered":
                    self._deliver(relay)
                case "woken":
                    over = self._signalled(session, relay)
                case "deadline":
                    over = self._out_of_time(session, relay)

    def check(self) -> None:
        """See EndPolicy. Raises OutputClosed when output could not be delivered."""
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
            self._enter("leaving", self.limits.rest)
            return
        self._flush_until = time.monotonic() + self.limits.flush
        self._enter("flushing", self.limits.grace, relay.sent)

    def _deliver(self, relay: Relay) -> None:
        if self._is_short:
            self._phase = "delivering"  # with what is left of REST
            return
        seconds = self.limits.delivery if self.ending is None else self.limits.last_output
        self._enter("delivering", seconds, relay.delivered)

    def _look(self, session: ExecSession, relay: Relay) -> None:
        """If the client reads nothing, podbot does not reach the end of the agent's stream, so ask the engine."""
        stuck = relay.delivered == self._progress and relay.undelivered >= LIMIT
        self._enter("open", self.limits.look, relay.delivered)
        if stuck and not session.is_running():
            self._deliver(relay)

    def _signalled(self, session: ExecSession, relay: Relay) -> bool:
        """Handle the posted messages; returns true when podbot need not wait any longer."""
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
        """Whether the client has left and there is a successor, so that podbot waits only for REST."""
        return self.successor is not None and self.client_left is not None

    def _leave(self, session: ExecSession, relay: Relay, *, hurried: bool) -> bool:
        """Leave a running agent to the successor; returns false when there is none or it failed."""
        if self.successor is None:
            return False
        self._tell_lost(relay)
        self.left_running = self.successor(session.hand_over(), hurried=hurried)
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
        """Go to the next step; returns true when podbot need not wait any longer."""
        if self._phase == "open":
            self._look(session, relay)
            return False
        if self._phase == "flushing" and relay.sent > self._progress and time.monotonic() < self._flush_until:
            self._enter("flushing", self.limits.grace, relay.sent)
            return False
        if self._phase == "delivering" and relay.delivered > self._progress and not self._is_short:
            self._deliver(relay)
            return False
        if self._is_short and self._phase == "leaving":
            if not self._leave(session, relay, hurried=False):
                self._enter("leaving", self.limits.grace)
            return self.left_running
        if self._phase == "delivering":
            self._tell_lost(relay)
        elif self._phase in ("flushing", "leaving"):
            text = f"the agent is still running {self.limits.grace:.0f} s after the end of its input; terminating it"
            self._emit(Event("notice", "host.grace", text, {"seconds": self.limits.grace}))
        return self._hurry(session, relay)

    def _hurry(self, session: ExecSession, relay: Relay) -> bool:
        if self._is_short and self._phase == "leaving" and self._leave(session, relay, hurried=True):
            return True
        if self._phase in ("killed", "delivering"):
            return True
        if self._phase == "terminated":
            session.kill()
            self._enter("killed", self.limits.last_output)
        else:
            session.terminate()
            self._enter("terminated", self.limits.term)
        return False

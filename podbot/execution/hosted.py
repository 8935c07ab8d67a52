"""An exec whose client is a program: when that one leaves, the agent is asked to leave, and after a while made to."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from typing import Literal, Protocol

from podbot.errors import ContainerError, OutputClosed
from podbot.events import Emit, Event
from podbot.execution import runner
from podbot.execution.codes import BY_SIGNAL
from podbot.execution.runner import ExecSession, ExecStatus
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


class HostedExec(ExecSession):
    """See :class:`ExecSession`. The end of stdin and a signal both begin the same way out.

    The agent's stdin ends behind what is queued; GRACE later its group gets TERM, and KILL. A second
    signal shortens it by a step. Its own end comes first at any time; what it printed before is delivered
    as long as somebody reads it.

    With a ``successor`` all that takes REST: an agent that is still there then, or at a second signal, is its to end.
    """

    def __init__(self, *args: object, emit: Emit, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._emit = emit
        self.successor: Successor | None = None
        self.client_left: float | None = None  # when (monotonic) the client ended the session
        self.left_running = False  # the agent: the successor has it
        self._phase: _Phase = "open"
        self._deadline = 0.0
        self._progress = 0  # bytes that had been taken when the current deadline was set
        self._flush_until = 0.0
        self._unread: SinkClosed | None = None

    def relay_until_end(self, relay: Relay) -> None:
        """See ExecSession. A client that has closed its stdin may close the rest as well."""
        self._enter("open", LOOK, 0)
        over = False
        while not over:
            match self._relayed(relay):
                case "ended":
                    over = True
                case "input_ended" if self._phase == "open":
                    self._flush(relay)
                case "input_closed" if self._phase == "flushing":
                    self._enter("leaving", GRACE)
                case "undelivered":
                    self._deliver(relay)
                case "woken":
                    over = self._signalled(relay)
                case "deadline":
                    over = self._out_of_time(relay)

    def _relayed(self, relay: Relay) -> Pause | None:
        try:
            return relay.run(self._deadline)
        except SinkClosed as exc:
            if exc.stream == "stdout" and self._phase == "open":
                self._leave(relay, hurried=True)
                raise
            if exc.stream == "stdout":
                self._unread = exc
            relay.discard(exc.stream)
            return None

    def status(self, relay: Relay) -> ExecStatus:
        """See ExecSession. Output that could not go out makes it a failure, whatever the agent's status.

        The status of an agent that was left running is not known: 0, or 128 and the signal that podbot got.
        """
        if self.left_running:
            status = ExecStatus(0) if self._ending is None else ExecStatus(BY_SIGNAL + self._ending, self._ending)
        else:
            status = super().status(relay)
        if self._unread is not None:
            raise OutputClosed(stream="stdout", effect=", and the agent had more to say") from self._unread.error
        return status

    def _enter(self, phase: _Phase, seconds: float, progress: int = 0) -> None:
        self._phase, self._progress = phase, progress
        self._deadline = time.monotonic() + seconds

    def end_now(self) -> bool:
        """See ExecSession. Not what is the successor's to end."""
        return True if self.left_running else super().end_now()

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
        self._enter("delivering", DELIVERY if self._ending is None else runner.KILL_GRACE, relay.delivered)

    def _look(self, relay: Relay) -> None:
        """Behind a client that reads nothing the end of the stream is not seen: ask the engine."""
        stuck = relay.delivered == self._progress and relay.undelivered >= LIMIT
        self._enter("open", LOOK, relay.delivered)
        if stuck:
            try:
                running = self._engine.exec_inspect(self._exec_id).running
            except ContainerError:
                running = False
            if not running:
                self._deliver(relay)

    def _signalled(self, relay: Relay) -> bool:
        """Act on what was posted; true when nothing more is to be waited for."""
        for message in self._wake.take():
            if not isinstance(message, Signal):
                continue
            first, self._ending = self._ending is None, self._ending or message.number
            if self._phase == "open":
                self._flush(relay)
                relay.end_input()
            elif (not first or self._phase == "delivering") and self._hurry(relay):
                return True
        return False

    @property
    def _is_short(self) -> bool:
        """The client has left, and a successor is there."""
        return self.successor is not None and self.client_left is not None

    def _leave(self, relay: Relay, *, hurried: bool) -> bool:
        """Leave a running agent to the successor; false when there is none, or it cannot."""
        if self.successor is None:
            return False
        self._tell_lost(relay)
        self.left_running = self.successor(self._exec_id, relay.hand_over(), hurried=hurried)
        self.successor = None
        return self.left_running

    def _tell_lost(self, relay: Relay) -> None:
        if relay.undelivered:
            text = f"the client did not read the agent's last {relay.undelivered} bytes; they are lost"
            self._emit(Event("warning", "host.undelivered", text, {"bytes": relay.undelivered}))
        if relay.unsent:
            text = f"the agent did not read the client's last {relay.unsent} bytes; they are lost"
            self._emit(Event("warning", "host.unsent", text, {"bytes": relay.unsent}))

    def _out_of_time(self, relay: Relay) -> bool:
        """The next step; true when nothing more is to be waited for."""
        if self._phase == "open":
            self._look(relay)
            return False
        if self._phase == "flushing" and relay.sent > self._progress and time.monotonic() < self._flush_until:
            self._enter("flushing", GRACE, relay.sent)
            return False
        if self._phase == "delivering" and relay.delivered > self._progress and not self._is_short:
            self._deliver(relay)
            return False
        if self._is_short and self._phase == "leaving":
            if not self._leave(relay, hurried=False):
                self._enter("leaving", GRACE)
            return self.left_running
        if self._phase == "delivering":
            self._tell_lost(relay)
        elif self._phase in ("flushing", "leaving"):
            text = f"the agent is still there {GRACE:.0f} s after the end of its input: ending it"
            self._emit(Event("notice", "host.grace", text, {"seconds": GRACE}))
        return self._hurry(relay)

    def _hurry(self, relay: Relay) -> bool:
        if self._is_short and self._phase == "leaving" and self._leave(relay, hurried=True):
            return True
        if self._phase in ("killed", "delivering"):
            return True
        if self._phase == "terminated":
            self.kill()
            self._enter("killed", runner.KILL_GRACE)
        else:
            self.signal(signal.SIGTERM)
            self._enter("terminated", runner.TERM_GRACE)
        return False

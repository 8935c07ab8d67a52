"""How a command ends: what signals do to it, and when podbot stops waiting for it."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Protocol

from podbot.execution.time_limits import TIME_LIMITS, TimeLimits
from podbot.streams.wake import Signal

if TYPE_CHECKING:
    from podbot.execution.runner import ExecSession
    from podbot.streams.relay import Relay


class EndPolicy(Protocol):
    """Decides how one command ends. Each command needs a new instance."""

    @property
    def limits(self) -> TimeLimits: ...

    @property
    def ending(self) -> int | None:
        """The signal that asked podbot to end the command; None if there was none."""
        ...

    @property
    def left_running(self) -> bool:
        """Whether another process has taken over ending the command, so that nothing more is done to it here."""
        ...

    def relay(self, session: ExecSession, relay: Relay) -> None:
        """Relay, and handle the messages posted meanwhile, until there is nothing more to relay."""
        ...

    def check(self) -> None:
        """Raise an error if the session failed, whatever the command's status."""
        ...


class EndBySignal:
    """INT is passed on; TERM and HUP terminate the command (TERM, 2 s, KILL), and INT too with ``interrupt_ends``."""

    left_running = False

    def __init__(self, *, interrupt_ends: bool = False, limits: TimeLimits = TIME_LIMITS) -> None:
        self.limits = limits
        self.ending: int | None = None
        self._passed_on = () if interrupt_ends else (signal.SIGINT,)

    def relay(self, session: ExecSession, relay: Relay) -> None:
        """See EndPolicy."""
        suspension = session.suspension
        deadline: float | None = None
        while True:
            look = suspension.due if suspension is not None else None
            outcome = relay.run(min((at for at in (deadline, look) if at is not None), default=None))
            if outcome == "ended":
                return
            if outcome == "woken":
                if self._handle_messages(session) and deadline is None:
                    deadline = time.monotonic() + self.limits.term
            elif outcome == "noticed":
                continue  # a check for Ctrl-Z is scheduled now
            elif suspension is not None and look is not None and (deadline is None or look <= deadline):
                suspension.act()
            elif session.killed:
                return  # killed, and our output is not being read: drop the rest
            else:
                session.kill()
                deadline = time.monotonic() + self.limits.last_output

    def check(self) -> None:
        """See EndPolicy."""

    def _handle_messages(self, session: ExecSession) -> bool:
        """Handle the posted messages; returns true when one of them ends the session."""
        begun = False
        for message in session.wake.take():
            if isinstance(message, Signal):
                begun = self._passed(session, message.number) or begun
            elif session.suspension is not None:
                session.suspension.obey(message)
        return begun

    def _passed(self, session: ExecSession, number: int) -> bool:
        """Pass a signal on; returns true when it ends the session."""
        if self.ending is not None:
            return False
        if number == signal.SIGTERM:
            session.terminate()
        else:
            session.signal(number)
        if number in self._passed_on:
            return False
        if session.suspension is not None:
            session.suspension.forget()
        self.ending = number
        return True

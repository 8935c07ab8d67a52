"""How a command is brought to its end: what signals do, and when podbot waits for it no longer."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Protocol

from podbot.execution import runner
from podbot.streams.wake import Signal

if TYPE_CHECKING:
    from podbot.execution.runner import ExecSession
    from podbot.streams.relay import Relay


class EndPolicy(Protocol):
    """Decides for one command. A new one for each."""

    @property
    def ending(self) -> int | None:
        """The signal by which podbot was told to end the command."""
        ...

    @property
    def left_running(self) -> bool:
        """The command was left to another process, which ends it: nothing more is done to it here."""
        ...

    def relay(self, session: ExecSession, relay: Relay) -> None:
        """Relay, and act on what is posted meanwhile, until there is nothing more to relay."""
        ...

    def check(self) -> None:
        """Raise what makes the session a failure, whatever the command's status."""
        ...


class EndBySignal:
    """INT is passed on; TERM and HUP end the command (TERM, 2 s, KILL), as does INT with ``interrupt_ends``."""

    left_running = False

    def __init__(self, *, interrupt_ends: bool = False) -> None:
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
                    deadline = time.monotonic() + runner.TERM_GRACE
            elif outcome == "noticed":
                continue  # from now on a look is due
            elif suspension is not None and look is not None and (deadline is None or look <= deadline):
                suspension.act()
            elif session.killed:
                return  # killed, and whoever reads our output does not: leave the rest
            else:
                session.kill()
                deadline = time.monotonic() + runner.KILL_GRACE

    def check(self) -> None:
        """See EndPolicy."""

    def _handle_messages(self, session: ExecSession) -> bool:
        """Act on what was posted; true when the session is to end now."""
        begun = False
        for message in session.wake.take():
            if isinstance(message, Signal):
                begun = self._passed(session, message.number) or begun
            elif session.suspension is not None:
                session.suspension.obey(message)
        return begun

    def _passed(self, session: ExecSession, number: int) -> bool:
        """Pass a signal on; true when it is the one that ends the session."""
        if self.ending is not None:
            return False
        session.signal(number)
        if number in self._passed_on:
            return False
        if session.suspension is not None:
            session.suspension.forget()
        self.ending = number
        return True

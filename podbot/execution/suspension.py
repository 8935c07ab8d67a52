"""Ctrl-Z in a session with a terminal: the agent suspends itself, and no shell inside would ever continue it.

An agent stops itself by SIGSTOP; or it gives the terminal back and sends itself SIGTSTP, which the kernel discards,
because the group is orphaned: nobody in its session is left to continue it. Then it runs on and waits for SIGCONT
(Claude Code, Gemini CLI and OpenCode, as measured). Both are looked for in a short while after the key; then podbot
suspends itself, as a job of the operator's shell, and continues the agent when it is continued.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Protocol

from podbot.execution.stopped import Group
from podbot.streams.keys import has_suspend_key
from podbot.streams.screen import ScreenModes
from podbot.streams.wake import Continued, Resize, Suspend

LOOKS = (0.1, 0.3, 0.7, 1.5)  # seconds after the key
# Seconds after a size at which the real one is sent. Of two that follow each other at once, conmon lost the second in 6
# of 40 (measured; in none of 40 with 20 ms between them).
SIZES = (0.1, 0.5)


class Job(Protocol):
    """podbot itself as a job of the operator's shell."""

    def suspend(self, leave: bytes, enter: bytes, *, commanded: bool) -> None:
        """Give the terminal back, stop, and take it again when continued; ``leave`` and ``enter`` are for its screen.

        ``commanded``: it may still answer what was printed, which no shell is to read.

        Returns at once where nobody could continue podbot.
        """
        ...

    def retake(self, enter: bytes) -> None:
        """The terminal again, after podbot was stopped by others and somebody else had it."""
        ...


class Suspension:
    """Watches one command's terminal. ``act`` is to be called when :attr:`due` has come.

    ``group`` looks at the command's processes; None: they cannot be seen. ``signal_group`` signals them, ``send_size``
    gives their terminal its size, with so many rows less. ``job`` None: podbot is not to be suspended, only the command
    continued. ``screen``: is fed with all output.
    """

    def __init__(
        self,
        *,
        group: Callable[[], Group | None],
        signal_group: Callable[[int], object],
        send_size: Callable[[int], None],
        job: Job | None,
        screen: ScreenModes | None = None,
    ) -> None:
        self._group = group
        self._signal_group = signal_group
        self._send_size = send_size
        self._job = job
        self._screen = screen or ScreenModes()
        self._looks: list[float] = []  # monotonic times, as in the next
        self._sizes: list[float] = []
        self._before: Group | None = None  # at the key
        self._had_screen = False  # the command had changed the terminal's modes then

    @property
    def due(self) -> float | None:
        """Monotonic time of the next act."""
        return min((*self._looks[:1], *self._sizes[:1]), default=None)

    def typed(self, data: bytes) -> bool:
        """What is about to go to the command; true when it has Ctrl-Z in it."""
        if not has_suspend_key(data):
            return False
        if not self._looks:
            self._before, self._had_screen = self._group(), not self._screen.clean
        now = time.monotonic()
        self._looks = [now + seconds for seconds in LOOKS]
        return True

    def shown(self, data: bytes | memoryview) -> None:
        """What the command printed."""
        self._screen.feed(bytes(data))

    def act(self) -> None:
        """What is due."""
        due = self.due
        if self._sizes[:1] == [due]:
            self._sizes.pop(0)
            self._send_size(0)
        elif due is not None:
            self._looks.pop(0)
            self._look()

    def _look(self) -> None:
        """See whether the command has suspended itself, and act on it."""
        now = self._group()
        if now is not None and (now.stopped or self._waits(now)):
            self.suspend()
        elif not self._looks and self._may_wait(now):
            self._signal_group(signal.SIGCONT)

    def obey(self, message: Resize | Suspend | Continued) -> None:
        """What happened to the terminal, or was done to podbot."""
        if isinstance(message, Resize):
            self._sized(0)
        elif isinstance(message, Suspend):
            self.suspend()
        else:
            if self._job is not None:
                self._job.retake(self._screen.enter())
            self._sized(1)

    def suspend(self) -> None:
        """Suspend podbot, then continue the command. Bounded: only a key, or a signal from outside, brings us here."""
        self.forget()
        if self._job is not None:
            self._job.suspend(self._screen.lend(), self._screen.enter(), commanded=self._screen.commanded)
        self._signal_group(signal.SIGCONT)
        self._sized(1)  # the kernel, and Node after it, tell a program only of a change

    def forget(self) -> None:
        """No more looks."""
        self._looks = []

    def _sized(self, less: int) -> None:
        self._send_size(less)
        self._sizes = [time.monotonic() + seconds for seconds in SIZES]

    def _waits(self, now: Group) -> bool:
        """Somebody who handles SIGCONT has given the screen back, or handles it only since the key.

        Not at the first look: the rest of the screen may still be on its way.
        """
        if len(self._looks) == len(LOOKS) - 1:
            return False
        waiting = {pid for pid, handles in now.members.items() if handles}
        before = self._before.members if self._before is not None else {}
        given_back = self._had_screen and self._screen.clean
        return bool(waiting) and (given_back or any(before.get(pid) is False for pid in waiting))

    def _may_wait(self, now: Group | None) -> bool:
        """It may have handled SIGCONT all along, or it cannot be seen: continuing what goes on does nothing."""
        return now is None or any(now.members.values())

"""Ctrl-Z in a session with a terminal: the agent suspends itself, and no shell inside would continue it.

Either the agent stops itself by SIGSTOP. Or it restores the terminal and sends itself SIGTSTP, which the kernel
discards because the process group is orphaned (no process of its session could continue it); the agent then keeps
running and waits for SIGCONT (measured with Claude Code, Gemini CLI and OpenCode). Podbot checks for both shortly
after the key. It then suspends itself, as a job of the operator's shell, and continues the agent when it is continued.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from podbot.execution.stopped import Group
from podbot.execution.time_limits import TIME_LIMITS
from podbot.streams.screen import ScreenModes
from podbot.streams.wake import Continued, Resize, Suspend

# Seconds after a changed size at which the real size is sent again. When two sizes followed each other at once, conmon
# lost the second in 6 of 40 cases (measured; in none of 40 with 20 ms between them).
SIZES = (0.1, 0.5)

# A control character; the kitty keyboard protocol (press or repeat, not release); xterm's modifyOtherKeys.
_CTRL_Z = re.compile(
    rb"\x1a|\x1b\[122(?::[0-9]*)*;([0-9]{1,3})(?::[12])?(?:;[0-9:]*)?u|\x1b\[27;([0-9]{1,3});122~", re.ASCII
)
_CTRL, _LOCKS = 4, 64 | 128  # modifiers are sent as 1 + their bits; caps lock and num lock count among them


class Job(Protocol):
    """podbot itself as a job of the operator's shell."""

    def suspend(self, leave: bytes, enter: bytes, *, commanded: bool) -> None:
        """Restore the terminal, stop, and take the terminal again when continued. ``leave`` and ``enter`` are written

        to it before and after. ``commanded``: the terminal may still send replies to the program's output, which must

        not reach the shell. Returns at once if no shell could continue podbot.
        """
        ...

    def retake(self, enter: bytes) -> None:
        """Take the terminal again after another process stopped podbot, since a shell may have used the terminal."""
        ...


class Suspension:
    """Watches one command's terminal. ``act`` must be called at the time :attr:`due`.

    ``group`` returns the command's processes, or None when they are not visible. ``signal_group`` signals them.
    ``send_size`` sends them the terminal's size, reduced by the given number of rows. Without a ``job``, the command
    is continued at once and podbot is not suspended. ``screen`` gets all output. ``looks``: see ``TimeLimits``.
    """

    def __init__(
        self,
        *,
        group: Callable[[], Group | None],
        signal_group: Callable[[int], object],
        send_size: Callable[[int], None],
        job: Job | None,
        screen: ScreenModes | None = None,
        looks: Sequence[float] = TIME_LIMITS.looks,
    ) -> None:
        self._group = group
        self._signal_group = signal_group
        self._send_size = send_size
        self._job = job
        self._screen = screen or ScreenModes()
        self._look_after = looks
        self._looks: list[float] = []  # monotonic times, like _sizes
        self._sizes: list[float] = []
        self._before: Group | None = None  # the processes when the key was pressed
        self._had_screen = False  # whether the command had changed the terminal's modes by then

    @property
    def due(self) -> float | None:
        """Monotonic time at which :meth:`act` must be called next."""
        return min((*self._looks[:1], *self._sizes[:1]), default=None)

    def typed(self, data: bytes) -> bool:
        """Inspect input before it is sent to the command; returns true when it contains Ctrl-Z."""
        if not has_suspend_key(data):
            return False
        if not self._looks:
            self._before, self._had_screen = self._group(), not self._screen.clean
        now = time.monotonic()
        self._looks = [now + seconds for seconds in self._look_after]
        return True

    def shown(self, data: bytes | memoryview) -> None:
        """Record the command's output."""
        self._screen.feed(bytes(data))

    def act(self) -> None:
        """Do what is due."""
        due = self.due
        if self._sizes[:1] == [due]:
            self._sizes.pop(0)
            self._send_size(0)
        elif due is not None:
            self._looks.pop(0)
            self._look()

    def _look(self) -> None:
        """Check whether the command has suspended itself, and react."""
        now = self._group()
        if now is not None and (now.stopped or self._waits(now)):
            self.suspend()
        elif not self._looks and self._may_wait(now):
            self._signal_group(signal.SIGCONT)

    def obey(self, message: Resize | Suspend | Continued) -> None:
        """React to a changed terminal size, or to podbot being stopped or continued."""
        if isinstance(message, Resize):
            self._sized(0)
        elif isinstance(message, Suspend):
            self.suspend()
        else:
            if self._job is not None:
                self._job.retake(self._screen.enter())
            self._sized(1)

    def suspend(self) -> None:
        """Suspend podbot, then continue the command. This cannot loop: only a key or an outside signal leads here."""
        self.forget()
        if self._job is not None:
            self._job.suspend(self._screen.lend(), self._screen.enter(), commanded=self._screen.commanded)
        self._signal_group(signal.SIGCONT)
        self._sized(1)  # the kernel, and Node too, report only a size that differs

    def forget(self) -> None:
        """Cancel the scheduled checks."""
        self._looks = []

    def _sized(self, less: int) -> None:
        self._send_size(less)
        self._sizes = [time.monotonic() + seconds for seconds in SIZES]

    def _waits(self, now: Group) -> bool:
        """Whether a process that handles SIGCONT has restored the screen, or has handled it only since the key.

        False at the first check, when the rest of the output may still be on its way.
        """
        if len(self._looks) == len(self._look_after) - 1:
            return False
        waiting = {pid for pid, handles in now.members.items() if handles}
        before = self._before.members if self._before is not None else {}
        given_back = self._had_screen and self._screen.clean
        return bool(waiting) and (given_back or any(before.get(pid) is False for pid in waiting))

    def _may_wait(self, now: Group | None) -> bool:
        """Whether SIGCONT should be sent to be safe: to a running process it does nothing."""
        return now is None or any(now.members.values())


def has_suspend_key(data: bytes) -> bool:
    """``data`` is one read from the terminal, which contains whole keys only."""
    if b"\x1a" in data:
        return True
    if b"122" not in data:
        return False
    return any((int(found[1] or found[2]) - 1) & ~_LOCKS == _CTRL for found in _CTRL_Z.finditer(data))

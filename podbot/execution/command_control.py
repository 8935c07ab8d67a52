"""What the runner needs of a command besides its streams, however it was started."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from podbot.execution.time_limits import TimeLimits
from podbot.frozen import Frozen
from podbot.streams.sides import CommandSide
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.engine.port import Size
    from podbot.exec_spec import ExecSpec
    from podbot.execution.stopped import Group
    from podbot.guest.messages import Ended


class Witness:
    """Says why the sandbox is ending, in a word of ``SandboxDied.CAUSES``, or empty: by facts of this host only, of
    which nothing inside can change any. This one sees nothing.
    """

    def now(self) -> str:
        """Asked first, as soon as a command has broken off: what it looks at lasts no longer than the end itself."""
        return ""

    def later(self) -> str:
        """Asked when :meth:`now` has said nothing of an end; may wait a little for what shows late."""
        return ""


NOTHING_SEEN = Witness()


class LeftCommand(Frozen):
    """A running command that another process is to end; with the defaults, there is none.

    ``exec_id``: the engine's id of it, if the engine started it. ``connection``: the descriptor of its connection to
    the guest that started it, otherwise -1, and ``state``: see ``ConnectionState.described``.
    """

    exec_id: str = ""
    connection: int = -1
    state: Mapping[str, Any] = {}


class CommandControl(Protocol):
    """A command that was started."""

    def signal(self, number: int) -> bool:
        """Send a signal to the command's whole group; returns false when that was not possible."""
        ...

    def terminate(self) -> bool:
        """Send TERM to all its processes that can be found; returns as :meth:`signal` does."""
        ...

    def resize(self, size: Size) -> None:
        """Change its terminal's size. A failure is ignored."""
        ...

    def group(self) -> Group | None:
        """The command's processes if they are visible on this host."""
        ...

    def is_running(self) -> bool:
        """Whether it is known to run."""
        ...

    def ends_within(self, seconds: float) -> bool | None:
        """Wait for its end. None: nothing answered, and asking again may take as long."""
        ...

    def code(self, side: CommandSide, *, ending: bool, sandbox_ends: bool) -> int:
        """Its status, once its streams have ended; any number when podbot was asked to end it (``ending``).

        ``sandbox_ends``: see ``run_exec``. Raises ExecFailed, EngineGone, SandboxDied and CommandSurvived.
        """
        ...

    @property
    def ended(self) -> Ended | None:
        """How it ended, once its status is known: the guest says it, or the kernel's counts; None if neither does."""
        ...

    def output_ended(self) -> None:
        """Called when its output has ended, but delivering the rest may take long."""
        ...

    def hand_over(self) -> LeftCommand:
        """What another process needs to end the command."""
        ...

    def close(self) -> None:
        """Close podbot's connection to it; the status can no longer be read afterwards."""
        ...

    def explained(self, error: Exception) -> Exception:
        """The error to raise for ``error``, with which its streams broke off."""
        ...


class Started(Frozen):
    """A running command. ``close`` ends the relay of its streams.

    ``term``: the TERM that its guest chose for it; empty if none did.
    """

    control: CommandControl
    side: CommandSide
    close: Callable[[], None]
    term: str = ""


class CommandStart(Protocol):
    """One way to start a command."""

    container: str

    @property
    def control(self) -> CommandControl | None:
        """Set as soon as the command may run, even if the start then fails."""
        ...

    def begin(self, spec: ExecSpec, size: Callable[[], Size | None], wake: Wake, limits: TimeLimits) -> Started:
        """Start ``spec``. ``size``: of the caller's terminal. Raises ContainerError subclasses, and Interrupted."""
        ...


def terminated(control: CommandControl, limits: TimeLimits) -> bool:
    """End the command: TERM, then KILL. Returns false if it may still be running."""
    from signal import SIGKILL

    control.terminate()
    ended = control.ends_within(limits.term)
    if ended is False:
        control.signal(SIGKILL)
        ended = control.ends_within(limits.kill)
    return bool(ended)


def within(seconds: float, ended: Callable[[], bool]) -> bool:
    """Call ``ended`` until it returns true; false after ``seconds``."""
    end = time.monotonic() + seconds
    while not ended():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True

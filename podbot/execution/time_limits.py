"""How long each step of running a command may take."""

from __future__ import annotations

from podbot.frozen import Frozen


class TimeLimits(Frozen):
    """All in seconds."""

    term: float = 2.0  # between TERM and KILL for a command's group
    kill: float = 2.0  # after KILL, for the command to end
    last_output: float = 2.0  # after KILL, in which its last output is still relayed
    status: float = 10.0  # for the engine to report that a command has ended after its stream did
    greeting: float = 2.0  # for the guest to answer at all; without an answer the engine runs the command
    shell: float = 2.0  # for a shell inside the container to send a signal
    start_after_signal: float = 1.0  # for the guest to answer once a signal has arrived
    engine_after_signal: float = 5.0  # the same, for the engine, which has started the command then or never does
    looks: tuple[float, ...] = (0.1, 0.3, 0.7, 1.5)  # after Ctrl-Z, at which the command's processes are checked


TIME_LIMITS = TimeLimits()

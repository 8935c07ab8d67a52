"""The states of a session and the moves between them, as data. See docs/adr/0028-session-record.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

State = Literal["claimed", "creating", "running", "stopped", "starting", "detached", "orphaned", "gone"]
STATES: tuple[State, ...] = get_args(State)

MOVES: Mapping[State, frozenset[State]] = {
    # A podbot holds the session's name; the engine has not been asked for a container.
    "claimed": frozenset({"creating", "orphaned", "gone"}),
    # The engine was asked for the container, which may exist.
    "creating": frozenset({"running", "orphaned", "gone"}),
    # The container runs, and a podbot process holds the session's lock.
    "running": frozenset({"stopped", "orphaned", "gone"}),
    # The container is kept, stopped.
    "stopped": frozenset({"starting", "gone"}),
    # `podbot start` is restarting it.
    "starting": frozenset({"detached", "stopped", "orphaned", "gone"}),
    # The container runs without a podbot process.
    "detached": frozenset({"stopped", "gone"}),
    # The podbot that ran it was killed.
    "orphaned": frozenset({"stopped", "gone"}),
    # There is no container any more.
    "gone": frozenset(),
}

_OWNED: frozenset[State] = frozenset({"claimed", "creating", "running", "starting"})
"""States in which a podbot process must hold the lock; if none does, it was killed."""


def moved(before: State, after: State) -> State:
    """``after``, if the move from ``before`` is allowed. Raises ValueError otherwise."""
    if after not in MOVES[before]:
        raise ValueError(f"a session that is {before} cannot become {after}")
    return after


def observed(recorded: State, *, live: bool) -> State:
    """The state of a session whose record says ``recorded``. ``live``: a process holds its lock."""
    return "orphaned" if recorded in _OWNED and not live else recorded

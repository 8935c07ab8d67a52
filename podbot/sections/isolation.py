"""What an agent that another one starts shares with it."""

from __future__ import annotations

from enum import Enum

from podbot.sections.session_state import Session


class SubagentIsolationLevel(Enum):
    """``NO_ISOLATION``: session, section, container and files are shared. ``FULL_ISOLATION``: nothing is."""

    NO_ISOLATION = "no_isolation"
    FULL_ISOLATION = "full_isolation"


def session_for_subagent(parent: Session, level: SubagentIsolationLevel) -> Session:
    """The session that an agent gets: the parent's own, or a clone with an id and a bus of its own."""
    return parent if level is SubagentIsolationLevel.NO_ISOLATION else parent.clone()

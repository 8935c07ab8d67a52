"""What all resources of a session have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from podbot.engine.port import ContainerInfo, Engine
from podbot.events import Emit
from podbot.launch.types import ResourcePlan, SandboxPlan
from podbot.session.sessions import SessionDirectory
from podbot.streams.wake import Wake

PlanT = TypeVar("PlanT", bound=ResourcePlan)


@dataclass(frozen=True)
class Opening:
    """A session that is being opened. ``wake`` is listening: a signal waits where it is not said to interrupt.

    ``again``: its container is there, stopped, and is started again; the session then goes on without podbot.
    """

    engine: Engine
    plan: SandboxPlan
    directory: SessionDirectory
    wake: Wake
    emit: Emit
    again: bool = False


class SessionResource(Generic[PlanT]):
    """One resource of one session. Each method is called once, in this order; a subclass has those that it needs.

    Every method may raise PodbotError subclasses, and Interrupted when a signal came: the session then ends.
    """

    def __init__(self, plan: PlanT, session: Opening) -> None:
        self.plan = plan
        self.session = session

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """From before the container is made until it is gone, or kept."""
        yield

    def created(self, container: str) -> None:
        """The container is made and not started. Called again when it had to be made again."""

    def starting(self) -> None:
        """The container is about to start: nothing inside has run yet. Called again when it had to be made again."""

    def inspected(self, found: ContainerInfo) -> None:
        """What an engine on this host says of the container, which runs."""

    def started(self, container: str) -> None:
        """The container runs, and nothing of the caller's in it."""

    def ending(self) -> None:
        """What the caller ran has ended, and the container is still there. Not after an error of the start."""

    @classmethod
    def restore(cls, session_dir: str) -> None:
        """Make what a stopped container mounts from ``session_dir``, and a reboot removed, for it to start again."""

    def describe(self) -> object:
        """As plain values, without secrets: for the session's record."""
        return self.plan.described()

"""The base class of a session's resources."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Generic, TypeVar

from podbot.engine.port import ContainerInfo, Engine
from podbot.events import Emit
from podbot.frozen import Frozen
from podbot.launch.types import ResourcePlan, SandboxPlan
from podbot.session.directory import SessionDirectory
from podbot.session.guarding import SCANNER, Scanner
from podbot.streams.wake import Wake

PlanT = TypeVar("PlanT", bound=ResourcePlan)


class Opening(Frozen):
    """A session that is being opened. ``wake`` queues signals, except in blocks that are marked as interruptible.

    ``again``: an existing, stopped container is restarted; the session then continues without podbot.
    ``scanner``: the guard's.
    """

    engine: Engine
    plan: SandboxPlan
    directory: SessionDirectory
    wake: Wake
    emit: Emit
    again: bool = False
    scanner: Scanner = SCANNER


class SessionResource(Generic[PlanT]):
    """One resource of one session. Each method is called once, in this order; a subclass overrides those it needs.

    Every method may raise PodbotError subclasses, and Interrupted when a signal arrived; the session then ends.
    """

    def __init__(self, plan: PlanT, session: Opening) -> None:
        self.plan = plan
        self.session = session

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Wraps the session from before the container is created until it is removed or kept."""
        yield

    def created(self, container: str) -> None:
        """The container is created but not started. Called again if it had to be created again."""

    def starting(self) -> None:
        """The container is about to start; nothing inside has run yet. Called again if it had to be created again."""

    def inspected(self, found: ContainerInfo) -> None:
        """The container runs; ``found`` is its description. Called only for an engine on this host."""

    def running(self, found: ContainerInfo) -> None:
        """As :meth:`inspected`, on every start. Raises StartFailed for a container that must not continue."""

    def started(self, container: str) -> None:
        """The container runs, but no command of the caller's has started."""

    def detached(self) -> None:
        """A kept container runs again with all of its resources, and podbot is about to exit."""

    def ending(self) -> None:
        """The caller's commands have ended, and the container still exists. Not called if the start failed."""

    @classmethod
    def restore(cls, session_dir: str) -> None:
        """Recreate the directories in ``session_dir`` that a stopped container mounts and that a reboot deleted."""

    def describe(self) -> object:
        """The resource as plain values without secrets, for the session's record."""
        return self.plan.described()

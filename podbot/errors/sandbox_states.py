"""Errors about a sandbox that is not running."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from podbot.errors.container import ContainerError


class SandboxDied(ContainerError):
    """The container stopped while a command was running in it.

    ``cause``: a key of CAUSES; empty if nothing is known.
    """

    container: str
    reason: str
    cause: str = ""
    template: ClassVar[str] = "the sandbox {container} ended while its command was running: {reason}"
    advice: ClassVar[str] = "It was stopped from outside or exceeded a limit."
    CAUSES: ClassVar[Mapping[str, str]] = {
        "stopped": "a podbot was told to stop it",
        "session_ended": "its session has ended",
        "owner_killed": "the podbot that ran its session was killed",
        "removed": "the container was removed",
        "not_running": "the container is {state}",
    }

    @classmethod
    def seen(cls, container: str, cause: str, state: str | None) -> SandboxDied:
        """``cause``: what this host shows, or empty. ``state``: the engine's; None if the container is gone."""
        cause = cause or ("removed" if state is None else "not_running")
        return cls(container=container, reason=cls.CAUSES[cause].format(state=state), cause=cause)

    @property
    def remedy(self) -> str:
        """Empty where the cause says who ended it."""
        return "" if self.cause in ("stopped", "session_ended", "owner_killed") else super().remedy


class SandboxPaused(ContainerError):
    """The container is paused: its processes are frozen, and no command can run in it. It is not lost."""

    container: str
    engine_hint: str = ""
    template: ClassVar[str] = "the sandbox {container} is paused"
    advice: ClassVar[str] = "{engine_hint}"


class SandboxStopped(ContainerError):
    """The container is not running, so nothing can be done inside. ``state``: the engine's term."""

    container: str
    state: str
    template: ClassVar[str] = "the sandbox {container} is not running ({state})"
    advice: ClassVar[str] = "Start it again if it was kept."

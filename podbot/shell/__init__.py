"""Shells: run commands in a sandbox, on this machine or in a test, through one protocol and with the same results.

Names are loaded when they are first used: ``import podbot`` loads none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podbot.deferred import loader

if TYPE_CHECKING:
    from podbot.execution.result import BytesResult, ExecutionResult
    from podbot.shell.aio import AsyncShell
    from podbot.shell.host_shell import HostShell
    from podbot.shell.mock_shell import MockShell
    from podbot.shell.podman_shell import PodmanShell
    from podbot.shell.shell_limits import ShellLimits
    from podbot.shell.types import (
        Chunk,
        EnvironmentSnapshot,
        JobOutput,
        JobShell,
        JobState,
        Shell,
        WhichResult,
    )
    from podbot.shell.validator import DEFAULT_BLOCKED_PATTERNS, CommandValidator

__all__ = [
    "DEFAULT_BLOCKED_PATTERNS",
    "AsyncShell",
    "BytesResult",
    "Chunk",
    "CommandValidator",
    "EnvironmentSnapshot",
    "ExecutionResult",
    "HostShell",
    "JobOutput",
    "JobShell",
    "JobState",
    "MockShell",
    "PodmanShell",
    "Shell",
    "ShellLimits",
    "WhichResult",
]

_HOME = {
    "podbot.execution.result": ("BytesResult", "ExecutionResult"),
    "podbot.shell.aio": ("AsyncShell",),
    "podbot.shell.host_shell": ("HostShell",),
    "podbot.shell.mock_shell": ("MockShell",),
    "podbot.shell.podman_shell": ("PodmanShell",),
    "podbot.shell.shell_limits": ("ShellLimits",),
    "podbot.shell.types": (
        "Chunk",
        "EnvironmentSnapshot",
        "JobOutput",
        "JobShell",
        "JobState",
        "Shell",
        "WhichResult",
    ),
    "podbot.shell.validator": ("DEFAULT_BLOCKED_PATTERNS", "CommandValidator"),
}
__getattr__ = loader(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)

"""What a captured command gave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """A command that ended. ``exit_code``: its own status; -1 when it was ended because its time was up.

    ``stdout``, ``stderr``: what it printed, empty when that was not captured; bytes that are not UTF-8 became
    replacement characters. ``cwd``: the directory inside. ``truncated``: some of what it printed is missing.
    ``signal``: by which podbot ended it, else None.
    """

    exit_code: int
    stdout: str
    stderr: str
    command: tuple[str, ...]
    cwd: str
    duration_seconds: float
    truncated: bool = False
    timed_out: bool = False
    signal: int | None = None

    @property
    def success(self) -> bool:
        """It ended by itself, with status 0."""
        return self.exit_code == 0 and not self.timed_out

"""What the tools that run commands return. Those of the file tools are in ``results``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ShellExecuteResult:
    """A command that ended. ``cwd``: where it ran, such as ``/workspace/src``, whatever the backend.

    ``exit_code``: 124 after its time limit (``timed_out``). ``stdout``, ``stderr``: "capture disabled" when they were
    not wanted. ``truncated``: some of the output is missing.
    """

    command: tuple[str, ...]
    cwd: str
    exit_code: int
    stdout: str
    stderr: str
    duration_ms: int
    timed_out: bool
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class PodmanShellResult:
    """What an action of ``podman_shell`` did.

    ``stdout`` and ``exit_code``: None but for ``exec``. ``stderr``: of ``exec``; after a failure of any action a
    message, if there is no output.
    """

    action: Literal["start", "exec", "stop"]
    container_name: str
    stdout: str | None
    stderr: str | None
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class EvalResult:
    """A Python program that ended. ``stdout``, ``stderr``: the first 4,096 characters, then ``...`` if there are more.

    ``exit_code``: 124 after its time limit (``timed_out``). ``value_repr`` is None and the others are empty: a program
    prints its values, and uses the workspace's files itself.
    """

    value_repr: str | None
    stdout: str
    stderr: str
    globals: Mapping[str, str]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    exit_code: int
    timed_out: bool

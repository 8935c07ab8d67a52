"""A harness that runs code that nobody has read, and judges what it prints.

Each submission gets a container of its own: no network, no capability, 1 CPU, 256 MiB, 64 processes, 60 seconds.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from podbot.tools import LazyWorkspace, PodmanBackend, WorkspaceDied, WorkspaceSettings

LIMITS = WorkspaceSettings(memory="256m", pids=64, uptime_seconds=60)


@dataclass(frozen=True)
class Verdict:
    """``passed``: the program ended by itself with the expected output. ``why``: otherwise, for the report."""

    passed: bool
    why: str = ""


def judge(program: str, stdin: str, expected: str, *, seconds: float = 5.0) -> Verdict:
    """Run a Python program, and compare what it prints."""
    with LazyWorkspace(PodmanBackend(), ident=uuid.uuid4().hex, settings=LIMITS) as workspace:
        workspace.files.write(["program.py"], program)
        try:
            ran = workspace.shell.execute(["python3", "program.py"], stdin=stdin, timeout_seconds=seconds)
        except WorkspaceDied as error:  # a program may end its own container
            return Verdict(passed=False, why=error.message)
    if ran.timed_out:
        return Verdict(passed=False, why=f"it ran for more than {seconds:g} s")
    if ran.exit_code != 0:
        return Verdict(passed=False, why=f"it ended with status {ran.exit_code}: {ran.stderr[-200:]}")
    return Verdict(passed=True) if ran.stdout == expected else Verdict(passed=False, why="it printed something else")


def judge_all(programs: Sequence[str], stdin: str, expected: str, *, at_once: int = 4) -> list[Verdict]:
    """The verdicts of several programs, some of them at the same time."""
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda program: judge(program, stdin, expected), programs))

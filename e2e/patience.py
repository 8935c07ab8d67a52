"""Longer time limits for an emulated processor: each is multiplied by PODBOT_E2E_PATIENCE.

A limit distinguishes a hang from work, and says nothing about speed: work that takes 10 s on a processor takes over a
minute on an emulated one. Limits of up to SHORT seconds stay, because they wait for something that must not happen.
"""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pexpect.expect

PATIENCE = float(os.environ.get("PODBOT_E2E_PATIENCE", "1"))
SHORT = 3.0


def patient(seconds: Any) -> Any:
    """``seconds`` as a limit on this machine; None is no limit."""
    return seconds * PATIENCE if isinstance(seconds, int | float) and seconds > SHORT else seconds


def bound(seconds: float) -> float:
    """``seconds`` as an upper bound on how long something took on this machine: also the short ones are longer."""
    return seconds * PATIENCE


def be_patient() -> None:
    """From now on the limits of child processes and of pexpect are longer, too."""
    if PATIENCE == 1:
        return
    wait, communicate = subprocess.Popen.wait, subprocess.Popen.communicate
    loop = pexpect.expect.Expecter.expect_loop

    def waits(self: Any, timeout: Any = None) -> int:
        return wait(self, patient(timeout))

    def communicates(self: Any, input: Any = None, timeout: Any = None) -> Any:  # noqa: A002 - as in subprocess
        return communicate(self, input, patient(timeout))

    def loops(self: Any, timeout: Any = -1) -> Any:
        return loop(self, patient(self.spawn.timeout if timeout == -1 else timeout))

    subprocess.Popen.wait = waits  # type: ignore[method-assign]
    subprocess.Popen.communicate = communicates  # type: ignore[method-assign]
    pexpect.expect.Expecter.expect_loop = loops

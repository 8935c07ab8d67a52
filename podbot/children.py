"""Child processes that may be left behind: one that waits in the kernel ends for no signal, and podbot does not wait.

This is on the way of every `podbot exec`, so nothing is imported that it does not have already.
"""

from __future__ import annotations

import os
import sys
import time

_left: list[int] = []  # processes that did not end


def gone(process: int, seconds: float) -> bool:
    """Whether the child has ended within ``seconds``; it is reaped then."""
    end = time.monotonic() + seconds
    try:
        while os.waitpid(process, os.WNOHANG) == (0, 0):
            if time.monotonic() >= end:
                return False
            time.sleep(0.0005)
    except ChildProcessError:
        pass
    return True


def leave(process: int) -> None:
    """It did not end: a later :func:`sweep` reaps it."""
    _left.append(process)


def sweep() -> None:
    """Reap those that have ended since."""
    _left[:] = [process for process in _left if not gone(process, 0)]


def interpreter(script: str) -> str:
    """The Python that runs us, for ``script``.

    Raises OSError where podbot is embedded in another program, or lies in an archive.
    """
    program = sys.executable or ""
    name = os.path.basename(program).rstrip("0123456789.dt")
    if getattr(sys, "frozen", False) or name not in ("python", "pypy") or not os.path.isfile(script):
        raise OSError(f"{program} is no Python interpreter that could run {script}")
    return program

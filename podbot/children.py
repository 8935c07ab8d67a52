"""Child processes: those that podbot abandons, and what a program's own forks do not inherit.

podbot does not wait for a child that is blocked in the kernel, beyond signals.

Every `podbot exec` loads this module, so it imports nothing additional.
"""

from __future__ import annotations

import os
import sys
import time

_left: list[int] = []  # processes that did not end
_withheld: set[int] | None = None  # descriptors that no fork inherits; None: none was ever withheld


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
    """Abandon a child; a later :func:`sweep` reaps it."""
    _left.append(process)


def sweep() -> None:
    """Reap abandoned children that have ended since."""
    _left[:] = [process for process in _left if not gone(process, 0)]


def withhold(descriptor: int) -> None:
    """Let a child that this program forks (``os.fork``, multiprocessing) not hold what ``descriptor`` refers to.

    Others see podbot's end by the end of its descriptors, and would wait for such a child too. Call :func:`give_back`
    before it is closed.
    """
    global _withheld  # noqa: PLW0603 - the hook is registered once, and cannot be removed
    if _withheld is None:
        _withheld = set()
        os.register_at_fork(after_in_child=_drop_withheld)
    _withheld.add(descriptor)


def give_back(descriptor: int) -> None:
    """End the effect of :func:`withhold`."""
    if _withheld is not None:
        _withheld.discard(descriptor)


def _drop_withheld() -> None:
    """The numbers stay in use, because the child may still close them by the objects that it has inherited."""
    if not _withheld:
        return
    try:
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for descriptor in _withheld:
            os.dup2(nothing, descriptor, inheritable=False)
        os.close(nothing)
    except OSError:  # no descriptor is free, for example
        for descriptor in _withheld:
            os.close(descriptor)
    _withheld.clear()


def interpreter(script: str, *, frozen: bool = getattr(sys, "frozen", False)) -> str:
    """The Python that runs us, for ``script``.

    Raises OSError where podbot is embedded in another program (``frozen``), or lies in an archive.
    """
    program = sys.executable or ""
    name = os.path.basename(program).rstrip("0123456789.dt")
    if frozen or name not in ("python", "pypy") or not os.path.isfile(script):
        raise OSError(f"{program} is not a Python interpreter that could run {script}")
    return program

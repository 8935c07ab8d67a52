"""A process that waits for podbot's end and, if podbot was killed, has the rest of its session removed: ``killed``.

It is a shell that waits on a pipe from podbot. podbot writes a line when the session is over; a podbot that was killed
does not, and the shell starts a helper program in Python.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from podbot.children import give_back, interpreter, withhold
from podbot.engine.environment import for_helper
from podbot.frozen import Frozen

if TYPE_CHECKING:
    import subprocess

# Without a line podbot was killed, or leaves the rest to the helper, which is not to be a child of ours.
_WAIT = 'read -r line || { "$@" & }'
_RELEASED = 5.0  # seconds for the shell to end after that; 1 ms as a rule


class HelperProgram(Frozen):
    """The program that removes what is left, by its ``path``. It gets the part of ``environ`` that it needs."""

    path: str
    environ: Mapping[str, str]


class KillWatcher:
    """``needed``: podbot could not end the session itself, for example because the engine was killed."""

    needed = False


@contextlib.contextmanager
def removed_if_killed(path: str, helper: HelperProgram | None) -> Iterator[KillWatcher]:
    """Have what is left of the session in directory ``path`` removed if this process is killed while the block runs.

    Without a ``helper``, or if it cannot be started, for example in a frozen program, the next command does so.
    """
    waiting = _started(path, helper) if helper is not None else None
    watcher = KillWatcher()
    try:
        yield watcher
    finally:
        if waiting is not None:
            _release(waiting, b"" if watcher.needed else b"\n")


def _started(path: str, helper: HelperProgram) -> subprocess.Popen[bytes] | None:
    import subprocess

    try:
        # Its own session, so that killing podbot's process group does not reach it.
        waiting = subprocess.Popen(
            ["/bin/sh", "-c", _WAIT, "podbot-watch", interpreter(helper.path), "-I", helper.path, path],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
            env=for_helper(helper.environ), start_new_session=True,
        )  # fmt: skip
    except OSError:
        return None
    assert waiting.stdin is not None  # noqa: S101 - it is a pipe
    withhold(waiting.stdin.fileno())
    return waiting


def _release(waiting: subprocess.Popen[bytes], line: bytes) -> None:
    import subprocess

    assert waiting.stdin is not None  # noqa: S101 - it is a pipe
    give_back(waiting.stdin.fileno())
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # it was killed, or stopped
        waiting.communicate(line, _RELEASED)
        return
    waiting.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        waiting.wait(_RELEASED)

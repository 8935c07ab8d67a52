"""A process that waits for podbot's end and, if podbot was killed, has the rest of its session removed (``killed``), or
ends the command that the engine runs for it.

It is a shell that waits on a pipe from podbot. podbot writes a line when the session or the command is over; a podbot
that was killed does not, and the shell starts a helper program in Python.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from podbot.children import give_back, interpreter, withhold
from podbot.engine.environment import for_helper
from podbot.frozen import Frozen

if TYPE_CHECKING:
    import subprocess

    from podbot.engine.port import Engine

# Without a line podbot was killed, or leaves the rest to the helper, which is not to be a child of ours.
_WAIT = 'read -r line || { "$@" & }'
# The first line is the engine's id of the command; without it there is none.
_WAIT_FOR_COMMAND = 'read -r id && { read -r line || { "$@" "$id" & }; }'
_RELEASED = 5.0  # seconds for the shell to end after that; 1 ms as a rule


class HelperProgram(Frozen):
    """The program that is started after a kill, by its ``path``. It gets the part of ``environ`` that it needs."""

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
    waiting = _started(_WAIT, helper, path) if helper is not None else None
    watcher = KillWatcher()
    try:
        yield watcher
    finally:
        if waiting is not None:
            _release(waiting, b"" if watcher.needed else b"\n")


@contextlib.contextmanager
def ended_if_killed(engine: Engine, container: str, helper: HelperProgram) -> Iterator[Callable[[str], None]]:
    """Have a command that ``engine`` runs in ``container`` ended if this process is killed while the block runs.

    Call what it yields with the engine's id of the command before the command starts. A remote engine's command is not
    watched: its address, which may contain a password, would be in an argument.
    """
    words = (engine.words.kind, engine.endpoint, container)
    waiting = _started(_WAIT_FOR_COMMAND, helper, *words) if engine.local else None
    known = []

    def created(exec_id: str) -> None:
        if waiting is None:
            return
        assert waiting.stdin is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(OSError):  # it was killed
            os.write(waiting.stdin.fileno(), f"{exec_id}\n".encode())
            known.append(exec_id)

    try:
        yield created
    finally:
        if waiting is not None:
            _release(waiting, b"\n" if known else b"")


def _started(script: str, helper: HelperProgram, *words: str) -> subprocess.Popen[bytes] | None:
    import subprocess

    try:
        # Its own session, so that killing podbot's process group does not reach it.
        waiting = subprocess.Popen(
            ["/bin/sh", "-c", script, "podbot-watch", interpreter(helper.path), "-I", helper.path, *words],
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

"""podbot's side of the scanning process: it is started, awaited within a limit, and abandoned if it hangs."""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import signal
import time
from collections.abc import Mapping
from typing import Any

from podbot.children import gone, interpreter, leave, sweep
from podbot.guard import scan
from podbot.guard.marks import Finding, GuardReport

_ANSWER = 24 << 20  # bytes: two parts, each with what ``scan.ANSWER`` allows, and gaps
# Some interpreters need it to find libpython; HOME is for `~` in git's configuration. No secrets are passed.
_PASSED_ON = ("LD_LIBRARY_PATH", "HOME")


class Child:
    """One process that runs ``job`` (see ``scan``). Raises OSError when it cannot be started.

    ``ended``: a descriptor that can be read from the moment on when a comparison may begin, also without :meth:`go`.
    ``script``: the program, unless it is ``scan``.
    """

    def __init__(self, job: Mapping[str, Any], *, ended: int | None = None, script: str | None = None) -> None:
        sweep()
        script = script or scan.__file__
        program = interpreter(script)
        self._process, self._closed = 0, False
        theirs_in, self._in = os.pipe()
        self._out, theirs_out = os.pipe()
        try:
            try:
                actions = [
                    (os.POSIX_SPAWN_DUP2, theirs_in, 0),
                    (os.POSIX_SPAWN_DUP2, theirs_out, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ]
                if ended is not None:
                    actions.append((os.POSIX_SPAWN_DUP2, ended, scan.ENDED))
                env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
                # In a group of its own: Ctrl-C is the agent's.
                argv = [program, "-I", "-S", script]
                self._process = os.posix_spawn(program, argv, env, file_actions=actions, setpgroup=0)
            finally:
                os.close(theirs_in)
                os.close(theirs_out)
            self._say(scan.framed({**job, "ended": ended is not None}))
        except BaseException:
            self.close()
            raise

    def go(self) -> None:
        """Let the comparison begin."""
        self._say(b"\n")

    def answer(self, seconds: float) -> dict[str, Any] | None:
        """The last part of the answer, after which the process has ended; None if there is none within ``seconds``.

        ``whole`` in it is false when the process failed, or took longer, after that part.
        """
        end = time.monotonic() + seconds
        poller = select.poll()
        poller.register(self._out, select.POLLIN)
        data = b""
        while len(data) < _ANSWER and (left := end - time.monotonic()) > 0:
            if not poller.poll(left * 1000):
                break
            more = os.read(self._out, 1 << 16)
            if not more:
                break
            data += more
        self.close()
        return _last_part(data)

    def close(self) -> None:
        """End the process. One that is blocked in the kernel is abandoned and reaped later."""
        if self._closed:
            return
        self._closed = True
        os.close(self._in)
        os.close(self._out)
        process, self._process = self._process, 0
        if not process:  # it could not be started
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)  # it may have forked
        if not gone(process, 0.2):
            leave(process)

    def _say(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # a missing answer shows that it has ended
            os.write(self._in, data)


def _last_part(data: bytes) -> dict[str, Any] | None:
    """The last one that arrived completely."""
    last = None
    while len(data) >= 4:
        size = 4 + int.from_bytes(data[:4], "big")
        try:
            part = marshal.loads(data[4:size]) if size <= len(data) else None  # noqa: S302 - podbot's own process
        except (EOFError, TypeError, ValueError):
            break
        if not isinstance(part, dict):
            break
        last, data = part, data[size:]
    return last


def left_of(answer: Mapping[str, Any]) -> GuardReport:
    """The comparison in an answer. Raises KeyError, TypeError or ValueError if it is malformed."""
    findings, gaps, more, entries, seconds = answer["left"]
    return GuardReport(tuple(Finding(*one) for one in findings), tuple(gaps), more, entries, seconds)

"""An open sandbox for Python callers: run commands in it, one after another."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Mapping, Sequence

from podbot.errors import ContainerNotFound, InvalidValue
from podbot.execution.result import ExecutionResult
from podbot.launch.command import ExecSpec
from podbot.session.capture import Kept, run_fed
from podbot.session.session import OpenSandbox
from podbot.streams.wake import Wake

OUTPUT_LIMIT = 1 << 20  # bytes of each of stdout and stderr that are kept; what is beyond is read and dropped


class Sandbox:
    """A sandbox that is open. From any thread; its commands run one at a time."""

    def __init__(self, opened: OpenSandbox) -> None:
        self._opened = opened
        self._lock = threading.Lock()  # a connection to the engine serves one thread
        self._over = False

    @property
    def name(self) -> str:
        """The session's name, which is the container's."""
        return self._opened.plan.session

    def run(
        self,
        command: Sequence[str],
        *,
        capture: bool = False,
        timeout: float | None = None,
        input: bytes | str | None = None,  # noqa: A002 - as subprocess.run calls it
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> ExecutionResult:
        """Run ``command``, program and arguments, to its end; its failure is a result.

        ``capture``: return what it prints, 1 MiB of each stream at most; otherwise that is discarded. ``timeout``:
        seconds, after which its process group is ended (TERM, 2 s, KILL). ``input``: its whole stdin; None: end of
        file at once. ``env``: more variables. ``cwd``: a directory inside; None: the workspace.

        Raises InvalidValue, ContainerNotFound, ExecFailed, EngineGone, EngineStorageFull, SandboxDied, and
        CommandSurvived when its time was up and it could not be ended.
        """
        words = _checked(command, timeout)
        data = input.encode() if isinstance(input, str) else input
        spec = ExecSpec(command=words, workdir=cwd, env=dict(env or {}), stdin=data is not None)
        out, err = (Kept(OUTPUT_LIMIT), Kept(OUTPUT_LIMIT)) if capture else (None, None)
        with self._lock, contextlib.closing(Wake()) as wake:
            if self._over:
                raise ContainerNotFound(container=self.name)
            opened = self._opened
            begun = time.monotonic()
            status = run_fed(
                opened.engine, self.name, spec, wake, data=data, out=out, err=err, seconds=timeout, pipes=opened.pipes
            )
            seconds = time.monotonic() - begun
        timed_out = status.signal is not None  # nobody else has this wake
        return ExecutionResult(
            exit_code=-1 if timed_out else status.code,
            stdout=out.text if out is not None else "",
            stderr=err.text if err is not None else "",
            command=words,
            cwd=cwd or opened.plan.container.workdir or "/",
            duration_seconds=seconds,
            truncated=any(kept is not None and kept.truncated for kept in (out, err)),
            timed_out=timed_out,
            signal=status.signal,
        )

    def is_running(self) -> bool:
        """Whether the engine has the container running. Raises ContainerError subclasses when it does not answer."""
        with self._lock:
            if self._over:
                return False
            try:
                return self._opened.engine.inspect(self.name).state == "running"
            except ContainerNotFound:
                return False

    def close(self) -> None:
        """From now on nothing runs; waits for a command that does. Whoever opened the sandbox ends it."""
        with self._lock:
            self._over = True


def _checked(command: Sequence[str], timeout: float | None) -> tuple[str, ...]:
    field, reason = "", ""
    if isinstance(command, str) or not command or not command[0]:
        field, reason = "command", f"{command!r} is not a program and its arguments"
    elif timeout is not None and not (math.isfinite(timeout) and timeout > 0):
        field, reason = "timeout", f"{timeout!r} is not a number of seconds above 0"
    if field:
        hint = 'Pass a list, such as ["ls", "-l"]; a shell is ["sh", "-c", "…"].' if field == "command" else ""
        raise InvalidValue(field=field, origin="the caller", reason=reason[:200], hint=hint)
    return tuple(command)

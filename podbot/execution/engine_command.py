"""A command that the engine started: signals, its terminal's size, its status."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from signal import SIGTERM

from podbot.engine.port import Engine, ExecState, Size, StartRefusal
from podbot.errors import (
    CommandSurvived,
    ConnectionFailed,
    ContainerError,
    ContainerNotFound,
    EngineGone,
    ExecFailed,
    HealthCheckFailed,
    RequestFailed,
    SandboxDied,
    SocketNotFound,
)
from podbot.exec_spec import ExecSpec
from podbot.execution.command_control import (
    NOTHING_SEEN,
    LeftCommand,
    Witness,
    terminated,
    within,
)
from podbot.execution.group import is_gone, signal_group
from podbot.execution.kernel_counts import KernelCounts
from podbot.execution.stopped import Group, group_of
from podbot.execution.time_limits import TIME_LIMITS, TimeLimits
from podbot.guest.messages import Ended
from podbot.streams.sides import CommandSide

_KILLED = 137  # the status of a command that KILL ended
_NOT_STARTED = (125, 126, 127)  # the statuses of a command that the engine did not start
# Seconds between looks at whether a command has ended whose output has. One can close its output and go on.
_LOOKS = (0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
_GONE = (EngineGone, ConnectionFailed, SocketNotFound)


class EngineCommand:
    """See ``CommandControl``. ``program``: for messages. ``counts``: the kernel's, where they can be read.

    ``before``: what they were before the start. ``witness``: see Witness.
    """

    def __init__(
        self,
        engine: Engine,
        container: str,
        exec_id: str,
        program: str,
        limits: TimeLimits,
        *,
        counts: KernelCounts | None = None,
        before: tuple[int, int] = (0, 0),
        witness: Witness = NOTHING_SEEN,
    ) -> None:
        self._engine, self._container, self._program = engine, container, program
        self._limits, self._exec_id = limits, exec_id
        self._last: ExecState | None = None
        self._counts, self._before = counts, before
        self._code: int | None = None
        self._witness = witness
        self._restarts = engine.restarts

    def signal(self, number: int) -> bool:
        return signal_group(self._engine, self._container, self._exec_id, number, seconds=self._limits.shell)

    def terminate(self) -> bool:
        """See CommandControl. Only those of its group can be found."""
        return self.signal(SIGTERM)

    def resize(self, size: Size) -> None:
        try:
            self._engine.exec_resize(self._exec_id, size)
        except ContainerError:
            return

    def group(self) -> Group | None:
        if not self._engine.local:
            return None
        try:
            leader = self._engine.exec_inspect(self._exec_id).pid
            return group_of(leader, self._engine.inspect(self._container).id) if leader > 0 else None
        except ContainerError:
            return None

    def is_running(self) -> bool:
        try:
            return self._engine.exec_inspect(self._exec_id).running
        except ContainerError:
            return False

    def ends_within(self, seconds: float) -> bool | None:
        def ended() -> bool:
            try:
                state = self._engine.exec_inspect(self._exec_id)
            except RequestFailed as exc:
                # An engine that was started again forgets it soon after its end (404), and may fail while its monitor
                # records that.
                return exc.status == 404
            return not state.running or is_gone(self._engine, self._container, state.pid)

        try:
            return self._last is not None or within(seconds, ended)
        except ContainerError:
            return None

    def code(self, side: CommandSide, *, ending: bool, sandbox_ends: bool) -> int:
        """See CommandControl. The engine is asked again until it reports a status."""
        self._code = self._reported(side, ending=ending, sandbox_ends=sandbox_ends)
        return self._code

    def _reported(self, side: CommandSide, *, ending: bool, sandbox_ends: bool) -> int:
        if self._last is not None:
            return -1 if ending else self._checked(self._last.exit_code, side)
        # If the sandbox continues to run, it is worth waiting longer to know whether the command has ended.
        end = time.monotonic() + (self._limits.kill if ending and sandbox_ends else self._limits.status)
        pause = 0.002
        while True:
            state = self._state()
            if not state.running:
                break
            if ending and is_gone(self._engine, self._container, state.pid):
                break
            if not ending and self._is_unread:
                if not sandbox_ends and not terminated(self, self._limits):
                    raise CommandSurvived(container=self._container, command=self._program)
                raise self._unread()
            if time.monotonic() > end:
                self._out_of_patience(ending=ending, sandbox_ends=sandbox_ends)
                break
            time.sleep(pause)
            pause = min(pause * 2, 0.1)
        return -1 if ending else self._checked(state.exit_code, side)

    def _state(self) -> ExecState:
        """Its state, once its stream has ended. Raises EngineGone, and SandboxDied if the engine does not know it."""
        try:
            return self._engine.exec_inspect(self._exec_id)
        except _GONE as exc:
            raise EngineGone(endpoint=self._engine.endpoint, reason="the session's stream broke off") from exc
        except ContainerError as exc:
            if self._is_unread:  # and has ended, and was forgotten
                raise self._unread() from exc
            raise self._died(str(exc)) from exc

    def refused(self, refusal: StartRefusal, spec: ExecSpec) -> bytes | None:
        """What to print in place of the runtime's words, if it has not started the command; None if that ran.

        A command can print the same, as when it runs an engine of its own: then another program or directory is named,
        or its status is another one. The words are the guest's. Raises ExecFailed where those would be an error.
        """
        state = self._engine.exec_inspect(self._exec_id)
        if state.running or state.exit_code not in _NOT_STARTED:
            return None
        detail, named = refusal.said, refusal.named
        if refusal.kind == "directory":
            if spec.workdir not in (None, named):
                return None
            reason = f"{ExecFailed.NO_DIRECTORY} {named}: {refusal.why[:1].upper()}{refusal.why[1:]}"
        elif refusal.kind == "other":
            reason = ExecFailed.NOT_STARTED
        elif named not in ("", self._program):
            return None
        else:
            missing = "no such file or directory" if "/" in self._program else "not found"
            why = missing if refusal.kind == "program" else "permission denied"
            return os.fsencode(f"{self._program}: {why}\n")
        raise ExecFailed(container=self._container, command=self._program, reason=reason, detail=detail)

    @property
    def ended(self) -> Ended | None:
        """See CommandControl. The sandbox's counts can grow by what another command of it does, as with the guest."""
        if self._counts is None or self._code is None:
            return None
        kills, forks = (max(0, now - before) for now, before in zip(self._counts.read(), self._before, strict=True))
        killed = self._code == _KILLED and kills > 0
        return Ended(
            self._code,
            None,
            timed_out=False,
            out_of_memory=killed,
            cause="out_of_memory" if killed else "",
            seconds=0.0,
            memory_kills=kills,
            forks_refused=forks,
        )

    def output_ended(self) -> None:
        """See CommandControl. The engine forgets the status some time after the end, so it is asked for it now."""
        with contextlib.suppress(ContainerError):
            for pause in _LOOKS:
                state = self._engine.exec_inspect(self._exec_id)
                if not state.running:
                    self._last = state
                    return
                time.sleep(pause)

    def hand_over(self) -> LeftCommand:
        """See CommandControl. The engine's monitor continues to read its output (measured)."""
        return LeftCommand(exec_id=self._exec_id)

    def close(self) -> None:
        """See CommandControl. Nothing is open between two requests."""

    def explained(self, error: Exception) -> Exception:
        hint = self._engine.words.needs
        return HealthCheckFailed(endpoint=self._engine.endpoint, reason=str(error), engine_hint=hint)

    def _checked(self, code: int | None, side: CommandSide) -> int:
        if code in (None, _KILLED) or side.broken:
            check_alive(self._engine, self._container, self._witness.now(), self._witness)
        if code is None:
            reason = "the engine reported its end without a status"
            raise ExecFailed(container=self._container, command=self._program, reason=reason)
        if self._is_unread:
            raise self._unread()
        if side.truncated:  # some of its output is lost, whatever its status
            raise EngineGone(endpoint=self._engine.endpoint, reason="the session's stream broke off in its output")
        return code

    @property
    def _is_unread(self) -> bool:
        """Whether the engine's service has ended, and with it the command's streams, which another one has not."""
        return self._engine.restarts != self._restarts

    def _unread(self) -> EngineGone:
        reason = "its service ended, and with it the command's streams"
        return EngineGone(endpoint=self._engine.endpoint, reason=reason)

    def _out_of_patience(self, *, ending: bool, sandbox_ends: bool) -> None:
        """The engine still reports the command as running, although its stream has ended or it was killed."""
        if not ending and terminated(self, self._limits):
            reason = "its stream ended and the engine never reported a status"
            raise ExecFailed(container=self._container, command=self._program, reason=reason)
        if not ending or not sandbox_ends:
            raise CommandSurvived(container=self._container, command=self._program)

    def _died(self, reason: str) -> SandboxDied:
        if cause := self._witness.now():
            return SandboxDied.seen(self._container, cause, None)
        return SandboxDied(container=self._container, reason=reason)


def end_left_command(
    engine: Engine,
    container: str,
    exec_id: str,
    limits: TimeLimits = TIME_LIMITS,
    *,
    start: float = 10.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """End a command whose podbot is gone: TERM, then KILL.

    ``start``: for how many seconds a start that is not over may last; Podman does not distinguish a command that has
    not been started from one that has ended. Raises CommandSurvived, and ContainerError subclasses if the engine does
    not answer; then it may be called again.
    """
    until = clock() + start
    while clock() <= until:
        try:
            state = engine.exec_inspect(exec_id)
        except RequestFailed as exc:
            if exc.status == 404:
                return
            raise
        if state.running:
            if not terminated(EngineCommand(engine, container, exec_id, "", limits), limits):
                raise CommandSurvived(container=container, command="a command of a killed podbot")
            return
        sleep(_LOOKS[-1])


def check_alive(engine: Engine, container: str, cause: str, witness: Witness) -> None:
    """Raise SandboxDied unless ``container`` runs. A status of 137: KILL ended the command or the whole sandbox.

    ``cause``: what ``witness`` said before the engine was asked, which takes longer than a podbot may hold its locks.
    """
    try:
        state = engine.inspect(container).state
    except ContainerNotFound:
        raise SandboxDied.seen(container, cause or witness.later(), None) from None
    if state != "running":
        raise SandboxDied.seen(container, cause or witness.later(), state)

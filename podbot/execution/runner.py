"""The one exec path: start, relay, signal, learn the status."""

from __future__ import annotations

import contextlib
import errno
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podbot.engine.port import Engine, Size
from podbot.errors import (
    CommandSurvived,
    ConnectionFailed,
    ContainerError,
    ContainerNotFound,
    DiskFull,
    EngineGone,
    ExecFailed,
    HealthCheckFailed,
    OutputClosed,
    PodbotError,
    SandboxDied,
    SocketNotFound,
)
from podbot.execution.codes import BY_SIGNAL
from podbot.execution.group import is_gone, signal_group
from podbot.launch.command import ExecSpec
from podbot.streams.channel import Filter
from podbot.streams.demux import BadFrame
from podbot.streams.relay import Relay, SinkClosed
from podbot.streams.sides import StreamHelperLost
from podbot.streams.wake import Interrupted, Wake

if TYPE_CHECKING:
    from podbot.execution.end_policy import EndPolicy
    from podbot.execution.start import Started
    from podbot.execution.stopped import Group
    from podbot.execution.suspension import Job, Suspension
    from podbot.streams.screen import ScreenModes

TERM_GRACE = 2.0  # seconds between TERM and KILL for a command's group
KILL_GRACE = 2.0  # seconds after KILL in which its last output is still relayed
STATUS_PATIENCE = 10.0  # seconds for the engine to report the end of a stream that ended
_LOST = "the process that carried its input and output ended, so it was ended as well; some of its output is lost"
_GONE = (EngineGone, ConnectionFailed, SocketNotFound)


@dataclass(frozen=True)
class ExecIO:
    """The caller's descriptors; podbot never closes them. None: no input, or discard the output.

    For a command with a terminal: ``size`` gives its size, and ``terminal`` is entered while the
    command has it (raw mode). ``job``: podbot as a job of the shell that it was started by, when it is one.
    ``screen`` is fed with what the command prints.
    """

    stdin: int | None = 0
    stdout: int | None = 1
    stderr: int | None = 2
    size: Callable[[], Size | None] = lambda: None
    terminal: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    job: Job | None = None
    screen: ScreenModes | None = None


@dataclass(frozen=True)
class ExecStatus:
    """How a command ended. ``code`` is its own status; ``signal`` is set when podbot was told to end it."""

    code: int
    signal: int | None = None


def run_exec(
    engine: Engine,
    container: str,
    spec: ExecSpec,
    io: ExecIO,
    wake: Wake,
    *,
    interrupt_ends: bool = False,
    sandbox_ends: bool = False,
    pipes: str | None = None,
) -> ExecStatus:
    """Run ``spec`` in ``container`` with the caller's streams until it ends.

    A signal posted to ``wake`` reaches the command: INT is passed on, TERM and HUP end it (TERM, 2 s,
    KILL), as does INT with ``interrupt_ends``. Whatever makes this function raise after the start ends the command too.

    ``pipes``: the session's directory of named pipes on this host, if it has one; then stdin and stdout go by those.

    ``sandbox_ends``: the caller ends the container afterwards, and so whatever of the command is left.

    Raises: ContainerNotFound, ExecFailed, EngineGone, EngineStorageFull, SandboxDied, OutputClosed, DiskFull, and
    CommandSurvived when it was to end the command and could not.
    """
    from podbot.execution.end_policy import EndBySignal  # here, for `podbot ps` runs nothing

    policy = EndBySignal(interrupt_ends=interrupt_ends)
    session = ExecSession(
        engine, container, spec=spec, io=io, wake=wake, policy=policy, sandbox_ends=sandbox_ends, pipes=pipes
    )
    return session.run()


def _output_error(closed: SinkClosed) -> PodbotError:
    if closed.error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(path=f"podbot's {closed.stream}", operation="write the command's output; it was ended")
    return OutputClosed(stream=closed.stream, effect=", so the command inside was ended")


class ExecSession:
    """One exec: what is sent to it, and its status. ``policy``: how it is brought to an end. ``through``: see Relay."""

    def __init__(
        self,
        engine: Engine,
        container: str,
        *,
        spec: ExecSpec,
        io: ExecIO,
        wake: Wake,
        policy: EndPolicy,
        through: Filter | None = None,
        sandbox_ends: bool = False,
        pipes: str | None = None,
    ) -> None:
        self.wake = wake
        self.exec_id = ""
        self.killed = False
        self._engine = engine
        self._container = container
        self._spec = spec
        self._io = io
        self._policy = policy
        self._through = through
        self._pipes = pipes
        self._sandbox_ends = sandbox_ends
        self.suspension = self._suspending() if spec.tty else None

    def run(self) -> ExecStatus:
        """See :func:`run_exec`."""
        spec, io = self._spec, self._io
        with self.wake.listening():
            try:
                started = self._start()
                with contextlib.closing(started), io.terminal() if spec.tty else contextlib.nullcontext():
                    relay = Relay(
                        started.side,
                        stdin=io.stdin if spec.stdin else None,
                        stdout=io.stdout,
                        stderr=io.stderr,
                        wake=self.wake.fileno(),
                        through=self._through,
                        watch=self.suspension,
                    )
                    with contextlib.closing(relay):
                        self._policy.relay(self, relay)
            except Interrupted as exc:  # before the command ran
                return ExecStatus(code=BY_SIGNAL + exc.number, signal=exc.number)
            except BadFrame as exc:
                self.end_now()
                hint = self._engine.words.needs
                raise HealthCheckFailed(endpoint=self._engine.endpoint, reason=str(exc), engine_hint=hint) from exc
            except SinkClosed as exc:
                self._end_surely(exc)
                raise _output_error(exc) from exc
            except StreamHelperLost as exc:
                self._end_surely(exc)
                if self._policy.ending is not None:
                    return ExecStatus(code=BY_SIGNAL + self._policy.ending, signal=self._policy.ending)
                raise ExecFailed(container=self._container, command=spec.command[0], reason=_LOST) from exc
            except BaseException:
                self.end_now()
                raise
            status = self._left() if self._policy.left_running else self._status(relay)
            self._policy.check()
            return status

    def _start(self) -> Started:
        from podbot.execution.start import start  # here, for `podbot ps` has nothing to start

        if self._pipes is not None:
            from podbot.execution.streams.piped_start import PipedStart

            piped = PipedStart(self._engine, self._container, self._spec, self._pipes)
            try:
                started = piped.run(self.wake)
            finally:
                self.exec_id = piped.exec_id
            if started is not None:
                return started
            if piped.exec_id:
                self.end_now()  # a shell that never said its word
                self.wake.check()
        size = self._io.size() if self._spec.tty else None
        started = start(self._engine, self._container, self._spec, size)
        self.exec_id = started.exec_id
        return started

    def _suspending(self) -> Suspension:
        from podbot.execution.suspension import Suspension  # here, for few commands have a terminal

        return Suspension(
            group=self._group,
            signal_group=self.signal,
            send_size=self._send_size,
            job=self._io.job,
            screen=self._io.screen,
        )

    def _send_size(self, less: int) -> None:
        """The terminal's size, with ``less`` rows."""
        size = self._io.size()
        if size is not None:
            with contextlib.suppress(ContainerError):  # the next size, or none, will do
                self._engine.exec_resize(self.exec_id, Size(size.columns, max(1, size.rows - less)))

    def _group(self) -> Group | None:
        """The command's processes, where they are this host's; asked after a Ctrl-Z only."""
        from podbot.execution.stopped import group_of

        if not self._engine.local:
            return None
        try:
            leader = self._engine.exec_inspect(self.exec_id).pid
            return group_of(leader, self._engine.inspect(self._container).id) if leader > 0 else None
        except ContainerError:
            return None

    def signal(self, number: int) -> bool:
        """To the command's whole group; false when nobody could be signalled."""
        return signal_group(self._engine, self._container, self.exec_id, number)

    def kill(self) -> None:
        """The last word."""
        self.killed = True
        self.signal(signal.SIGKILL)

    def end_now(self) -> bool:
        """TERM, a moment, KILL; for the ways out that leave the relay behind. False: it may still run."""
        if not self.exec_id or self._policy.left_running:
            return True
        self.signal(signal.SIGTERM)
        ended = self._ends_within(TERM_GRACE)
        if ended is False:
            self.kill()
            ended = self._ends_within(KILL_GRACE)
        return bool(ended)

    def _end_surely(self, cause: Exception) -> None:
        if not self.end_now() and not self._sandbox_ends:
            raise self._survived() from cause

    def _survived(self) -> CommandSurvived:
        return CommandSurvived(container=self._container, command=self._spec.command[0])

    def _ends_within(self, seconds: float) -> bool | None:
        """None: the engine does not say, and asking once more may take as long again."""
        end = time.monotonic() + seconds
        with contextlib.suppress(ContainerError):
            while True:
                state = self._engine.exec_inspect(self.exec_id)
                if not state.running or is_gone(self._engine, self._container, state.pid):
                    return True
                if time.monotonic() > end:
                    return False
                time.sleep(0.05)
        return None

    def is_running(self) -> bool:
        """The engine's word; false when it has none."""
        try:
            return self._engine.exec_inspect(self.exec_id).running
        except ContainerError:
            return False

    def _left(self) -> ExecStatus:
        """The status of a command that was left running is not known: 0, or 128 and the signal that podbot got."""
        number = self._policy.ending
        return ExecStatus(0) if number is None else ExecStatus(BY_SIGNAL + number, number)

    def _status(self, relay: Relay) -> ExecStatus:
        """The engine's word on how the command ended, asked until it has one."""
        command = self._spec.command[0]
        # Where the sandbox goes on, whether the command has ended is worth more patience.
        patience = KILL_GRACE if self._policy.ending is not None and self._sandbox_ends else STATUS_PATIENCE
        end = time.monotonic() + patience
        pause = 0.002
        while True:
            try:
                state = self._engine.exec_inspect(self.exec_id)
            except _GONE as exc:
                raise EngineGone(endpoint=self._engine.endpoint, reason="the session's stream broke off") from exc
            except ContainerError as exc:
                raise self._died(str(exc)) from exc
            if not state.running:
                break
            if self._policy.ending is not None and is_gone(self._engine, self._container, state.pid):
                break
            if time.monotonic() > end:
                self._out_of_patience()
                break
            time.sleep(pause)
            pause = min(pause * 2, 0.1)
        if self._policy.ending is not None:
            return ExecStatus(code=BY_SIGNAL + self._policy.ending, signal=self._policy.ending)
        self._check_alive(state.exit_code, broken=relay.broken)
        if state.exit_code is None:
            reason = "the engine reported its end without a status"
            raise ExecFailed(container=self._container, command=command, reason=reason)
        if relay.truncated:  # some of what it printed is lost, whatever its status
            raise EngineGone(endpoint=self._engine.endpoint, reason="the session's stream broke off in its output")
        return ExecStatus(code=state.exit_code)

    def _out_of_patience(self) -> None:
        """The engine calls it running still, though its stream has ended or it was killed."""
        if self._policy.ending is None and self.end_now():
            reason = "its stream ended and the engine never reported a status"
            raise ExecFailed(container=self._container, command=self._spec.command[0], reason=reason)
        if self._policy.ending is None or not self._sandbox_ends:
            raise self._survived()

    def _check_alive(self, code: int | None, *, broken: bool) -> None:
        """137 may be the command's own end by KILL, or that of the whole sandbox under it."""
        if code not in (None, 137) and not broken:
            return
        try:
            state = self._engine.inspect(self._container).state
        except ContainerNotFound:
            raise self._died("the container was removed") from None
        if state != "running":
            raise self._died(f"the container is {state}")

    def _died(self, reason: str) -> SandboxDied:
        return SandboxDied(container=self._container, reason=reason)

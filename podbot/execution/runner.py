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
from podbot.execution.group import signal_group
from podbot.launch.command import ExecSpec
from podbot.streams.channel import Filter
from podbot.streams.demux import BadFrame
from podbot.streams.relay import Relay, SinkClosed
from podbot.streams.sides import WayLost
from podbot.streams.wake import Interrupted, Resize, Wake

if TYPE_CHECKING:
    from podbot.execution.start import Started

TERM_GRACE = 2.0  # seconds between TERM and KILL for a command's group
KILL_GRACE = 2.0  # seconds after KILL in which its last output is still relayed
STATUS_PATIENCE = 10.0  # seconds for the engine to report the end of a stream that ended
_LOST = "the process that carried its input and output ended, so it was ended as well; some of its output is lost"
_GONE = (EngineGone, ConnectionFailed, SocketNotFound)


@dataclass(frozen=True)
class ExecIO:
    """The caller's descriptors; podbot never closes them. None: no input, or discard the output.

    For a command with a terminal: ``size`` gives its size, and ``terminal`` is entered while the
    command has it (raw mode).
    """

    stdin: int | None = 0
    stdout: int | None = 1
    stderr: int | None = 2
    size: Callable[[], Size | None] = lambda: None
    terminal: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext


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
    pipes: str | None = None,
) -> ExecStatus:
    """Run ``spec`` in ``container`` with the caller's streams until it ends.

    A signal posted to ``wake`` reaches the command: INT is passed on, TERM and HUP end it (TERM, 2 s,
    KILL), as does INT with ``interrupt_ends``. Whatever makes this function raise after the start ends the command too.

    ``pipes``: the session's directory of named pipes on this host, if it has one; then stdin and stdout go by those.

    Raises: ContainerNotFound, ExecFailed, EngineGone, SandboxDied, OutputClosed, DiskFull.
    """
    session = ExecSession(engine, container, spec=spec, io=io, wake=wake, interrupt_ends=interrupt_ends, pipes=pipes)
    return session.run()


def _output_error(closed: SinkClosed) -> PodbotError:
    if closed.error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(path=f"podbot's {closed.stream}", operation="write the command's output; it was ended")
    return OutputClosed(stream=closed.stream, effect=", so the command inside was ended")


class ExecSession:
    """One exec: what is sent to it, and how it is brought to an end. ``through``: see Relay."""

    def __init__(
        self,
        engine: Engine,
        container: str,
        *,
        spec: ExecSpec,
        io: ExecIO,
        wake: Wake,
        through: Filter | None = None,
        interrupt_ends: bool = False,
        pipes: str | None = None,
    ) -> None:
        self._engine = engine
        self._container = container
        self._exec_id = ""
        self._spec = spec
        self._io = io
        self._wake = wake
        self._through = through
        self._pipes = pipes
        self._passed_on = () if interrupt_ends else (signal.SIGINT,)
        self._ending: int | None = None  # the signal that ends the session
        self._killed = False

    def run(self) -> ExecStatus:
        """See :func:`run_exec`."""
        spec, io = self._spec, self._io
        with self._wake.listening():
            try:
                started = self._start()
                with contextlib.closing(started), io.terminal() if spec.tty else contextlib.nullcontext():
                    relay = Relay(
                        started.side,
                        stdin=io.stdin if spec.stdin else None,
                        stdout=io.stdout,
                        stderr=io.stderr,
                        wake=self._wake.fileno(),
                        through=self._through,
                    )
                    with contextlib.closing(relay):
                        self.relay_until_end(relay)
            except Interrupted as exc:  # before the command ran
                return ExecStatus(code=BY_SIGNAL + exc.number, signal=exc.number)
            except BadFrame as exc:
                self.end_now()
                raise HealthCheckFailed(endpoint=self._engine.endpoint, reason=str(exc)) from exc
            except SinkClosed as exc:
                self.end_now()
                raise _output_error(exc) from exc
            except WayLost as exc:
                self.end_now()
                if self._ending is not None:
                    return ExecStatus(code=BY_SIGNAL + self._ending, signal=self._ending)
                raise ExecFailed(container=self._container, command=spec.command[0], reason=_LOST) from exc
            except BaseException:
                self.end_now()
                raise
            return self.status(relay)

    def _start(self) -> Started:
        from podbot.execution.start import PipedStart, start  # here, for `podbot ps` has nothing to start

        if self._pipes is not None:
            piped = PipedStart(self._engine, self._container, self._spec, self._pipes)
            try:
                started = piped.run(self._wake)
            finally:
                self._exec_id = piped.exec_id
            if started is not None:
                return started
            if piped.exec_id:
                self.end_now()  # a shell that never said its word
                self._wake.check()
        size = self._io.size() if self._spec.tty else None
        started = start(self._engine, self._container, self._spec, size)
        self._exec_id = started.exec_id
        return started

    def relay_until_end(self, relay: Relay) -> None:
        """Relay, and act on what is posted meanwhile, until there is nothing more to relay."""
        deadline: float | None = None
        while True:
            outcome = relay.run(deadline)
            if outcome == "ended":
                return
            if outcome == "woken":
                if self._handle_messages() and deadline is None:
                    deadline = time.monotonic() + TERM_GRACE
            elif self._killed:
                return  # killed, and whoever reads our output does not: leave the rest
            else:
                self.kill()
                deadline = time.monotonic() + KILL_GRACE

    def _handle_messages(self) -> bool:
        """Act on what was posted; true when the session is to end now."""
        begun = False
        for message in self._wake.take():
            if isinstance(message, Resize):
                self._resize()
            elif self._ending is None:
                self.signal(message.number)
                if message.number not in self._passed_on:
                    self._ending = message.number
                    begun = True
        return begun

    def _resize(self) -> None:
        size = self._io.size()
        if self._spec.tty and size is not None:
            with contextlib.suppress(ContainerError):  # the next size, or none, will do
                self._engine.exec_resize(self._exec_id, size)

    def signal(self, number: int) -> bool:
        """To the command's whole group; false when nobody could be signalled."""
        return signal_group(self._engine, self._container, self._exec_id, number)

    def kill(self) -> None:
        """The last word."""
        self._killed = True
        self.signal(signal.SIGKILL)

    def end_now(self) -> None:
        """TERM, a moment, KILL; for the ways out that leave the relay behind."""
        if not self._exec_id or not self.signal(signal.SIGTERM):
            return
        end = time.monotonic() + TERM_GRACE
        with contextlib.suppress(ContainerError):
            while time.monotonic() < end:
                if not self._engine.exec_inspect(self._exec_id).running:
                    return
                time.sleep(0.05)
        self.kill()

    def status(self, relay: Relay) -> ExecStatus:
        """The engine's word on how the command ended, asked until it has one."""
        command = self._spec.command[0]
        patience = STATUS_PATIENCE if self._ending is None else KILL_GRACE
        end = time.monotonic() + patience
        pause = 0.002
        while True:
            try:
                state = self._engine.exec_inspect(self._exec_id)
            except _GONE as exc:
                raise EngineGone(endpoint=self._engine.endpoint, reason="the session's stream broke off") from exc
            except ContainerError as exc:
                raise self._died(str(exc)) from exc
            if not state.running:
                break
            if time.monotonic() > end:
                if self._ending is not None:
                    break
                self.end_now()
                reason = "its stream ended and the engine never reported a status"
                raise ExecFailed(container=self._container, command=command, reason=reason)
            time.sleep(pause)
            pause = min(pause * 2, 0.1)
        if self._ending is not None:
            return ExecStatus(code=BY_SIGNAL + self._ending, signal=self._ending)
        self._check_alive(state.exit_code, broken=relay.broken)
        if state.exit_code is None:
            reason = "the engine reported its end without a status"
            raise ExecFailed(container=self._container, command=command, reason=reason)
        if relay.truncated:  # some of what it printed is lost, whatever its status
            raise EngineGone(endpoint=self._engine.endpoint, reason="the session's stream broke off in its output")
        return ExecStatus(code=state.exit_code)

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

"""The one exec path: start a command, relay its streams, signal it, get its status."""

from __future__ import annotations

import contextlib
import errno
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from podbot.engine.port import Engine, Size
from podbot.errors import CommandSurvived, DiskFull, OutputClosed, PodbotError
from podbot.exec_spec import ExecSpec
from podbot.execution.codes import BY_SIGNAL, NOT_A_CAUSE
from podbot.execution.command_control import NOTHING_SEEN, CommandStart, LeftCommand, Started, Witness, terminated
from podbot.execution.time_limits import TIME_LIMITS, TimeLimits
from podbot.frozen import Frozen, replace
from podbot.streams.demux import BadFrame
from podbot.streams.relay import Relay, SinkClosed
from podbot.streams.sides import StreamsLost
from podbot.streams.wake import Interrupted, Signal, Wake

if TYPE_CHECKING:
    from podbot.execution.end_policy import EndPolicy
    from podbot.execution.stopped import Group
    from podbot.execution.suspension import Job, Suspension
    from podbot.guest.messages import Cause
    from podbot.streams.protocol_channel import Filter
    from podbot.streams.screen import ScreenModes


class ExecIO(Frozen):
    """The caller's descriptors; podbot never closes them. None means no input, or discarded output.

    For a command with a terminal: ``size`` returns its size, and the context manager ``terminal`` is entered while
    the command uses it (raw mode). ``job``: podbot as a job of the shell that started it, if it is one. ``screen``
    gets the command's output; ``record``, too, also without a terminal. ``shared``: other programs may read this stdin
    afterwards, as in a shell's loop, so of its first bytes only those are taken that the command reads; for a command
    of the engine's, or with a terminal, that is not known. ``on_term``: called with the TERM that the command got, if
    that is not the first of its ``term_choices``, and whether its guest looked for their entries.
    """

    stdin: int | None = 0
    stdout: int | None = 1
    stderr: int | None = 2
    size: Callable[[], Size | None] = lambda: None
    terminal: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    job: Job | None = None
    screen: ScreenModes | None = None
    record: Callable[[bytes | memoryview], object] | None = None
    shared: bool = True
    on_term: Callable[[str, bool], object] = lambda _term, _looked: None


class ExecStatus(Frozen):
    """How a command ended. ``code`` is its own status; ``signal`` is set when a signal asked podbot to end it.

    ``out_of_memory``: it was killed because the sandbox's memory was used up. ``memory_kills``: how many of the
    sandbox's processes the kernel killed for that meanwhile; ``forks_refused``: how many new ones it refused because of
    the limit of processes. All three are known of a command that ran to its end, if the guest ran it or the sandbox has
    a control group on this host. ``disk_full``: it failed, and then a file system was full that it could write to; of
    the workspace's, and of the sandbox's own without a guest, only the callers know that look there.
    ``killed``: the signal that ended it, and ``cause``: why it ended by something else than itself; both are known of
    a command that the guest ran, unless podbot was asked to end it.
    """

    code: int
    signal: int | None = None
    out_of_memory: bool = False
    memory_kills: int = 0
    forks_refused: int = 0
    disk_full: bool = False
    killed: int | None = None
    cause: Cause = ""

    @property
    def failed(self) -> bool:
        """Whether it started, and ended by itself with another status than 0: a limit may be why."""
        return self.signal is None and self.code not in NOT_A_CAUSE


def run_exec(
    engine: Engine,
    container: str,
    spec: ExecSpec,
    io: ExecIO,
    wake: Wake,
    *,
    interrupt_ends: bool = False,
    sandbox_ends: bool = False,
    guest: str | None = None,
    limits: TimeLimits = TIME_LIMITS,
    witness: Witness = NOTHING_SEEN,
    created: Callable[[str], object] | None = None,
) -> ExecStatus:
    """Run ``spec`` in ``container`` with the caller's streams until it ends.

    A signal posted to ``wake`` reaches the command: INT is passed on, TERM and HUP terminate it (TERM, 2 s, KILL),
    and INT too with ``interrupt_ends``. If this function raises after the start, the command is terminated too.

    ``guest``: the directory of its guest's socket on this host, if it has one; the guest then runs what it can.

    ``sandbox_ends``: the caller ends the container afterwards, and with it any remaining process of the command.
    ``witness``: see Witness. ``created`` gets the engine's id of the command before it starts, if the engine runs it.

    Raises: ContainerNotFound, ExecFailed, EngineGone, EngineStorageFull, SandboxDied, ChannelLost, OutputClosed,
    DiskFull, and CommandSurvived when the command could not be terminated.
    """
    from podbot.execution.end_policy import EndBySignal  # imported here: `podbot ps` runs nothing
    from podbot.execution.engine_start import unwatched
    from podbot.execution.sandbox_start import SandboxStart

    policy = EndBySignal(interrupt_ends=interrupt_ends, limits=limits)
    discard = io.stdout is None and io.stderr is None
    created = created or unwatched
    start = SandboxStart(engine, container, guest=guest, discard=discard, witness=witness, created=created)
    return ExecSession(start, spec=spec, io=io, wake=wake, policy=policy, sandbox_ends=sandbox_ends).run()


def run_in_guest(
    directory: str,
    container: str,
    spec: ExecSpec,
    io: ExecIO,
    wake: Wake,
    *,
    connect: Callable[[], Engine],
    limits: TimeLimits = TIME_LIMITS,
    witness: Witness = NOTHING_SEEN,
) -> ExecStatus | None:
    """As :func:`run_exec`, by the guest whose socket is in ``directory``, without the engine.

    None: nothing was started, because the guest cannot run such a command or does not answer. ``connect``: returns the
    engine that has the container, each time the same; called only after an error, or for Ctrl-Z. ``witness``: see
    Witness. Raises SandboxDied, ChannelLost, OutputClosed, DiskFull and CommandSurvived.
    """
    from podbot.execution.end_policy import EndBySignal
    from podbot.execution.guest_start import GuestStart, NotTaken, can_run

    if not can_run(spec):
        return None
    discard = io.stdout is None and io.stderr is None
    start = GuestStart(directory, container, connect, discard=discard, witness=witness)
    policy = EndBySignal(limits=limits)
    try:
        return ExecSession(start, spec=spec, io=io, wake=wake, policy=policy).run()
    except NotTaken:
        return None


def _output_error(closed: SinkClosed) -> PodbotError:
    if closed.error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(path=f"podbot's {closed.stream}", operation="write the command's output; it was terminated")
    return OutputClosed(stream=closed.stream, effect=", so the command inside was terminated")


class ExecSession:
    """One run of a command, from its start to its status.

    ``start``: how it is started. ``policy`` decides how it ends. ``through``: see Relay. ``sandbox_ends``: see
    ``run_exec``.
    """

    def __init__(
        self,
        start: CommandStart,
        *,
        spec: ExecSpec,
        io: ExecIO,
        wake: Wake,
        policy: EndPolicy,
        through: Filter | None = None,
        sandbox_ends: bool = False,
    ) -> None:
        self.wake = wake
        self.killed = False
        self._start = start
        self._spec = spec
        self._io = io
        self._policy = policy
        self._through = through
        self._sandbox_ends = sandbox_ends
        self.suspension = self._suspending() if spec.tty else None

    def hand_over(self) -> LeftCommand:
        """What another process needs to end the command."""
        return self._start.control.hand_over() if self._start.control is not None else LeftCommand()

    def run(self) -> ExecStatus:
        """See :func:`run_exec`."""
        with self.wake.listening():
            try:
                return self._run()
            finally:
                if self._start.control is not None:
                    self._start.control.close()

    def _run(self) -> ExecStatus:
        spec, io = self._spec, self._io
        try:
            started = self._start.begin(spec, io.size, self.wake, self._policy.limits)
            with contextlib.closing(started), self._on_terminal(started):
                relay = Relay(
                    started.side,
                    stdin=io.stdin if spec.stdin else None,
                    stdout=io.stdout,
                    stderr=io.stderr,
                    wake=self.wake.fileno(),
                    shared=io.shared and not spec.tty and self._through is None,
                    through=self._through,
                    watch=self.suspension,
                    record=io.record,
                    output_ended=started.control.output_ended,
                    hung_up=self._hung_up,
                )
                with contextlib.closing(relay):
                    self._policy.relay(self, relay)
        except Interrupted as exc:  # before the command ran
            return ExecStatus(code=BY_SIGNAL + exc.number, signal=exc.number)
        except SinkClosed as exc:
            self._end_surely(exc)
            raise _output_error(exc) from exc
        except (BadFrame, StreamsLost) as exc:
            return self._broken(exc)
        except BaseException:
            self.end_now()
            raise
        status = self._left() if self._policy.left_running else self._status(started)
        self._policy.check()
        return status

    def _on_terminal(self, started: Started) -> contextlib.AbstractContextManager[None]:
        """Tell the TERM as long as the terminal is not raw yet, in which a message would tear the command's screen."""
        spec = self._spec
        if not spec.tty:
            return contextlib.nullcontext()
        inside = started.term or spec.env.get("TERM", "")
        if spec.term_choices and inside != spec.term_choices[0]:
            self._io.on_term(inside, bool(started.term))
        return self._io.terminal()

    def _hung_up(self) -> None:
        """The terminal is gone. The kernel sends HUP only to the session that has it, and none under ``su -``."""
        if self._spec.tty and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            self.wake.post(Signal(signal.SIGHUP))

    def _broken(self, error: BadFrame | StreamsLost) -> ExecStatus:
        """The streams ended before the command. Raises the error that says why, unless podbot was to end it anyway."""
        control = self._start.control
        if isinstance(error, StreamsLost):
            self._end_surely(error)
            if self._policy.ending is not None:
                return ExecStatus(code=BY_SIGNAL + self._policy.ending, signal=self._policy.ending)
        else:
            self.end_now()
        raise (control.explained(error) if control is not None else error) from error

    def _suspending(self) -> Suspension:
        from podbot.execution.suspension import Suspension  # imported here: few commands have a terminal

        return Suspension(
            group=self._group,
            signal_group=self.signal,
            send_size=self._send_size,
            job=self._io.job,
            screen=self._io.screen,
            looks=self._policy.limits.looks,
        )

    def _send_size(self, less: int) -> None:
        """Send the terminal's size to the command, reduced by ``less`` rows."""
        size, control = self._io.size(), self._start.control
        if size is not None and control is not None:
            control.resize(Size(size.columns, max(1, size.rows - less)))

    def _group(self) -> Group | None:
        """The command's processes if they are visible on this host; looked up only after Ctrl-Z."""
        return self._start.control.group() if self._start.control is not None else None

    def signal(self, number: int) -> bool:
        """Send a signal to the command's whole group; returns false when that was not possible."""
        return self._start.control is not None and self._start.control.signal(number)

    def terminate(self) -> bool:
        """Send TERM to all its processes that can be found; returns as :meth:`signal` does."""
        return self._start.control is not None and self._start.control.terminate()

    def kill(self) -> None:
        """Send KILL, and remember that."""
        self.killed = True
        self.signal(signal.SIGKILL)

    def end_now(self) -> bool:
        """Terminate the command when the relay no longer runs. Returns false if it may still be running."""
        if self._start.control is None or self._policy.left_running:
            return True
        return terminated(self._start.control, self._policy.limits)

    def _end_surely(self, cause: Exception) -> None:
        if not self.end_now() and not self._sandbox_ends:
            raise CommandSurvived(container=self._start.container, command=self._spec.command[0]) from cause

    def is_running(self) -> bool:
        """Whether the command is known to run; false if nothing answers."""
        return self._start.control is not None and self._start.control.is_running()

    def _left(self) -> ExecStatus:
        """The status for a command that was left running: 0, or 128 plus the signal that podbot received."""
        number = self._policy.ending
        return ExecStatus(0) if number is None else ExecStatus(BY_SIGNAL + number, number)

    def _status(self, started: Started) -> ExecStatus:
        ending = self._policy.ending
        code = started.control.code(started.side, ending=ending is not None, sandbox_ends=self._sandbox_ends)
        status = ExecStatus(code) if ending is None else ExecStatus(BY_SIGNAL + ending, ending)
        if (ended := started.control.ended) is None:
            return status
        return replace(
            status,
            out_of_memory=ended.out_of_memory and ending is None,
            memory_kills=ended.memory_kills,
            forks_refused=ended.forks_refused,
            disk_full=ended.disk_full and ending is None,
            killed=ended.signal if ending is None else None,
            cause=ended.cause if ending is None else "",
        )

"""Starting a command by the guest of its sandbox, without the engine."""

from __future__ import annotations

import select
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from podbot.errors import (
    ChannelLost,
    CommandRefused,
    CommandSurvived,
    ContainerError,
    ExecFailed,
    NoGuest,
    SandboxDied,
)
from podbot.exec_spec import ExecSpec, is_argument, is_env_name
from podbot.execution.command_control import NOTHING_SEEN, CommandControl, LeftCommand, Started, Witness
from podbot.guest.link import PATIENCE, Patience
from podbot.guest.messages import Ended, GuestCommand
from podbot.guest.polled_command import PolledCommand
from podbot.guest.reach import dial
from podbot.streams.sides import StreamsLost

if TYPE_CHECKING:
    from podbot.engine.port import Engine, Size
    from podbot.execution.stopped import Group
    from podbot.execution.time_limits import TimeLimits
    from podbot.streams.sides import CommandSide
    from podbot.streams.wake import Wake

Connect = Callable[[], "Engine"]
_SIZE = (80, 24)  # columns and rows of a terminal whose size is not known
_LOOK, _LONGEST_LOOK = 0.05, 0.4  # seconds between looks at the state of a container that is ending


class NotTaken(Exception):
    """The guest did not start the command; nothing was started."""


def can_run(spec: ExecSpec) -> bool:
    """Whether a guest can run ``spec``; the engine runs the others, or explains why it cannot."""
    words = (*spec.command, *spec.env.values(), *spec.term_choices, spec.workdir or "", spec.user or "")
    return (
        (spec.workdir is None or spec.workdir.startswith("/"))
        and bool(spec.command[0])
        and all(map(is_argument, words))
        and all(map(is_env_name, spec.env))
    )


class GuestStart:
    """See ``CommandStart``. ``directory``: of the guest's socket. ``discard``: the command's output is not read.

    ``connect``: returns the engine that has the container; called for what the guest does not know. ``witness``: see
    Witness.
    """

    def __init__(
        self, directory: str, container: str, connect: Connect, *, discard: bool, witness: Witness = NOTHING_SEEN
    ) -> None:
        self.container = container
        self._witness = witness
        self.control: CommandControl | None = None
        self._directory, self._connect, self._discard = directory, connect, discard

    def begin(self, spec: ExecSpec, size: Callable[[], Size | None], wake: Wake, limits: TimeLimits) -> Started:
        """See CommandStart. Raises NotTaken, ChannelLost and SandboxDied."""
        waiting = _Waiting(wake, limits)
        try:
            # A guest that takes longer is paused or stopped, or the machine is busy; the engine may run commands still.
            link = dial(self._directory, self.container, Patience(greeting=limits.greeting))
            waiting.watch(link.fileno())
            running = PolledCommand.greeted(link, limits.greeting, waiting)
        except NoGuest:
            wake.check()
            raise NotTaken from None
        if spec.user is not None and (running.facts is None or running.facts.uid != 0):
            running.close()
            raise NotTaken  # only root can become another user
        try:
            running.start(self._command(spec, size, running), PATIENCE.answer, waiting)
        except CommandRefused as exc:
            running.close()
            # The engine would read the same files, which may hold it up for ever.
            if spec.user is not None and exc.fields["field"] == "user":
                reason = _no_account(spec.user, exc.fields["reason"])
                raise ExecFailed(container=self.container, command=spec.command[0], reason=reason) from None
            # The engine's runtime would print several lines of its own.
            if exc.fields["field"] == "cwd" and (spec.workdir or "").startswith("/"):
                reason = f"{ExecFailed.NO_DIRECTORY} {spec.workdir}: {exc.fields['reason']}"
                raise ExecFailed(container=self.container, command=spec.command[0], reason=reason) from None
            raise NotTaken from None
        except BaseException as exc:
            running.close()  # the guest then terminates the command if it was started
            if isinstance(exc, ChannelLost):
                wake.check()
                control = self._controlled(running, spec, wake, limits)
                if (death := control.death(limits.kill)) is not None:
                    raise death from exc
            raise
        self.control = self._controlled(running, spec, wake, limits)
        return Started(self.control, running, lambda: None, term=_term(spec, running))

    def _controlled(self, running: PolledCommand, spec: ExecSpec, wake: Wake, limits: TimeLimits) -> GuestControl:
        return GuestControl(
            running, self.container, spec.command[0], self._connect, limits, wake=wake, witness=self._witness
        )

    def _command(self, spec: ExecSpec, size: Callable[[], Size | None], running: PolledCommand) -> GuestCommand:
        tty = None
        if spec.tty:
            found = size()
            tty = (found.columns, found.rows) if found is not None else _SIZE
        return GuestCommand(
            spec.command,
            cwd=spec.workdir or (running.facts.cwd if running.facts is not None else ""),
            env=spec.env,
            stdin="lent" if spec.stdin else "none",
            tty=tty,
            discard=self._discard and not spec.tty,
            user=spec.user or "",
            term_choices=spec.term_choices if spec.tty else (),
        )


def _term(spec: ExecSpec, running: PolledCommand) -> str:
    """See Started. A program that does not exist was not started, and its guest chose nothing."""
    if running.term is None:
        return spec.term_choices[0] if spec.term_choices and not running.pid else ""
    return spec.term_choices[running.term]


def _no_account(user: str, reason: str) -> str:
    """What is wrong with ``user``, which may be USER:GROUP. ``reason``: the guest's."""
    if "no matching entries" not in reason:
        return f"its user {user}: {reason}"
    name, _, group = user.partition(":")
    return (
        f"{ExecFailed.NO_ACCOUNT} group {group}" if "group file" in reason else f"{ExecFailed.NO_ACCOUNT} user {name}"
    )


class _Waiting:
    """Waits for a guest; a signal shortens that, and the relay handles the signal if the answer comes in time."""

    def __init__(self, wake: Wake, limits: TimeLimits) -> None:
        self._after_signal = limits.start_after_signal
        self._until: float | None = None
        self._wake, self._link = wake, -1
        self._poller = select.poll()
        self._poller.register(wake.fileno(), select.POLLIN)

    def watch(self, link: int) -> None:
        """Wait for this descriptor, the connection to the guest."""
        self._link = link
        self._poller.register(link, select.POLLIN)

    def __call__(self, left: float, events: int) -> bool:
        """See Wait."""
        self._poller.modify(self._link, events)
        if self._until is not None:
            left = min(left, self._until - time.monotonic())
        ready = dict(self._poller.poll(max(0.0, left) * 1000))
        if self._wake.fileno() in ready:
            self._poller.unregister(self._wake.fileno())
            if self._wake.has_signal:  # not only a new size of the terminal
                self._until = time.monotonic() + self._after_signal
        return not ready and self._until is not None


class GuestControl:
    """See ``CommandControl``. ``wake``: a signal that is queued there ends a wait for the end of the sandbox."""

    def __init__(
        self,
        running: PolledCommand,
        container: str,
        program: str,
        connect: Connect,
        limits: TimeLimits,
        *,
        wake: Wake | None = None,
        witness: Witness = NOTHING_SEEN,
    ) -> None:
        self._wake, self._witness = wake, witness
        self._running, self._container, self._program = running, container, program
        self._connect, self._limits = connect, limits
        self._sent: set[int] = set()  # the signals that podbot has sent

    def signal(self, number: int) -> bool:
        self._sent.add(number)
        return self._running.signal(number)

    def terminate(self) -> bool:
        """See CommandControl. The guest also finds processes that left the group."""
        self._sent.add(signal.SIGTERM)
        return self._running.terminate()

    def resize(self, size: Size) -> None:
        self._running.resize(size.columns, size.rows)

    def group(self) -> Group | None:
        """See CommandControl. The guest reports a pid of its own namespace; /proc shows which process that is here."""
        from podbot.execution.stopped import group_of, outer_pid

        try:
            found = self._connect().inspect(self._container)
        except ContainerError:
            return None
        leader = outer_pid(found.pid, self._running.pid)
        return group_of(leader, found.id) if leader else None

    def is_running(self) -> bool:
        """See CommandControl. The guest reports the end after the output, so the kernel is asked while that waits."""
        running = self._running
        running.look()
        if running.end is not None or running.lost:
            return False
        from podbot.execution.stopped import is_over

        try:
            return not is_over(self._connect().inspect(self._container).pid, running.pid)
        except ContainerError:
            return True

    def ends_within(self, seconds: float) -> bool | None:
        return self._running.ends_within(seconds)

    def code(self, side: CommandSide, *, ending: bool, sandbox_ends: bool) -> int:
        """See CommandControl."""
        del side
        ended = self.ends_within(self._limits.kill if ending else self._limits.status)
        end = self._running.end
        survived = not ended or (end is not None and end.survivors > 0)
        if survived and not sandbox_ends:
            raise CommandSurvived(container=self._container, command=self._program)
        if ending or not ended:
            return -1
        if end is None:
            raise self.explained(StreamsLost(self._running.lost))
        return self._checked(end)

    @property
    def ended(self) -> Ended | None:
        return self._running.end

    def output_ended(self) -> None:
        """See CommandControl. The guest reports the end at once."""

    def hand_over(self) -> LeftCommand:
        """See CommandControl. The guest would terminate the command if the connection ended."""
        if self._running.end is not None:
            return LeftCommand()
        return LeftCommand(connection=self._running.fileno(), state=self._running.state().described())

    def close(self) -> None:
        self._running.close()

    def explained(self, error: Exception) -> Exception:
        """See CommandControl. A guest ends with its sandbox, or because a process inside ended it."""
        return self.death(self._limits.kill) or ChannelLost(where=self._container, reason=str(error))

    def death(self, seconds: float, cause: str = "") -> SandboxDied | None:
        """The error if the sandbox has ended within ``seconds``; None otherwise. The engine reports the end of a
        sandbox a little later than its processes end. ``cause``: what the witness has said, if it was asked already.

        It is asked before the engine, whose service may have to be started: what shows lasts no longer than the end.
        """
        cause = cause or self._witness.now() or self._witness.later()
        until, pause = time.monotonic() + seconds, _LOOK
        while (death := self._death(cause, NOTHING_SEEN)) is None and time.monotonic() < until:
            if self._wake is not None and self._wake.has_signal:
                return None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK)
        return death

    def _checked(self, end: Ended) -> int:
        """The status. A command that was signalled may have been with the whole sandbox, whose guest says it ends.

        That is a reason to ask the witness, and no more: a guest may lie. The engine, whose connection may have to be
        opened, is asked if the witness saw something; and after a KILL, because the kernel ends a sandbox by that.
        """
        death = None
        if cause := self._shown(end):
            death = self.death(self._limits.term + self._limits.kill, cause)
        elif end.signal == signal.SIGKILL:
            death = self._death("", self._witness)
        if death is not None:
            raise death
        return end.code

    def _shown(self, end: Ended) -> str:
        """Why the sandbox is ending, as this host shows it; asked only if it may be."""
        if end.cause == "sandbox_end":
            return self._witness.now() or self._witness.later()
        killed = end.signal == signal.SIGKILL or (end.signal == signal.SIGTERM and signal.SIGTERM not in self._sent)
        return self._witness.now() if killed else ""

    def _death(self, cause: str, witness: Witness) -> SandboxDied | None:
        """The error if the engine reports that the sandbox has ended; None otherwise. See check_alive."""
        from podbot.execution.engine_command import check_alive

        try:
            check_alive(self._connect(), self._container, cause, witness)
        except SandboxDied as exc:
            return exc
        except ContainerError:  # the engine does not answer, which changes nothing about the command
            return None
        return None

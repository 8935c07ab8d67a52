"""An open sandbox for Python callers: run commands in it."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from podbot.engine.port import Engine
from podbot.errors import ContainerError, ContainerNotFound, InvalidValue, SandboxClosed
from podbot.exec_spec import ExecSpec, is_argument, is_env_name
from podbot.execution.capture import Kept, StartTimer, run_fed
from podbot.execution.result import BytesResult, ExecutionResult
from podbot.machine import disk
from podbot.session.disk_notice import Look, full_disks, written
from podbot.session.end_cause import OwnersWitness
from podbot.session.opening import OpenSandbox
from podbot.session.shells import connected, explained, shell_in
from podbot.shell.cancellation import waiting_for
from podbot.shell.engine_pool import EnginePool
from podbot.shell.podman_shell import PodmanShell
from podbot.shell.reconnecting import Connection
from podbot.shell.requests import shortened
from podbot.shell.shell_limits import ShellLimits
from podbot.shell.validator import CommandValidator
from podbot.streams.wake import Signal, Wake

if TYPE_CHECKING:
    from podbot.guest.channel import Channel
    from podbot.tools.files import Files

_LONGEST = 1e9  # seconds, of a timeout
_NO_ARGUMENT = "is not a string without NUL characters and lone surrogates"
OUTPUT_LIMIT = 1 << 20  # bytes kept of stdout and of stderr; the rest is read and discarded


class _Closable(Protocol):
    def close(self) -> None: ...


class _Running:
    """The command of one call, for the call's cancellation: another thread may terminate it until it is closed."""

    def __init__(self, wake: Wake) -> None:
        self._wake: Wake | None = wake
        self._lock = threading.Lock()

    def terminate(self) -> None:
        with self._lock:
            if self._wake is not None:
                self._wake.post(Signal(signal.SIGTERM))

    def close(self) -> None:
        with self._lock:
            self._wake = None


class Sandbox:
    """An open sandbox. It may be used from any thread, and runs the commands of several threads at once."""

    def __init__(
        self,
        opened: OpenSandbox,
        connect: Callable[[], Engine],
        *,
        timer: StartTimer = threading.Timer,
        look: Look = disk,
    ) -> None:
        """``connect``: opens further connections to the engine. ``timer``: measures the timeouts of commands. ``look``:
        see ``full_disks``.
        """
        self._opened = opened
        self._connect = connect
        self._engines = EnginePool(connect)
        self._timer = timer
        self._look = look
        self._witness = OwnersWitness(opened.plan.runtime_dir)
        self._made: list[_Closable] = []
        self._changed = threading.Condition()  # protects the attributes below, and is never held during a command
        self._calls = 0  # of ``run`` and its kin, in progress
        self._over = False
        self._channels: list[_Closable] = []
        self._shell: PodmanShell | None = None
        self._storage: str | None = None  # see ContainerInfo; None: not asked for yet

    @property
    def name(self) -> str:
        """The session's name, which is the container's."""
        return self._opened.plan.session

    @property
    def root(self) -> str:
        """The working directory of its commands, an absolute path inside: the workspace, if it has one."""
        return self._opened.plan.container.workdir or "/"

    @property
    def image(self) -> str:
        """The image that it runs."""
        return self._opened.plan.container.image

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
        """Run ``command``, a program and its arguments, to its end. A command that fails is a result, not an exception.

        ``capture``: return its output, at most 1 MiB of each stream; otherwise the output is discarded. ``timeout``:
        seconds, after which its process group is terminated (TERM, 2 s, KILL). ``input``: the whole of its stdin; None
        means an empty stdin. ``env``: additional variables. ``cwd``: a directory inside; None means the workspace.

        Raises InvalidValue, SandboxClosed after the block, ContainerNotFound, ExecFailed, EngineGone,
        EngineStorageFull, SandboxDied, and CommandSurvived when the command could not be terminated after its timeout.
        """
        out, err = (Kept(OUTPUT_LIMIT), Kept(OUTPUT_LIMIT)) if capture else (None, None)
        ended = self._ended(command, out, err, timeout=timeout, input=input, env=env, cwd=cwd)
        return ExecutionResult(stdout=out.text if out else "", stderr=err.text if err else "", **ended)

    def run_bytes(
        self,
        command: Sequence[str],
        *,
        timeout: float | None = None,
        input: bytes | None = None,  # noqa: A002 - as subprocess.run calls it
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> BytesResult:
        """As :meth:`run` with ``capture``; the output is returned as the bytes that the command wrote."""
        out, err = Kept(OUTPUT_LIMIT), Kept(OUTPUT_LIMIT)
        ended = self._ended(command, out, err, timeout=timeout, input=input, env=env, cwd=cwd)
        return BytesResult(stdout=out.data, stderr=err.data, **ended)

    def _ended(
        self,
        command: Sequence[str],
        out: Kept | None,
        err: Kept | None,
        *,
        timeout: float | None,
        input: bytes | str | None,  # noqa: A002
        env: Mapping[str, str] | None,
        cwd: str | None,
    ) -> dict[str, Any]:
        """Run ``command`` to its end, with its output in ``out`` and ``err``: the result's other fields."""
        words = _checked(command, timeout, {} if env is None else env, cwd)
        if not isinstance(input, (str, bytes, bytearray, memoryview, None.__class__)):
            raise InvalidValue(
                field="input",
                origin="the caller",
                reason=f"{shortened(input)} is neither text nor bytes",
                hint=_HINTS["input"],
            )
        data = input.encode() if isinstance(input, str) else input
        spec = ExecSpec(command=words, workdir=cwd, env=dict(env or {}), stdin=data is not None)
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._call())
            engine = stack.enter_context(self._engines.engine())
            wake = stack.enter_context(contextlib.closing(Wake()))
            stack.enter_context(waiting_for(stack.enter_context(contextlib.closing(_Running(wake)))))
            begun = time.monotonic()
            status = run_fed(
                engine, self.name, spec, wake, data=data, out=out, err=err, seconds=timeout,
                guest=self._opened.guest, timer=self._timer, witness=self._witness,
            )  # fmt: skip
            seconds = time.monotonic() - begun
            disk_full = status.disk_full or (status.failed and self._is_disk_full(engine))
        # Only the timeout posts a signal to this wake pipe, and the cancellation of a call, whose result nobody sees.
        timed_out = status.signal is not None
        return {
            "exit_code": -1 if timed_out else status.code,
            "command": words,
            "cwd": cwd or self.root,
            "duration_seconds": seconds,
            "truncated": any(kept is not None and kept.truncated for kept in (out, err)),
            "timed_out": timed_out,
            "signal": status.signal if timed_out else status.killed,
            "out_of_memory": status.out_of_memory,
            "memory_kills": status.memory_kills,
            "forks_refused": status.forks_refused,
            "disk_full": disk_full,
            "cause": "deadline" if timed_out else status.cause,
        }

    def _is_disk_full(self, engine: Engine) -> bool:
        """Whether a file system is full that commands write to. Asked after a command that failed."""
        if self._storage is None:
            with contextlib.suppress(ContainerError):
                self._storage = engine.inspect(self.name).storage
        return any(full_disks(written(self._opened.plan.workspace), self._storage or "", look=self._look))

    def _look_at_disks(self) -> bool:
        """As :meth:`_is_disk_full`, for a shell, which may have outlived the sandbox."""
        with contextlib.suppress(ContainerError), self._call(), self._engines.engine() as engine:
            return self._is_disk_full(engine)
        return False

    @contextlib.contextmanager
    def _call(self) -> Iterator[None]:
        """A call in progress, for which :meth:`close` waits. Raises SandboxClosed once the sandbox is closed."""
        with self._changed:
            if self._over:
                raise SandboxClosed(container=self.name)
            self._calls += 1
        try:
            yield
        finally:
            with self._changed:
                self._calls -= 1
                self._changed.notify_all()

    def channel(self) -> Channel:
        """A new channel to the sandbox's guest, for many commands at once. It ends with the sandbox.

        Raises NoGuest when the image has no python3 that can run a guest, ChannelLost and ContainerError subclasses.
        """
        from podbot.guest.open_channel import open_channel

        engine = self._engine_of_its_own()
        try:
            channel = open_channel(engine, self.name, self._opened.guest)
        finally:
            engine.close()  # the channel has a connection of its own
        self._add(channel, self._channels)
        return channel

    @property
    def shell(self) -> PodmanShell:
        """The sandbox's shell in its workspace, for several threads and commands at once: :meth:`open_shell` without
        arguments. It connects with its first command, and ends with the sandbox."""
        with self._changed:  # reentrant, and opening a shell runs no command
            if self._shell is None:
                self._shell = self.open_shell()
            return self._shell

    def open_shell(
        self,
        *,
        root: str | None = None,
        user: str = "",
        limits: ShellLimits | None = None,
        validator: CommandValidator | None = CommandValidator(),  # noqa: B008 - it has no state
    ) -> PodmanShell:
        """A further shell in this sandbox, with a connection of its own. It ends with the sandbox.

        ``root``: an absolute path inside; commands may only name working directories below it. None: the workspace.
        ``user``: of the commands, ``USER`` or ``USER:GROUP``, names or numbers inside; empty is the image's user.
        ``validator``: refuses commands; with None no command is refused.
        """
        spec = self._opened.plan.container
        shell = shell_in(
            self._engine_of_its_own,
            self.name,
            directory=self._opened.guest,
            root=self.root if root is None else root,
            user=user,
            network_enabled=spec.network != "none",
            limits=limits,
            validator=validator,
            disk_full=self._look_at_disks,
            witness=self._witness,
        )
        self._add(shell, self._made)
        return shell

    def files(self, *, root: str | None = None, user: str = "") -> Files:
        """The files below a directory of this sandbox, for several threads. It ends with the sandbox.

        ``root``: an absolute path inside; None: the workspace. ``user``: who reads and writes, ``USER`` or
        ``USER:GROUP``, names or numbers inside; empty is the image's user. Its first call starts the files worker,
        for which the image needs python3.
        """
        from podbot.tools.files import Files

        made = Files(self.connection(user=user), self.root if root is None else root, where=self.name)
        self._add(made, self._made)
        return made

    def connection(self, *, user: str = "") -> Connection:
        """What the shells and the files of this sandbox run their commands with; opened when it is used."""
        connect = self._engine_of_its_own
        made = Connection(
            lambda: connected(connect, self.name, self._opened.guest, user),
            lambda error: explained(connect, self.name, error, self._witness),
        )
        self._add(made, self._made)
        return made

    def _add(self, made: _Closable, to: list[_Closable]) -> None:
        """Close it with the sandbox; at once, if that has been closed meanwhile. Raises SandboxClosed then."""
        with self._changed:
            if not self._over:
                to.append(made)
                return
        made.close()
        raise SandboxClosed(container=self.name)

    def _engine_of_its_own(self) -> Engine:
        if self._over:
            raise SandboxClosed(container=self.name)
        return self._connect()

    def is_running(self) -> bool:
        """Whether the container is running. Raises ContainerError subclasses when the engine does not answer."""
        try:
            with self._call(), self._engines.engine() as engine:
                return engine.inspect(self.name).state == "running"
        except ContainerNotFound:
            return False

    def close(self) -> None:
        """Refuse further commands, and wait for running ones. The code that opened the sandbox removes it."""
        with self._changed:
            self._over = True
            made, self._made = self._made, []
            channels, self._channels = self._channels, []
            self._changed.wait_for(lambda: not self._calls)
        for part in (*channels, *made):
            part.close()
        self._engines.close()


def _is_within(seconds: object, most: float) -> bool:
    return isinstance(seconds, (int, float)) and 0 < seconds <= most


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


_HINTS = {
    "command": 'Pass a list, such as ["ls", "-l"]; a shell is ["sh", "-c", "…"].',
    "env": 'Pass a mapping of texts, such as {"NAME": "value"}.',
    "timeout": "Pass a number, such as 10; None is no limit.",
    "input": 'Pass a text, or bytes such as b"text".',
    "cwd": 'Pass the path of a directory inside, such as "/tmp".',
}


def _checked(command: Sequence[str], timeout: float | None, env: Mapping[str, str], cwd: str | None) -> tuple[str, ...]:
    field, reason = "", ""
    if isinstance(command, str) or not command or not command[0]:
        field, reason = "command", f"{command!r} is not a program and its arguments"
    elif wrong := [word for word in command if not is_argument(word)]:
        field, reason = "command", f"{shortened(wrong[0])} {_NO_ARGUMENT}"
    elif timeout is not None and not _is_within(timeout, _LONGEST):
        field, reason = "timeout", f"{shortened(timeout)} is not a number of seconds above 0, at most 1,000,000,000"
    elif not _is_mapping(env):
        field, reason = "env", "it is not a mapping of names to values"
    elif odd := [name for name in env if not is_env_name(name)]:
        field, reason = "env", f"{shortened(str(odd[0]).partition('=')[0])} is not the name of a variable"
    elif bad := [name for name, value in env.items() if not is_argument(value)]:
        field, reason = "env", f"the value of {shortened(bad[0])} {_NO_ARGUMENT}"
    elif cwd is not None and not is_argument(cwd):
        field, reason = "cwd", f"{shortened(cwd)} {_NO_ARGUMENT}"
    if field:
        hint = _HINTS[field]
        if field == "timeout" and re.fullmatch(r"'[0-9]{1,9}(\.[0-9]{1,9})?'", repr(timeout)):
            hint = f"Write {timeout}, without quotes."
        raise InvalidValue(field=field, origin="the caller", reason=reason[:200], hint=hint)
    return tuple(command)

"""A command that runs through an exec of the engine, with the same interface as a command that a guest runs."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator

from podbot.engine.port import Size
from podbot.errors import (
    BadWorkingDirectory,
    CommandRefused,
    CommandSurvived,
    ExecFailed,
    PodbotError,
    ShellUnavailable,
)
from podbot.exec_spec import ExecSpec
from podbot.execution.runner import ExecIO, ExecStatus, run_exec
from podbot.guest.messages import Ended, GuestCommand
from podbot.shell import engine_scripts
from podbot.shell.engine_pool import EnginePool
from podbot.shell.output_budget import STDERR, STDOUT
from podbot.shell.ports import OnOutput
from podbot.streams.wake import Message, Resize, Signal, Wake

_START_SECONDS = 60.0  # within which the engine must start a command
_CHUNK = 65536
_TURN = 0.05  # seconds for which a writer waits before it lets a reader in
_NO_DIRECTORY = {
    engine_scripts.BAD_DIRECTORY: "it is missing, is no directory, or may not be entered",
    engine_scripts.OUTSIDE: "it leads out through a link",
}


class EngineRunning:
    """See :class:`~podbot.shell.ports.RunningCommand`.

    A thread of this object relays between the engine and pipes; the caller that waits or writes reads the pipes.
    """

    def __init__(
        self,
        pool: EnginePool,
        container: str,
        command: GuestCommand,
        on_output: OnOutput | None,
    ) -> None:
        """Start the command. Raises CommandRefused, ShellUnavailable and ContainerError subclasses."""
        self.job = 0
        self._pool, self._container, self._command, self._on_output = pool, container, command, on_output
        self._token, self._word = secrets.token_hex(8), secrets.token_hex(8)
        self._size = Size(*command.tty) if command.tty is not None else None
        self._wake = Wake()
        self._status: ExecStatus | None = None
        self._error: BaseException | None = None
        self._ended: Ended | None = None
        self._released = False
        self._timed_out = False
        self._ender: threading.Thread | None = None
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._reading = threading.Lock()  # held by the thread that delivers output
        self._readers = 0  # threads in `wait` that want to deliver it
        self._memory_kills = 0
        self._begun = time.monotonic()
        self._over = self._begun
        self._open: dict[int, int] = {}  # descriptor that is read -> number of the stream
        self._word_size = len(self._word) + 1 + engine_scripts.DIGITS
        self._unread: dict[int, int] = {}  # descriptor -> bytes of the start script's word that it still has to deliver
        self._stdin: int | None = None
        self._timer: threading.Timer | None = None
        self._thread = threading.Thread(target=self._relayed, args=(self._streams(),), daemon=True)
        self._thread.start()
        try:
            self._check_started()
        except BaseException:
            self._thread.join(_START_SECONDS)
            self._release()
            raise
        if command.deadline is not None:
            self._timer = threading.Timer(command.deadline, self._time_is_up)
            self._timer.daemon = True
            self._timer.start()

    # --- the caller's side ------------------------------------------------------------------------

    def write(self, data: bytes, *, until: Callable[[], bool] | None = None, seconds: float | None = None) -> bool:
        """See RunningCommand; delivers the output that the command prints meanwhile, unless another thread waits."""
        rest = memoryview(data)
        end = math.inf if seconds is None else time.monotonic() + seconds
        with self._writing:
            while rest and (stdin := self._stdin) is not None:
                if time.monotonic() >= end:
                    return False
                if not self._is_writable(stdin, until):
                    continue
                try:
                    rest = rest[os.write(stdin, rest[:_CHUNK]) :]
                except BlockingIOError:
                    continue
                except OSError:  # the command no longer reads its stdin
                    break
        return True

    def _is_writable(self, stdin: int, until: Callable[[], bool] | None) -> bool:
        """Wait for at most _TURN until stdin accepts data, and deliver output unless ``until`` holds or a reader does.

        Afterwards a thread that wants to read gets its turn, or the writer delivers because that thread has left.
        """
        delivers = not self._readers and not (until is not None and until()) and self._reading.acquire(blocking=False)
        try:
            poller = self._poller() if delivers else select.poll()
            poller.register(stdin, select.POLLOUT)
            ready = dict(poller.poll(_TURN * 1000))
            if delivers:
                self._deliver(ready)
        finally:
            if delivers:
                self._reading.release()
        return stdin in ready

    def close_stdin(self) -> None:
        """See RunningCommand."""
        with self._lock:
            stdin, self._stdin = self._stdin, None
        if stdin is not None:
            with self._writing:  # a writer uses the descriptor for at most _TURN
                os.close(stdin)

    def signal(self, number: int) -> None:
        """See RunningCommand: a further exec sends the signal to all processes of the command."""
        if self._thread.is_alive():
            self._inside(engine_scripts.signaller(self._token, number))

    def terminate(self) -> None:
        """See RunningCommand: a further exec terminates all processes, and the exec path also terminates the group."""
        with self._lock:
            if self._ender is not None or not self._thread.is_alive():
                return
            ender = threading.Thread(target=self._end_inside, daemon=True)
            ender.start()  # before `_outcome` can join it
            self._ender = ender
        self._post(Signal(signal.SIGTERM))

    def abandon(self) -> None:
        """See RunningCommand: a thread waits for the end, and then releases what this object holds."""
        self._on_output = None
        self.terminate()
        threading.Thread(target=self._wait_and_drop, daemon=True).start()

    def resize(self, columns: int, rows: int) -> None:
        """See RunningCommand."""
        self._size = Size(columns, rows)
        self._post(Resize())

    def wait(self, seconds: float | None = None, *, until: Callable[[], bool] | None = None) -> Ended | None:
        """See RunningCommand. Raises ContainerError subclasses, CommandSurvived among them."""
        end = None if seconds is None else time.monotonic() + seconds
        with self._turn_to_read(end) as has_turn:
            if not has_turn:
                return None
            while self._open:
                if until is not None and until():
                    return None
                ready = self._poller().poll(None if end is None else max(0.0, end - time.monotonic()) * 1000)
                if not ready:
                    return None
                self._deliver(dict(ready))
            if until is not None and until():
                return None
            self._thread.join(None if end is None else max(0.0, end - time.monotonic()))
            if self._thread.is_alive():
                return None
            if self._ended is None:
                self._ended = self._outcome()
            return self._ended

    @contextlib.contextmanager
    def _turn_to_read(self, end: float | None) -> Iterator[bool]:
        """Whether this thread may deliver output; false when another one still does so at ``end``."""
        with self._lock:
            self._readers += 1
        try:
            has_turn = self._reading.acquire(timeout=-1 if end is None else max(0.0, end - time.monotonic()))
        finally:
            with self._lock:
                self._readers -= 1
        try:
            yield has_turn
        finally:
            if has_turn:
                self._reading.release()

    # --- implementation ---------------------------------------------------------------------------

    def _streams(self) -> ExecIO:
        command = self._command
        stdin = None
        if command.stdin == "open":
            stdin, self._stdin = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(self._stdin, False)
        out_read, out = os.pipe2(os.O_CLOEXEC)
        err_read, err = os.pipe2(os.O_CLOEXEC)
        self._open = {out_read: STDOUT, err_read: STDERR}
        self._unread = dict.fromkeys((out_read,) if command.tty is not None else (out_read, err_read), self._word_size)
        return ExecIO(stdin, out, err, size=lambda: self._size, shared=False)

    def _relayed(self, io: ExecIO) -> None:
        """The thread's function: run the command, store its result or error, and close its streams."""
        command = self._command
        kept = ("PATH", engine_scripts.MARK, *command.env) if command.env_mode == "replace" else ()
        spec = ExecSpec(
            engine_scripts.started(
                self._word,
                command.cwd or "/",
                command.argv,
                keep=kept,
                discard=command.discard,
                tty=bool(command.tty),
                within=command.within,
            ),
            env={**command.env, engine_scripts.MARK: self._token},
            tty=command.tty is not None,
            stdin=io.stdin is not None,
            user=command.user or None,
        )
        try:
            with self._pool.engine() as engine:
                self._status = run_exec(engine, self._container, spec, io, self._wake, interrupt_ends=True)
        except BaseException as exc:  # noqa: BLE001 - wait() raises it again
            self._error = exc
        finally:
            self._over = time.monotonic()
            for descriptor in (io.stdin, io.stdout, io.stderr):
                if descriptor is not None:
                    os.close(descriptor)

    def _check_started(self) -> None:
        """Read the word that the start script prints before all output, and the number of processes killed so far.

        It comes on stdout and on stderr, each time before the stream's other output. One is enough: a command that
        fills one stream at once can hold up what was printed on the other.
        """
        said = self._read_word()
        word, count = said[: len(self._word) + 1], said[len(self._word) + 1 :]
        if word == self._word.encode() + engine_scripts.READY and len(said) == self._word_size and count.isdigit():
            self._memory_kills = int(count)
            return
        begins = word.startswith(self._word.encode())
        if begins and (reason := _NO_DIRECTORY.get(word[len(self._word) :])):
            raise BadWorkingDirectory(field="cwd", value=self._command.cwd, reason=reason)
        self._thread.join(0 if said else _START_SECONDS)
        if self._error is not None:
            raise self._refused() or self._error
        self.terminate()
        reason = "its image has no python3 and no /bin/sh, and one of them is needed to run a command under control"
        raise ShellUnavailable(shell=self._container, reason=reason, hint="Use an image that has one.")

    def _read_word(self) -> bytes:
        """The first bytes of the stream on which they arrive first, or as much as there is within _START_SECONDS."""
        said = dict.fromkeys(self._unread, b"")
        poller = select.poll()
        for descriptor in said:
            poller.register(descriptor, select.POLLIN)
        end = time.monotonic() + _START_SECONDS
        reading = len(said)
        while reading and (ready := poller.poll(max(0.0, end - time.monotonic()) * 1000)):
            for descriptor, _ in ready:
                data = os.read(descriptor, self._unread[descriptor])
                said[descriptor] += data
                self._unread[descriptor] -= len(data)
                if not self._unread[descriptor]:
                    return said[descriptor]
                if not data:
                    poller.unregister(descriptor)
                    reading -= 1
        return max(said.values(), key=len)

    def _refused(self) -> CommandRefused | None:
        """The error for a user that does not exist, if that is why the engine did not start the command."""
        error, user = self._error, self._command.user
        if not user or not isinstance(error, ExecFailed) or not error.reason.startswith(ExecFailed.NO_ACCOUNT):
            return None
        return CommandRefused(field="user", value=user, reason="there is no such user inside")

    def _poller(self) -> select.poll:
        poller = select.poll()
        for descriptor in self._open:
            poller.register(descriptor, select.POLLIN)
        return poller

    def _deliver(self, ready: dict[int, int]) -> None:
        for descriptor in [descriptor for descriptor in self._open if descriptor in ready]:
            unread = self._unread.get(descriptor, 0)
            data = os.read(descriptor, unread or _CHUNK)
            if not data:
                del self._open[descriptor]
                os.close(descriptor)
            elif unread:
                self._unread[descriptor] = unread - len(data)
            elif self._on_output is not None:
                self._on_output(self._open[descriptor], data)

    def _time_is_up(self) -> None:
        self._timed_out = self._thread.is_alive()
        self.terminate()

    def _inside(self, words: tuple[str, ...]) -> int:
        """Run one of podbot's scripts inside; returns its exit status, or -1 if it could not be run."""
        # As the command's user: root may not read another user's variables without CAP_SYS_PTRACE.
        spec = ExecSpec(words, stdin=False, user=self._command.user or None)
        io = ExecIO(None, None, None)
        wake = Wake()
        try:
            with self._pool.engine() as engine:
                return run_exec(engine, self._container, spec, io, wake).code
        except PodbotError:
            return -1
        finally:
            wake.close()

    def _end_inside(self) -> None:
        self._inside(engine_scripts.ender(self._token, self._command.term_grace))

    def _wait_and_drop(self) -> None:
        with contextlib.suppress(PodbotError, OSError):
            self.wait()

    def _outcome(self) -> Ended:
        self._release()
        if self._ender is not None:
            self._ender.join()
        if self._error is not None:
            raise self._error
        if self._status is None:
            raise CommandSurvived(container=self._container, command=self._command.argv[0])
        seconds = self._over - self._begun
        code = self._status.code
        number = code - 128 if 128 < code <= 192 else None
        if self._ender is not None and self._timed_out:
            late = seconds >= (self._command.deadline or 0) + self._command.term_grace
            number = signal.SIGKILL if late else signal.SIGTERM
        killed = number == signal.SIGKILL and self._ender is None and self._memory_ran_out()
        return Ended(
            code, number, self._timed_out, killed, seconds,
            cause="deadline" if self._timed_out else "out_of_memory" if killed else "",
            memory_kills=self._status.memory_kills, forks_refused=self._status.forks_refused,
        )  # fmt: skip

    def _memory_ran_out(self) -> bool:
        """Whether the kernel killed a process in the sandbox for its memory limit since this command started.

        It may have been another command's process: the kernel counts for the whole sandbox.
        """
        return self._inside(engine_scripts.MEMORY_KILLS) not in (-1, self._memory_kills)

    def _release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.close_stdin()
        for descriptor in self._open:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._open.clear()
        with self._lock:
            if not self._thread.is_alive() and not self._released:
                self._released = True
                self._wake.close()

    def _post(self, message: Message) -> None:
        """Send a message to the thread unless it has ended: then the descriptor's number may belong to another file."""
        with self._lock:
            if not self._released:
                self._wake.post(message)

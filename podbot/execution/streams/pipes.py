"""A command's two named pipes, and the process that stands between them and us: see ``pump``."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
from typing import Self

from podbot.children import gone, interpreter, leave, sweep
from podbot.execution.streams import pump

_FREE = 10  # descriptors of ours are moved above those that the pump gets
AHEAD = 1 << 20  # bytes that the pump may read ahead; with 64 KiB the two take turns, and 100 MB take 1.4 times as long
_LEAVE = 0.2  # seconds for a pump to end; one that waits in the kernel is left behind
_PASSED_ON = ("LD_LIBRARY_PATH",)  # for an interpreter that finds its library so; nothing that is secret


class CommandPipes:
    """Made by :meth:`make` before the command is started; ``stdin`` and ``stdout`` are names in the directory.

    The files go as soon as the command has opened them, or with :meth:`close`.
    """

    def __init__(self, directory: str, name: str) -> None:
        self.stdin = f"{name}.in"
        self.stdout = f"{name}.out"
        self._paths = [os.path.join(directory, self.stdin), os.path.join(directory, self.stdout)]
        self._ours: dict[str, int] = {}
        self._pump = 0

    @classmethod
    def make(cls, directory: str) -> Self:
        """Two new pipes in ``directory``, which is ours alone. Raises OSError, and leaves nothing then."""
        sweep()
        pipes = cls(directory, os.urandom(8).hex())
        try:
            for path in pipes._paths:
                os.mkfifo(path, 0o600)
            pipes._start()
        except BaseException:
            pipes.close()
            raise
        return pipes

    def _start(self) -> None:
        program = interpreter(pump.__file__)
        theirs: list[int] = []
        try:
            for name, for_us in (("input", 1), ("output", 0), ("control", 0)):
                ends = _apart(os.pipe() if name != "control" else _socket_pair())
                self._ours[name] = ends[for_us]
                theirs.append(ends[1 - for_us])
            os.set_blocking(self.input, False)
            os.set_blocking(self.output, False)
            with contextlib.suppress(OSError):  # this user has many pipes
                fcntl.fcntl(self.output, fcntl.F_SETPIPE_SZ, AHEAD)
            actions = [
                *((os.POSIX_SPAWN_DUP2, fd, number) for fd, number in zip(theirs, _NUMBERS, strict=True)),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ]
            argv = [program, "-I", "-S", pump.__file__, *self._paths]
            env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
            # In a group of its own: Ctrl-C is the command's.
            self._pump = os.posix_spawn(program, argv, env, file_actions=actions, setpgroup=0)
        finally:
            for fd in theirs:
                os.close(fd)

    @property
    def input(self) -> int:
        """Descriptor of what the command is to read; -1 once it was closed."""
        return self._ours.get("input", -1)

    @property
    def output(self) -> int:
        """Descriptor of what the command prints. Its end is the pump's."""
        return self._ours["output"]

    def connected(self, *, for_input: bool) -> None:
        """A shell has opened both: nobody else needs to find them, and it may go on.

        ``for_input``: the command's stdin is such a pipe, too.
        """
        self._unlink()
        self._order(pump.RUN if for_input else pump.RUN_WITHOUT_INPUT)

    def close_input(self) -> None:
        """End of file for the command, behind what was written."""
        self._order(pump.INPUT_OVER)
        self._close("input")

    def finish(self) -> None:
        """The command ended: what is in its stdout at this moment still comes, and then the end."""
        self._order(pump.ENDED)

    def is_done(self) -> bool:
        """Once the output has ended: whether that is all there was."""
        os.set_blocking(self._ours["control"], False)
        try:
            return os.read(self._ours["control"], 1) == pump.DONE
        except OSError:
            return False

    def hand_over(self) -> tuple[int, ...]:
        """What another process must hold for the pump to go on when we end, ``output`` first. It is not waited for."""
        leave(self._pump)
        self._pump = 0
        return self.output, self._ours["control"]

    def close(self) -> None:
        """Give everything back."""
        self._unlink()
        for name in list(self._ours):
            self._close(name)
        if self._pump:
            process, self._pump = self._pump, 0
            _reap(process)

    def _order(self, order: bytes) -> None:
        with contextlib.suppress(OSError):  # EPIPE: its output has ended as well, and says so
            os.write(self._ours["control"], order)

    def _close(self, name: str) -> None:
        fd = self._ours.pop(name, None)
        if fd is not None:
            os.close(fd)

    def _unlink(self) -> None:
        paths, self._paths = self._paths, []
        for path in paths:
            with contextlib.suppress(OSError):
                os.unlink(path)


_NUMBERS = (pump.INPUT, pump.OUTPUT, pump.CONTROL)


def _socket_pair() -> tuple[int, int]:
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


def _apart(ends: tuple[int, int]) -> tuple[int, int]:
    """The same two, with numbers that the pump's do not overwrite."""
    moved: list[int] = []
    try:
        for end in ends:
            moved.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FREE))  # noqa: PERF401 - those made are closed
    except OSError:
        for end in moved:
            os.close(end)
        raise
    finally:
        for end in ends:
            os.close(end)
    return moved[0], moved[1]


def _reap(process: int) -> None:
    """It ends by itself, for its pipes have. One that waits in the kernel is left, and looked after later."""
    if not gone(process, _LEAVE):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        if not gone(process, _LEAVE):
            leave(process)

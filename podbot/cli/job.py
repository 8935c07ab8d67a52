"""podbot as a job of the operator's shell: stopped with the terminal restored, and continued by ``fg``."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

from podbot.streams.terminal import RawMode
from podbot.streams.wake import Continued, Suspend, Wake


class TerminalJob:
    """See :class:`~podbot.execution.suspension.Job`. ``output``: the terminal to which the command's output goes."""

    def __init__(self, wake: Wake, *, output: int) -> None:
        self._wake = wake
        self._output = output
        self._mode: RawMode | None = None

    @contextlib.contextmanager
    def using(self, mode: RawMode) -> Iterator[None]:
        """While the block runs, the command has the terminal in ``mode``, and outside SIGTSTP and SIGCONT are handled.

        Signals that podbot was started to ignore stay ignored.
        """
        self._mode = mode
        before = {}
        for number in (signal.SIGTSTP, signal.SIGCONT):
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, self._post)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._mode = None

    def _post(self, number: int, frame: object) -> None:  # noqa: ARG002
        self._wake.post(Suspend() if number == signal.SIGTSTP else Continued())

    def suspend(self, leave: bytes, enter: bytes, *, commanded: bool) -> None:
        """See the class. The whole process group is stopped, as a terminal does, with a script that started podbot."""
        if self._mode is None or signal.getsignal(signal.SIGTSTP) == signal.SIG_IGN:
            return
        from podbot.streams import terminal_answers

        emptied = terminal_answers.write(self._output, leave) and commanded and self._in_foreground()
        if emptied:
            terminal_answers.drain(0, self._output)
        self._mode.give_back(emptied=emptied)
        before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTSTP, signal.SIGCONT)}
        try:
            # The kernel discards the signal if no process could continue us: in an orphaned group and in PID 1.
            os.kill(0, signal.SIGTSTP)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self.retake(enter)

    def retake(self, enter: bytes) -> None:
        """See the class. Skipped when podbot is about to end: in the background it would be stopped once more."""
        import errno
        import termios

        while self._mode is not None and not self._wake.ending:
            try:
                self._mode.take()
            except termios.error as exc:
                if exc.args[0] == errno.EINTR:
                    continue
                return  # the terminal is gone, or another group has it and no shell can give it to us
            self._write(enter)
            return

    def _in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._output) == os.getpgrp()
        except OSError:
            return False

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(self._output, data) :]

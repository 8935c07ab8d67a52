"""Starting a command with its stdin and stdout beside the engine, where that is possible."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Mapping

from podbot.engine.port import Engine, ExecStream
from podbot.errors import ContainerError
from podbot.execution.start import Started
from podbot.execution.streams.piped_shell import CANNOT_OPEN, can_be_piped, opened, piped
from podbot.execution.streams.piped_side import PipedSide
from podbot.execution.streams.pipes import CommandPipes
from podbot.launch.command import ExecSpec
from podbot.streams.sides import EngineSide
from podbot.streams.wake import Wake

OPEN_TIMEOUT = 10.0  # seconds for a shell inside to open two pipes
OPEN_TIMEOUT_AFTER_SIGNAL = 1.0  # seconds of that which are left when a signal has come
HELD = 1 << 16  # bytes of stderr that are kept meanwhile
REFUSED = "refused"  # beside the pipes: they could not be opened in this sandbox


class PipedStart:
    """One try to start ``spec`` with pipes in ``directory``. ``exec_id``: what is to be ended if that is broken off."""

    def __init__(self, engine: Engine, container: str, spec: ExecSpec, directory: str) -> None:
        self._engine = engine
        self._container = container
        self._spec = spec
        self._refused = os.path.join(directory, REFUSED)
        self._directory = directory
        self._held = b""
        self._word = b""
        self.exec_id = ""

    def run(self, wake: Wake) -> Started | None:
        """The command; None when this sandbox has no such pipes or no shell. Then it does not run, and never will.

        Raises BadFrame.
        """
        if not self._engine.local or not can_be_piped(self._spec) or os.path.lexists(self._refused):
            return None
        with contextlib.ExitStack() as stack:
            try:
                pipes = CommandPipes.make(self._directory)
                stack.callback(pipes.close)
                stream = self._shell(pipes)
            except (OSError, ContainerError):  # over the engine none of it is needed, and errors name the command
                return None
            stack.callback(stream.close)
            side = EngineSide(stream, tty=False)
            if self._opened(side, pipes, wake):
                pipes.connected(for_input=self._spec.stdin)
                return Started(self.exec_id, PipedSide(side, pipes, self._held), stack.pop_all().close)
        return None

    def _shell(self, pipes: CommandPipes) -> ExecStream:
        self.exec_id = self._engine.exec_create(self._container, piped(self._spec, pipes.stdin, pipes.stdout))
        return self._engine.exec_start(self.exec_id, tty=False, size=None)

    def _opened(self, side: EngineSide, pipes: CommandPipes, wake: Wake) -> bool:
        """Wait for the shell's word, a name that it was given. What it says on stderr goes before the command's own."""
        end = last = time.monotonic() + OPEN_TIMEOUT
        word = opened(pipes.stdin)
        poller = select.poll()
        for fd in (side.stream.fileno(), pipes.output, wake.fileno()):
            poller.register(fd, select.POLLIN)
        while not side.ended and word.startswith(self._word) and (left := end - time.monotonic()) > 0:
            ready = {} if side.eager else dict(poller.poll(left * 1000))
            if ready.get(pipes.output):  # nothing can come yet: the pump has ended
                return False
            if ready.get(wake.fileno()):  # left for whoever relays, who is to have it soon
                poller.unregister(wake.fileno())
                end = min(end, time.monotonic() + OPEN_TIMEOUT_AFTER_SIGNAL)
            self._hear(side, ready)
            if self._word == word:
                return True
        self._remember(hung=time.monotonic() >= last)
        return False

    def _hear(self, side: EngineSide, ready: Mapping[int, int]) -> None:
        for number, data in side.receive(ready):
            if number == 1:
                self._word += data
            elif len(self._held) < HELD:
                self._held += data

    def _remember(self, *, hung: bool) -> None:
        """The next command goes over the engine at once, when it was the pipes that failed and not this one command."""
        with contextlib.suppress(OSError, ContainerError):
            if hung or self._engine.exec_inspect(self.exec_id).exit_code == CANNOT_OPEN:
                os.close(os.open(self._refused, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))

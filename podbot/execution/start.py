"""Starting a command: beside the engine where that is possible, else over the engine's connection."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable
from typing import NamedTuple

from podbot.engine.port import Engine, ExecStream, Size
from podbot.errors import ContainerError
from podbot.launch.command import ExecSpec
from podbot.launch.pipes import can_be_piped, piped
from podbot.streams.pipes import CommandPipes
from podbot.streams.sides import CommandSide, EngineSide, PipedSide
from podbot.streams.wake import Wake

PATIENCE = 10.0  # seconds for a shell inside to open two pipes
HURRY = 1.0  # seconds of that which are left when a signal has come
HELD = 1 << 16  # bytes of stderr that are kept meanwhile
_NOT_STARTED = (126, 127)
REFUSED = "refused"  # beside the pipes: they could not be opened in this sandbox


class Started(NamedTuple):
    """A command that runs. ``close`` gives back what connects us to it."""

    exec_id: str
    side: CommandSide
    close: Callable[[], None]


def start(engine: Engine, container: str, spec: ExecSpec, size: Size | None) -> Started:
    """Over the engine's connection. Raises ContainerError subclasses."""
    exec_id = engine.exec_create(container, spec)
    stream = engine.exec_start(exec_id, tty=spec.tty, size=size)
    return Started(exec_id, EngineSide(stream, tty=spec.tty), stream.close)


class PipedStart:
    """One try to start ``spec`` with pipes in ``directory``. ``exec_id``: what is to be ended if that is broken off."""

    def __init__(self, engine: Engine, container: str, spec: ExecSpec, directory: str) -> None:
        self._engine = engine
        self._container = container
        self._spec = spec
        self._directory = directory
        self._held = b""
        self.exec_id = ""

    def run(self, wake: Wake) -> Started | None:
        """The command; None when this sandbox has no such pipes or no shell. Then it does not run, and never will.

        Raises ContainerError subclasses and BadFrame.
        """
        if not self._engine.local or not can_be_piped(self._spec) or os.path.lexists(self._refused):
            return None
        try:
            pipes = CommandPipes.make(self._directory)
        except OSError:  # no such directory, a full one, no descriptors: the engine's connection needs none of it
            return None
        with contextlib.ExitStack() as stack:
            stack.callback(pipes.close)
            spec = piped(self._spec, pipes.stdin, pipes.stdout)
            self.exec_id = self._engine.exec_create(self._container, spec)
            stream = self._engine.exec_start(self.exec_id, tty=False, size=None)
            stack.callback(stream.close)
            side = EngineSide(stream, tty=False)
            if self._opened(stream, side, wake):
                pipes.connected(for_input=self._spec.stdin)
                return Started(self.exec_id, PipedSide(side, pipes, self._held), stack.pop_all().close)
            self._remember()
        return None

    @property
    def _refused(self) -> str:
        return os.path.join(self._directory, REFUSED)

    def _opened(self, stream: ExecStream, side: EngineSide, wake: Wake) -> bool:
        """Wait for the shell's word. What it says on stderr goes before the command's own."""
        end = time.monotonic() + PATIENCE
        poller = select.poll()
        poller.register(stream.fileno(), select.POLLIN)
        poller.register(wake.fileno(), select.POLLIN)
        while not side.ended and (left := end - time.monotonic()) > 0:
            ready = {} if side.eager else dict(poller.poll(left * 1000))
            if ready.get(wake.fileno()):  # left for whoever relays, who is to have it soon
                poller.unregister(wake.fileno())
                end = min(end, time.monotonic() + HURRY)
            word = False
            for number, data in side.receive(ready):
                word = word or number == 1
                if number == 2 and len(self._held) < HELD:
                    self._held += data
            if word:
                return True
        return False

    def _remember(self) -> None:
        """The next command goes over the engine at once, unless the engine could not even start a shell for this one.

        That may be the fault of its working directory.
        """
        with contextlib.suppress(OSError, ContainerError):
            state = self._engine.exec_inspect(self.exec_id)
            if state.exit_code in _NOT_STARTED:
                return
            os.close(os.open(self._refused, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))

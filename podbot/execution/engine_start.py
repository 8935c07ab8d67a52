"""Starting a command by the engine, whose connection carries its streams."""

from __future__ import annotations

from collections.abc import Callable

from podbot.engine.port import Engine, Size
from podbot.execution.command_control import CommandControl, Started
from podbot.execution.engine_command import EngineCommand
from podbot.execution.time_limits import TimeLimits
from podbot.launch.command import ExecSpec
from podbot.streams.sides import EngineSide
from podbot.streams.wake import Wake


class EngineStart:
    """See ``CommandStart``."""

    def __init__(self, engine: Engine, container: str) -> None:
        self.container = container
        self.control: CommandControl | None = None
        self._engine = engine

    def begin(self, spec: ExecSpec, size: Callable[[], Size | None], wake: Wake, limits: TimeLimits) -> Started:
        """See CommandStart."""
        del wake  # the engine answers, or its own time limit ends the request
        exec_id = self._engine.exec_create(self.container, spec)
        stream = self._engine.exec_start(exec_id, tty=spec.tty, size=size() if spec.tty else None)
        control = self.control = EngineCommand(self._engine, self.container, exec_id, spec.command[0], limits)
        return Started(control, EngineSide(stream, tty=spec.tty), stream.close)

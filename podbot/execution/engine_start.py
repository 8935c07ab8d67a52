"""Starting a command by the engine, whose connection carries its streams."""

from __future__ import annotations

from collections.abc import Callable

from podbot.engine.port import Engine, Size
from podbot.errors import ExecFailed, SandboxPaused
from podbot.execution.command_control import CommandControl, Started
from podbot.execution.engine_command import EngineCommand
from podbot.execution.refused_start import WatchedSide
from podbot.execution.time_limits import TimeLimits
from podbot.launch.command import ExecSpec
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
        program = spec.command[0]
        exec_id = self._engine.exec_create(self.container, spec)
        try:
            stream = self._engine.exec_start(exec_id, tty=spec.tty, size=size() if spec.tty else None)
        except SandboxPaused as exc:
            raise SandboxPaused(**exc.fields | {"container": self.container}) from exc
        except ExecFailed as exc:  # the engine's answer to a start names neither
            raise ExecFailed(**exc.fields | {"container": self.container, "command": program}) from exc
        control = self.control = EngineCommand(self._engine, self.container, exec_id, program, limits)
        side = WatchedSide(
            stream,
            tty=spec.tty,
            read=self._engine.words.start_refusal,
            runs=control.is_running,
            explain=lambda refusal: control.refused(refusal, spec),
        )
        return Started(control, side, stream.close)

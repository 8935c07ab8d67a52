"""Starting a command over the engine's connection; ``streams`` does so beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from podbot.engine.port import Engine, Size
from podbot.launch.command import ExecSpec
from podbot.streams.sides import CommandSide, EngineSide


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

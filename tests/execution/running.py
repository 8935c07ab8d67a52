"""A running container in a fake engine, the caller's pipes, and how to wake the relay."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator

from podbot.execution.command_control import Witness
from podbot.streams.wake import Wake
from podbot.testing import IMAGE, FakeEngine
from podbot.testing.engine_contract import a_spec
from tests.streams.plumbing import Pipe, pipes


class Told(Witness):
    """Says ``cause`` at once, and ``afterwards`` later; ``asked``: how often it was asked to say it at once."""

    def __init__(self, cause: str = "", afterwards: str = "") -> None:
        self.cause, self.afterwards, self.asked = cause, afterwards, 0

    def now(self) -> str:
        self.asked += 1
        return self.cause

    def later(self) -> str:
        return self.afterwards


@dataclasses.dataclass
class Running:
    engine: FakeEngine
    name: str
    wake: Wake
    stdin: Pipe
    stdout: Pipe
    stderr: Pipe

    def said(self, pipe: Pipe) -> bytes:
        """What is in a pipe now."""
        os.set_blocking(pipe.read, False)
        try:
            return os.read(pipe.read, 1 << 16)
        except BlockingIOError:
            return b""


@contextlib.contextmanager
def running() -> Iterator[Running]:
    """See :class:`Running`."""
    engine, spec = FakeEngine(), a_spec(IMAGE)
    engine.start(engine.create(spec))
    with contextlib.closing(Wake()) as wake, pipes(3) as (stdin, stdout, stderr):
        yield Running(engine, spec.name, wake, stdin, stdout, stderr)

"""A command that the engine starts: a signal that comes meanwhile does not wait for an engine that hangs."""

from __future__ import annotations

import contextlib
import signal

import pytest

from podbot.deadline import Sooner
from podbot.engine.port import Size
from podbot.engine.transport import SocketStream
from podbot.errors import EngineGone
from podbot.exec_spec import ExecSpec
from podbot.execution.engine_start import EngineStart
from podbot.execution.time_limits import TIME_LIMITS
from podbot.streams.wake import Resize, Signal, Wake
from podbot.testing import FakeEngine
from tests.session.plans import SESSION, made


class Hanging(FakeEngine):
    """A signal arrives while it starts a command, which it never does."""

    def __init__(self, wake: Wake) -> None:
        super().__init__()
        self.wake = wake
        self.left: list[float | None] = []

    def exec_start(self, exec_id: str, *, tty: bool, size: Size | None, sooner: Sooner | None = None) -> SocketStream:
        del exec_id, tty, size
        assert sooner is not None
        self.left.append(sooner())
        for message in (Resize(), Signal(signal.SIGTERM)):
            self.wake.post(message)
            self.left.append(sooner())
        raise EngineGone(endpoint=self.endpoint, reason="no whole answer")


def test_after_a_signal_a_start_has_five_seconds() -> None:
    with contextlib.closing(Wake()) as wake:
        engine = Hanging(wake)
        made(engine, SESSION)
        with pytest.raises(EngineGone):
            EngineStart(engine, SESSION).begin(ExecSpec(("true",)), lambda: None, wake, TIME_LIMITS)
    assert engine.left == [None, None, 5.0]

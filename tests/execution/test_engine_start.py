"""A command that the engine starts: a signal that comes meanwhile does not wait for an engine that hangs."""

from __future__ import annotations

import contextlib
import signal

import pytest

from podbot.deadline import Sooner
from podbot.engine.port import ExecState, Size
from podbot.engine.transport import SocketStream
from podbot.errors import CommandSurvived, EngineGone, RequestFailed
from podbot.exec_spec import ExecSpec
from podbot.execution.engine_command import end_left_command
from podbot.execution.engine_start import EngineStart
from podbot.execution.time_limits import TIME_LIMITS
from podbot.frozen import replace
from podbot.streams.wake import Resize, Signal, Wake
from podbot.testing import FakeEngine
from tests.session.plans import SESSION, made
from tests.waiting import HANG, Clock


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


def test_whoever_watches_gets_the_id_before_the_command_starts() -> None:
    """Afterwards a KILL could come in between, and nobody would know the command."""
    engine = FakeEngine()
    made(engine, SESSION)
    seen: list[tuple[str, bool]] = []

    def created(exec_id: str) -> None:
        seen.append((exec_id, ("exec_start", exec_id) in engine.calls))

    with contextlib.closing(Wake()) as wake:
        start = EngineStart(engine, SESSION, created=created)
        start.begin(ExecSpec(("true",)), lambda: None, wake, TIME_LIMITS).close()
    ((exec_id, was_started),) = seen
    assert not was_started
    assert ("exec_start", exec_id) in engine.calls


class Late(FakeEngine):
    """Its command starts while somebody asks for the third time whether it runs."""

    asked = 0
    stream: SocketStream

    def exec_inspect(self, exec_id: str) -> ExecState:
        self.asked += 1
        if self.asked == 3:
            self.stream = self.exec_start(exec_id, tty=False, size=None)
        return super().exec_inspect(exec_id)


LONG = replace(TIME_LIMITS, term=HANG, kill=HANG, shell=HANG)


def end_left(engine: FakeEngine, exec_id: str, start: float = 10.0) -> float:
    """Seconds that podbot waited."""
    clock = Clock()
    began = clock.now
    end_left_command(engine, SESSION, exec_id, LONG, start=start, clock=clock.time, sleep=clock.sleep)
    return clock.now - began


def test_a_command_that_was_left_is_ended_also_if_its_start_was_not_over() -> None:
    engine = Late()
    made(engine, SESSION)
    exec_id = engine.exec_create(SESSION, ExecSpec(("sleep", "1000")))
    end_left(engine, exec_id)
    engine.stream.close()
    assert engine.asked > 3
    assert not engine.exec_inspect(exec_id).running


def test_a_command_that_does_not_start_gets_no_signal() -> None:
    engine = FakeEngine()
    made(engine, SESSION)
    exec_id = engine.exec_create(SESSION, ExecSpec(("true",)))
    assert end_left(engine, exec_id) >= 10.0
    assert [call for call in engine.calls if call[0] in ("exec_create", "exec_start")] == [("exec_create", SESSION)]


def test_a_command_whose_container_is_gone_has_ended() -> None:
    engine = FakeEngine()
    missing = RequestFailed(operation="inspect an exec session", status=404, reason="no such exec session")
    engine.fail("exec_inspect", missing)
    assert end_left(engine, "e") == 0


def test_an_engine_that_does_not_answer_is_asked_again_and_a_command_that_survives_is_an_error() -> None:
    engine = FakeEngine()
    made(engine, SESSION)
    exec_id = engine.exec_create(SESSION, ExecSpec(("sleep", "1000")))
    stream = engine.exec_start(exec_id, tty=False, size=None)
    gone = EngineGone(endpoint=engine.endpoint, reason="no whole answer")
    engine.fail("exec_inspect", gone)
    with pytest.raises(EngineGone):
        end_left(engine, exec_id)
    engine.fail("exec_create", gone, times=None)  # as of the `kill` inside
    engine.fail("processes", gone, times=None)
    with pytest.raises(CommandSurvived):
        end_left_command(engine, SESSION, exec_id, replace(TIME_LIMITS, term=0, kill=0))
    stream.close()

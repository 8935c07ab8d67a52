"""A guest as one command of the engine's: a real guest process behind an engine in memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from podbot.engine.port import ExecState
from podbot.errors import ChannelLost, ContainerNotFound, NoGuest
from podbot.guest.link import Patience
from podbot.guest.messages import GuestCommand
from podbot.guest.open_channel import open_channel
from podbot.guest.over_engine import open_over_engine
from podbot.testing import FakeEngine, ScriptedExec
from podbot.testing.peer import STDERR, STDOUT, ExecPeer
from tests.guest.liar import LONG, PATIENT
from tests.session.plans import SESSION, container


def real_python(io: ExecPeer) -> int:
    """The program that was asked for, of this host, with its streams as the engine carries them."""
    words = [sys.executable, *io.spec.command[1:]]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        stdin, stdout = child.stdin, child.stdout

        def feed() -> None:
            while data := io.read():
                stdin.write(data)
                stdin.flush()
            stdin.close()

        thread = threading.Thread(target=feed)
        thread.start()
        io.write(STDERR, b"a warning of the interpreter's\n")
        while data := os.read(stdout.fileno(), 1 << 16):
            io.write(STDOUT, data)
        thread.join()
    return child.returncode


@pytest.fixture
def engine() -> FakeEngine:
    found = FakeEngine()
    found.start(found.create(container()))
    return found


def test_commands_run_as_over_a_socket(engine: FakeEngine) -> None:
    engine.on("python3", real_python)
    printed: list[tuple[int, bytes]] = []
    with open_over_engine(engine, SESSION, PATIENT, status_seconds=LONG) as channel:
        command = GuestCommand(("sh", "-c", "cat; echo err >&2; exit 3"), stdin="open")
        running = channel.start(command, lambda stream, data: printed.append((stream, data)))
        running.write(b"x" * 300_000)
        running.close_stdin()
        ended = running.wait(LONG)
        assert ended is not None
        assert ended.code == 3
    assert b"".join(data for stream, data in printed if stream == 1) == b"x" * 300_000
    assert b"".join(data for stream, data in printed if stream == 2) == b"err\n"


@pytest.mark.parametrize(
    ("code", "reason"), [(127, "cannot be started"), (126, "cannot be started"), (1, "cannot run")]
)
def test_an_image_whose_python_is_missing_or_broken_has_no_guest(engine: FakeEngine, code: int, reason: str) -> None:
    engine.on("python3", ScriptedExec(stderr=b"exec: python3: not found\n", code=code))
    with pytest.raises(NoGuest, match=reason):
        open_over_engine(engine, SESSION, PATIENT, status_seconds=LONG)


class LateEngine(FakeEngine):
    """Says for the first two times that an exec runs."""

    asked = 0

    def exec_inspect(self, exec_id: str) -> ExecState:
        self.asked += 1
        return ExecState(running=True, exit_code=None, pid=1) if self.asked < 3 else super().exec_inspect(exec_id)


def test_a_status_that_the_engine_knows_late_is_waited_for() -> None:
    engine = LateEngine()
    engine.start(engine.create(container()))
    engine.on("python3", ScriptedExec(code=126))
    with pytest.raises(NoGuest, match="cannot be started"):
        open_over_engine(engine, SESSION, PATIENT, status_seconds=LONG)
    assert engine.asked == 3


def test_a_stream_that_is_not_the_engine_s_is_one_clear_error(engine: FakeEngine) -> None:
    def broken(io: ExecPeer) -> int:
        io.write_raw(b"\xff" * 100)
        io.read_all()
        return 0

    engine.on("python3", broken)
    with pytest.raises((ChannelLost, NoGuest)):
        open_over_engine(engine, SESSION, PATIENT, status_seconds=LONG)


def test_one_that_says_nothing_is_not_waited_for(engine: FakeEngine) -> None:
    engine.on("python3", ScriptedExec(waits=True))
    with pytest.raises(ChannelLost, match="did not answer"):
        open_over_engine(engine, SESSION, Patience(greeting=0.2))


def test_without_a_socket_the_engine_is_asked(engine: FakeEngine, tmp_path: object) -> None:
    engine.on("python3", real_python)
    for directory in (None, str(tmp_path)):
        with open_channel(engine, SESSION, directory) as channel:
            assert channel.start(GuestCommand(("true",))).wait(LONG) is not None


def test_a_container_that_is_gone_is_said_so(engine: FakeEngine) -> None:
    engine.remove(SESSION)
    with pytest.raises(ContainerNotFound):
        open_channel(engine, SESSION, None)

"""Starting beside the engine, and every reason not to."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.errors import RequestFailed
from podbot.execution import start as module
from podbot.execution.runner import ExecIO, ExecStatus, run_exec
from podbot.launch.pipes import TARGET
from podbot.launch.types import ExecSpec, Mount
from podbot.streams.wake import Signal, Wake
from podbot.testing import IMAGE, STDERR, STDOUT, ExecPeer, FakeEngine, ScriptedExec
from podbot.testing.shell import builtin
from tests.streams.plumbing import PATIENCE, Pipe, pipes
from tests.testing.contract import a_spec


@dataclasses.dataclass
class Rig:
    engine: FakeEngine
    name: str
    place: Path
    wake: Wake
    stdout: Pipe
    stderr: Pipe

    def run(self, **fields: bool) -> ExecStatus:
        spec = ExecSpec(command=("it", "--flag"), **fields)  # type: ignore[arg-type]
        io = ExecIO(None, self.stdout.write, self.stderr.write)
        return run_exec(self.engine, self.name, spec, io, self.wake, pipes=str(self.place))

    def said(self, pipe: Pipe) -> bytes:
        os.set_blocking(pipe.read, False)
        with contextlib.suppress(BlockingIOError):
            return os.read(pipe.read, 1 << 16)
        return b""

    @property
    def started(self) -> list[str]:
        """The programs, in order, as the engine was told to start them."""
        return [session.spec.command[0] for session in self.engine.sessions.values()]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A sandbox that does not mount the directory, unless a test says so: no shell there can open the pipes."""
    engine, spec, wake = FakeEngine(), a_spec(IMAGE), Wake()
    engine.start(engine.create(spec))
    engine.on("it", ScriptedExec(stdout=b"out", stderr=b"err", code=5))
    with contextlib.closing(wake), pipes(2) as (stdout, stderr):
        yield Rig(engine, spec.name, tmp_path, wake, stdout, stderr)


def _mounted(rig: Rig) -> None:
    found = rig.engine.by_name[rig.name]
    found.spec = dataclasses.replace(found.spec, files=(Mount(str(rig.place), TARGET, read_only=True),))


def test_one_start_where_the_pipes_are_there(rig: Rig) -> None:
    _mounted(rig)
    assert rig.run().code == 5
    assert (rig.said(rig.stdout), rig.said(rig.stderr)) == (b"out", b"err")
    assert rig.started == ["it"]
    assert os.listdir(rig.place) == []


@pytest.mark.parametrize(
    "shell",
    [
        ScriptedExec(stderr=b"sh: 1: cannot open it\n", code=2),
        ScriptedExec(stderr=b"x" * 200_000, code=1),
        ScriptedExec(code=0),
    ],
    ids=["cannot open", "a flood", "nothing at all"],
)
def test_a_shell_that_fails_is_not_heard_and_not_asked_again(rig: Rig, shell: ScriptedExec) -> None:
    rig.engine.on("sh", shell)
    for _ in range(2):
        assert rig.run().code == 5
        assert (rig.said(rig.stdout), rig.said(rig.stderr)) == (b"out", b"err")
    assert rig.started == ["sh", "it", "it"]
    assert os.listdir(rig.place) == [module.REFUSED]


def test_a_shell_that_could_not_be_started_may_be_asked_again(rig: Rig) -> None:
    rig.engine.on("sh", ScriptedExec(stderr=b"no such directory\n", code=127))
    assert rig.run().code == 5
    assert rig.said(rig.stderr) == b"err"
    assert os.listdir(rig.place) == []


def test_a_shell_that_never_says_its_word_is_ended(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: queue.SimpleQueue[int] = queue.SimpleQueue()

    def stuck(io: ExecPeer) -> int:
        if "kill" in io.spec.command[2]:  # how podbot ends it
            return builtin(io.spec, {}, rig.engine._kill)(io)
        io.write(STDERR, b"thinking")
        io.ended.wait(20)
        ended.put(io.signals.get_nowait())
        return 1

    monkeypatch.setattr(module, "PATIENCE", 0.05)
    rig.engine.on("sh", stuck)
    assert rig.run().code == 5
    assert rig.said(rig.stderr) == b"err"
    assert ended.get(timeout=PATIENCE) == signal.SIGTERM


def test_a_signal_is_not_kept_waiting(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(io: ExecPeer) -> int:
        if "kill" in io.spec.command[2]:
            return builtin(io.spec, {}, rig.engine._kill)(io)
        rig.wake.post(Signal(signal.SIGTERM))
        io.ended.wait(PATIENCE)
        return 1

    def patient(io: ExecPeer) -> int:
        io.ended.wait(PATIENCE)
        return 0

    monkeypatch.setattr(module, "HURRY", 0.05)
    rig.engine.on("sh", stuck)
    rig.engine.on("it", patient)
    begin = time.monotonic()
    assert rig.run() == ExecStatus(128 + signal.SIGTERM, signal.SIGTERM)
    assert time.monotonic() - begin < module.PATIENCE


def test_what_the_shell_says_before_its_word_goes_first(rig: Rig) -> None:
    def warned(io: ExecPeer) -> int:
        (place,) = {name.rpartition(".")[0] for name in os.listdir(rig.place)}
        io.write(STDERR, b"sh: warning\n")
        with open(rig.place / f"{place}.in", "rb", buffering=0) as stdin:
            io.write(STDOUT, b"\n")
            assert stdin.read(1) == b"\n"
        io.write(STDERR, b"err")
        return 5

    rig.engine.on("sh", warned)
    assert rig.run().code == 5
    assert rig.said(rig.stderr) == b"sh: warning\nerr"


def test_a_terminal_and_another_host_s_engine_have_none(rig: Rig) -> None:
    assert rig.run(tty=True).code == 5
    rig.engine.local = False
    assert rig.run().code == 5
    assert rig.started == ["it", "it"]


def test_a_directory_that_is_gone_or_full_costs_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str, mode: int) -> None:
        raise OSError(28, "No space left on device", path, mode)

    monkeypatch.setattr(os, "mkfifo", full)
    assert rig.run().code == 5
    monkeypatch.undo()
    os.rmdir(rig.place)
    assert rig.run().code == 5
    rig.place.mkdir()
    assert rig.started == ["it", "it"]


def test_an_engine_that_fails_in_between_leaves_nothing(rig: Rig) -> None:
    _mounted(rig)
    for operation in ("exec_create", "exec_start"):
        rig.engine.fail(operation, RequestFailed(operation=operation, status=500, reason="no"))
        with pytest.raises(RequestFailed):
            rig.run()
        assert os.listdir(rig.place) == []

"""Starting beside the engine, and every reason not to."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.errors import ExecFailed, RequestFailed
from podbot.execution.runner import ExecIO, ExecStatus, run_exec
from podbot.execution.streams import piped_start as module
from podbot.execution.streams import pump
from podbot.execution.streams.piped_shell import CANNOT_OPEN
from podbot.launch.pipes import TARGET
from podbot.launch.types import ExecSpec, Mount
from podbot.streams.wake import Signal, Wake
from podbot.testing import IMAGE, STDERR, STDOUT, ExecPeer, FakeEngine, ScriptedExec
from podbot.testing.engine_contract import a_spec
from tests.streams.plumbing import PATIENCE, Pipe, pipes


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
        ScriptedExec(code=CANNOT_OPEN),
        ScriptedExec(stderr=b"x" * 200_000, code=CANNOT_OPEN),
    ],
    ids=["cannot open", "a flood"],
)
def test_a_shell_that_fails_is_not_heard_and_not_asked_again(rig: Rig, shell: ScriptedExec) -> None:
    rig.engine.on("/bin/sh", shell)
    for _ in range(2):
        assert rig.run().code == 5
        assert (rig.said(rig.stdout), rig.said(rig.stderr)) == (b"out", b"err")
    assert rig.started == ["/bin/sh", "it", "it"]
    assert os.listdir(rig.place) == [module.REFUSED]


@pytest.mark.parametrize(
    "shell",
    [
        ScriptedExec(stderr=b"no such directory\n", code=127),
        ScriptedExec(stdout=b"Welcome!\n", code=0),
        ScriptedExec(stdout=b"\n", code=2),
        ScriptedExec(stderr=b"killed", code=137),
    ],
    ids=["not started", "a banner", "half a word", "killed"],
)
def test_a_shell_that_failed_once_may_be_asked_again(rig: Rig, shell: ScriptedExec) -> None:
    rig.engine.on("/bin/sh", shell)
    assert rig.run().code == 5
    assert rig.said(rig.stderr) == b"err"
    assert os.listdir(rig.place) == []


def test_a_shell_that_never_says_its_word_is_ended(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: queue.SimpleQueue[int] = queue.SimpleQueue()

    def stuck(io: ExecPeer) -> int:
        io.write(STDERR, b"thinking")
        io.ended.wait(20)
        ended.put(io.signals.get_nowait())
        return 1

    monkeypatch.setattr(module, "OPEN_TIMEOUT", 0.05)
    rig.engine.on("/bin/sh", stuck)
    assert rig.run().code == 5
    assert rig.said(rig.stderr) == b"err"
    assert ended.get(timeout=PATIENCE) == signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_not_kept_waiting_and_nothing_is_started(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def stuck(io: ExecPeer) -> int:
        rig.wake.post(Signal(number))
        io.ended.wait(PATIENCE)
        return 1

    monkeypatch.setattr(module, "OPEN_TIMEOUT_AFTER_SIGNAL", 0.05)
    rig.engine.on("/bin/sh", stuck)
    begin = time.monotonic()
    assert rig.run() == ExecStatus(128 + number, number)
    assert time.monotonic() - begin < module.OPEN_TIMEOUT
    assert "it" not in rig.started
    assert os.listdir(rig.place) == [], "the next command has pipes"


def test_what_the_shell_says_before_its_word_goes_first(rig: Rig) -> None:
    def warned(io: ExecPeer) -> int:
        (place,) = {name.rpartition(".")[0] for name in os.listdir(rig.place)}
        io.write(STDERR, b"sh: warning\n")
        paths = (str(rig.place / f"{place}{way}") for way in (".in", ".out"))
        with open(next(paths), "rb", buffering=0) as stdin, open(next(paths), "wb", buffering=0):
            io.write(STDOUT, f"{place}.in\n".encode())
            assert stdin.read(1) == b"\n"
        io.write(STDERR, b"err")
        return 5

    rig.engine.on("/bin/sh", warned)
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


def test_an_engine_that_fails_in_between_leaves_nothing_and_is_asked_for_the_command_itself(rig: Rig) -> None:
    _mounted(rig)
    for operation in ("exec_create", "exec_start"):
        failure = RequestFailed(operation=operation, status=500, reason="no")
        rig.engine.fail(operation, failure)
        assert rig.run().code == 5
        rig.engine.fail(operation, failure, times=2)
        with pytest.raises(RequestFailed):
            rig.run()
        assert os.listdir(rig.place) == []


def test_a_pump_that_is_killed_ends_the_command_and_is_named(rig: Rig) -> None:
    def waits(io: ExecPeer) -> int:
        (pump_id,) = (int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _pumps(pid, rig.place))
        os.kill(pump_id, signal.SIGKILL)
        io.ended.wait(PATIENCE)
        return 0

    _mounted(rig)
    rig.engine.on("it", waits)
    with pytest.raises(ExecFailed, match="carried its input and output"):
        rig.run()


def _pumps(pid: str, place: Path) -> bool:
    with contextlib.suppress(OSError):
        return str(place).encode() in Path("/proc", pid, "cmdline").read_bytes()
    return False


@pytest.mark.parametrize("program", ["", "/opt/app", "uwsgi", "/opt/python-app"])
def test_a_podbot_inside_another_program_has_no_pipes(rig: Rig, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    _mounted(rig)
    monkeypatch.setattr(sys, "executable", program)
    assert rig.run().code == 5
    assert os.listdir(rig.place) == []


def test_a_pump_that_does_not_start_costs_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    _mounted(rig)
    monkeypatch.setattr(pump, "__file__", "/no/such/pump.py")
    assert rig.run().code == 5
    assert rig.said(rig.stdout) == b"out"

"""The one exec path against FakeEngine: real sockets, the real relay, commands that are functions."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import signal
import threading
from collections.abc import Iterator

import pytest

from podbot.engine.port import Size
from podbot.errors import (
    CommandSurvived,
    ContainerNotFound,
    EngineGone,
    ExecFailed,
    HealthCheckFailed,
    OutputClosed,
    RequestFailed,
    SandboxDied,
)
from podbot.exec_spec import ExecSpec
from podbot.execution.runner import ExecIO, ExecStatus, run_exec
from podbot.streams.screen import ScreenModes
from podbot.streams.wake import Continued, Resize, Signal, Suspend
from podbot.testing import STDERR, STDOUT, ExecPeer, ScriptedExec
from tests.execution.runner_rig import NEVER, Rig
from tests.execution.running import Running, Told
from tests.streams.plumbing import nothing_left_open
from tests.waiting import HANG, wait_until

GONE = EngineGone(endpoint="unix:///fake/engine.sock", reason="connection refused")


@pytest.fixture
def rig(container: Running) -> Rig:
    return Rig(**vars(container))


@pytest.fixture
def killed_at_once(rig: Rig) -> None:
    """TERM is followed by KILL, and nothing more is relayed then."""
    rig.limits = dataclasses.replace(NEVER, term=0, last_output=0)


# --- status and streams ---------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 3, 125, 127, 137, 255])
def test_the_status_is_the_commands_own(rig: Rig, code: int) -> None:
    status = rig.run(ScriptedExec(stdout=b"out", stderr=b"err", code=code))
    assert status == ExecStatus(code=code, signal=None)
    assert (rig.said(rig.stdout), rig.said(rig.stderr)) == (b"out", b"err")


def test_stdin_and_its_end_reach_the_command(rig: Rig) -> None:
    def upper(io: ExecPeer) -> int:
        io.write(STDOUT, io.read_all().upper())
        return 0

    os.write(rig.stdin.write, b"hello")
    rig.stdin.close(rig.stdin.write)
    assert rig.run(upper).code == 0
    assert rig.said(rig.stdout) == b"HELLO"


def test_the_session_ends_with_the_command_while_stdin_is_open(rig: Rig) -> None:
    assert rig.run(ScriptedExec(code=4)).code == 4


def test_a_spec_without_stdin_does_not_read_the_callers(rig: Rig) -> None:
    os.write(rig.stdin.write, b"not yours")
    assert rig.run(ScriptedExec(waits=True), stdin=False).code == 0
    assert rig.said(rig.stdin) == b"not yours"


def test_detached_output_is_discarded_and_the_status_kept(rig: Rig) -> None:
    status = rig.run(ScriptedExec(stdout=b"x" * (1 << 20), code=5, waits=True), io=ExecIO(None, None, None))
    assert status.code == 5
    assert (rig.said(rig.stdout), rig.said(rig.stderr)) == (b"", b"")


def test_it_runs_the_requested_command(rig: Rig) -> None:
    rig.run(ScriptedExec())
    (session,) = rig.engine.sessions.values()
    assert session.spec == ExecSpec(command=("it", "--flag"))
    operations = [name for name, _ in rig.engine.calls if name.startswith("exec")]
    assert operations[:2] == ["exec_create", "exec_start"]
    assert set(operations[2:]) == {"exec_inspect"}


def test_a_late_status_is_waited_for(rig: Rig) -> None:
    done = threading.Event()

    def closes_early(io: ExecPeer) -> int:
        io.drop()
        done.wait(HANG)
        return 6

    inspect = rig.engine.exec_inspect

    def slow(exec_id: str):  # type: ignore[no-untyped-def]
        state = inspect(exec_id)
        done.set()
        return state

    rig.engine.exec_inspect = slow  # type: ignore[method-assign]
    assert rig.run(closes_early).code == 6


# --- terminals ------------------------------------------------------------------------------------


def test_a_terminal_has_a_first_size_and_is_restored(rig: Rig) -> None:
    rig.size = Size(columns=101, rows=33)

    def drawing(io: ExecPeer) -> int:
        assert io.size == Size(columns=101, rows=33)
        io.write(STDOUT, b"hi\n")
        return 0

    assert rig.run(drawing, tty=True).code == 0
    assert rig.terminal == ["raw", "restored"]
    assert rig.said(rig.stdout) == b"hi\r\n"


def test_no_terminal_without_tty(rig: Rig) -> None:
    rig.size = Size(columns=101, rows=33)
    rig.run(ScriptedExec())
    assert rig.terminal == []
    assert ("exec_resize", "") not in rig.engine.calls


def test_new_sizes_are_passed_on_and_missing_ones_skipped(rig: Rig) -> None:
    answers = iter([Size(80, 24), Size(100, 30), None, Size(60, 20)])
    asked: queue.SimpleQueue[Size | None] = queue.SimpleQueue()

    def size() -> Size | None:
        asked.put(answer := next(answers))
        return answer

    def watching(io: ExecPeer) -> int:
        assert asked.get(timeout=HANG) == io.size
        for _ in range(3):
            rig.wake.post(Resize())
            if (answer := asked.get(timeout=HANG)) is not None:
                assert io.sizes.get(timeout=HANG) == answer
        return 0

    io = ExecIO(None, None, None, size, rig.on_terminal)
    assert rig.run(watching, tty=True, io=io).code == 0
    assert [name for name, _ in rig.engine.calls].count("exec_resize") == 2


def test_a_resize_that_the_engine_refuses_does_not_end_the_command(rig: Rig) -> None:
    rig.size = Size(80, 24)
    rig.engine.fail("exec_resize", RequestFailed(operation="resize", status=409, reason="no"))

    def watching(io: ExecPeer) -> int:
        io.trap(signal.SIGINT)  # before it is sent: an untrapped one ends the command
        rig.wake.post(Resize())
        rig.wake.post(Signal(signal.SIGINT))
        return 7 if io.signals.get(timeout=HANG) == signal.SIGINT else 1

    assert rig.run(watching, tty=True).code == 7


@pytest.fixture
def hangup() -> Iterator[None]:
    """The disposition of HUP is as before at the end."""
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("disposition", "status"),
    [
        (signal.SIG_DFL, ExecStatus(code=128 + signal.SIGHUP, signal=signal.SIGHUP)),
        (signal.SIG_IGN, ExecStatus(code=3, signal=None)),
    ],
)
def test_a_terminal_that_is_gone_without_a_signal_ends_it_as_hup_does(
    rig: Rig, hangup: None, disposition: signal.Handlers, status: ExecStatus
) -> None:
    """Issue 33.11: under ``su -`` no HUP arrives, because the terminal is another session's."""
    signal.signal(signal.SIGHUP, disposition)
    controller, terminal = os.openpty()

    def agent(io: ExecPeer) -> int:
        os.close(controller)
        if disposition == signal.SIG_DFL:
            io.ended.wait(HANG)
        else:
            assert io.read() == b""
        return 3

    try:
        assert rig.run(agent, tty=True, io=ExecIO(terminal, None, None, lambda: None, rig.on_terminal)) == status
    finally:
        os.close(terminal)


def test_a_terminal_that_cannot_be_made_raw_ends_the_command(rig: Rig) -> None:
    def failing() -> contextlib.AbstractContextManager[None]:
        raise ValueError("no terminal")

    def waiting(io: ExecPeer) -> int:
        io.ended.wait(HANG)
        return 0

    io = ExecIO(None, None, None, lambda: None, failing)
    with pytest.raises(ValueError, match="no terminal"):
        rig.run(waiting, tty=True, io=io)
    assert rig.session_codes == [143]


# --- signals --------------------------------------------------------------------------------------


def test_an_interrupt_is_passed_on_and_the_session_continues(rig: Rig) -> None:
    def prompt(io: ExecPeer) -> int:
        io.trap(signal.SIGINT)
        for _ in range(2):
            rig.wake.post(Signal(signal.SIGINT))
            assert io.signals.get(timeout=HANG) == signal.SIGINT
        io.write(STDERR, b"^C^C")
        return 130

    assert rig.run(prompt) == ExecStatus(code=130, signal=None)
    assert rig.said(rig.stderr) == b"^C^C"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_term_and_hup_end_it(rig: Rig, number: signal.Signals) -> None:
    def agent(io: ExecPeer) -> int:
        rig.wake.post(Signal(number))
        io.ended.wait(HANG)
        return 0

    assert rig.run(agent) == ExecStatus(code=128 + number, signal=number)
    assert rig.session_codes == [128 + number]


def test_the_output_of_a_command_that_cleans_up_is_read_to_its_end(rig: Rig) -> None:
    def tidy(io: ExecPeer) -> int:
        io.trap(signal.SIGTERM)
        rig.wake.post(Signal(signal.SIGTERM))
        assert io.signals.get(timeout=HANG) == signal.SIGTERM
        io.write(STDOUT, b"saved")
        return 0

    assert rig.run(tidy) == ExecStatus(code=143, signal=signal.SIGTERM)
    assert rig.said(rig.stdout) == b"saved"


def test_a_command_that_ignores_term_is_killed(rig: Rig, killed_at_once: None) -> None:
    def stubborn(io: ExecPeer) -> int:
        io.trap(signal.SIGTERM, signal.SIGKILL)
        rig.wake.post(Signal(signal.SIGTERM))
        io.ended.wait(HANG)
        return 0

    assert rig.run(stubborn) == ExecStatus(code=143, signal=signal.SIGTERM)
    assert rig.session_codes == [137]


def test_unread_output_of_a_killed_command_does_not_block(rig: Rig, killed_at_once: None) -> None:
    def shouting(io: ExecPeer) -> int:
        io.trap(signal.SIGTERM)
        for _ in range(10):  # more than the pipe takes
            io.write(STDOUT, b"x" * 65536)
        rig.wake.post(Signal(signal.SIGTERM))
        while True:
            io.write(STDOUT, b"x" * 65536)

    assert rig.run(shouting) == ExecStatus(code=143, signal=signal.SIGTERM)


def test_a_second_signal_while_it_ends_is_not_sent_again(rig: Rig) -> None:
    def tidy(io: ExecPeer) -> int:
        io.trap(signal.SIGTERM, signal.SIGHUP)
        rig.wake.post(Signal(signal.SIGTERM))
        assert io.signals.get(timeout=HANG) == signal.SIGTERM
        rig.wake.post(Signal(signal.SIGHUP))
        return 0

    assert rig.run(tidy).signal == signal.SIGTERM


# --- the ways in which it can break ---------------------------------------------------------------


def test_the_status_is_known_although_the_engine_forgets_it_before_all_output_is_read(rig: Rig) -> None:
    """A reader such as a pager may read on for minutes; the engine removes the record 30 s after the end."""
    size = 600_000  # more than a pipe holds, and less than podbot keeps
    read: list[bytes] = []

    def slow() -> None:
        wait_until(lambda: "exec_inspect" in [name for name, _ in rig.engine.calls], "podbot to ask for the status")
        error = RequestFailed(operation="inspect an exec session", status=404, reason="no such exec session")
        rig.engine.fail("exec_inspect", error, times=None)
        while sum(map(len, read)) < size:
            read.append(os.read(rig.stdout.read, 1 << 16))

    reader = threading.Thread(target=slow)
    reader.start()
    status = rig.run(ScriptedExec(stdout=b"x" * size, code=3))
    reader.join(HANG)
    assert status == ExecStatus(3)
    assert sum(map(len, read)) == size


def test_a_missing_container(rig: Rig) -> None:
    with pytest.raises(ContainerNotFound):
        run_exec(rig.engine, "nobody", ExecSpec(command=("true",)), rig.io(), rig.wake)


def test_a_failed_start_does_not_change_the_terminal(rig: Rig) -> None:
    rig.engine.fail("exec_start", ExecFailed(container=rig.name, command="it", reason="no"))
    with pytest.raises(ExecFailed):
        rig.run(ScriptedExec(), tty=True)
    assert rig.terminal == []


def test_a_dead_container_is_distinguished_from_a_killed_command(rig: Rig) -> None:
    def out_of_memory(io: ExecPeer) -> int:
        rig.engine.die(rig.name)
        return 0

    with pytest.raises(SandboxDied) as caught:
        rig.run(out_of_memory)
    assert (caught.value.container, caught.value.reason) == (rig.name, "the container is exited")
    assert (caught.value.cause, "from outside" in caught.value.remedy) == ("not_running", True)
    rig.engine.start(rig.name)
    assert rig.run(ScriptedExec(code=137)).code == 137


def test_a_removed_container(rig: Rig) -> None:
    def removed(io: ExecPeer) -> int:
        rig.engine.remove(rig.name)
        return 0

    with pytest.raises(SandboxDied) as caught:
        rig.run(removed)
    assert (caught.value.reason, caught.value.cause) == ("the container was removed", "removed")


def test_who_ended_a_container_is_asked_of_the_caller(rig: Rig) -> None:
    def removed(io: ExecPeer) -> int:
        rig.engine.remove(rig.name)
        return 0

    rig.engine.on("it", removed)
    with pytest.raises(SandboxDied) as caught:
        run_exec(rig.engine, rig.name, ExecSpec(("it",)), rig.io(), rig.wake, witness=Told("stopped"))
    assert (caught.value.reason, caught.value.cause) == ("a podbot was told to stop it", "stopped")


def test_who_ended_a_container_is_asked_again_because_a_killed_podbot_has_its_locks_a_little_longer(rig: Rig) -> None:
    def dies(io: ExecPeer) -> int:
        rig.engine.die(rig.name)
        return 0

    rig.engine.on("it", dies)
    with pytest.raises(SandboxDied) as caught:
        run_exec(rig.engine, rig.name, ExecSpec(("it",)), rig.io(), rig.wake, witness=Told(afterwards="owner_killed"))
    assert caught.value.cause == "owner_killed"


@pytest.mark.parametrize("way", ["term", "reader"])
@pytest.mark.parametrize("sandbox_ends", [False, True])
def test_a_command_that_nobody_could_signal_is_an_error(rig: Rig, way: str, sandbox_ends: bool) -> None:
    """Issue 10.7: with the engine's storage full, one outlived podbot's TERM, and podbot said that it had ended."""
    rig.limits = dataclasses.replace(NEVER, term=0, kill=0, last_output=0, status=0)
    over = threading.Event()

    def survivor(io: ExecPeer) -> int:
        if way == "term":
            rig.wake.post(Signal(signal.SIGTERM))
        else:
            rig.stdout.close(rig.stdout.read)
            io.write(STDOUT, b"x")
        over.wait(2 * HANG)
        return 0

    rig.engine.on("sh", ScriptedExec(code=1))  # nothing can be signalled from inside
    rig.engine.on("it", survivor)

    def run() -> ExecStatus:
        return rig.exec(ExecSpec(command=("it",), stdin=False), sandbox_ends=sandbox_ends)

    try:
        if not sandbox_ends:
            with pytest.raises(CommandSurvived) as caught:
                run()
            assert (caught.value.container, caught.value.command) == (rig.name, "it")
        elif way == "reader":
            with pytest.raises(OutputClosed):
                run()
        else:
            assert run() == ExecStatus(code=143, signal=signal.SIGTERM)
    finally:
        over.set()


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_reader_that_closes_the_output_ends_the_command(rig: Rig, name: str) -> None:
    def talking(io: ExecPeer) -> int:
        rig.stdout.close(rig.stdout.read)
        rig.stderr.close(rig.stderr.read)
        io.write(STDOUT if name == "stdout" else STDERR, b"x")
        io.ended.wait(HANG)
        return 0

    with pytest.raises(OutputClosed) as caught:
        rig.run(talking)
    assert caught.value.stream == name
    assert rig.session_codes == [143]


def test_a_reader_that_closes_the_output_kills_a_command_that_ignores_term(rig: Rig, killed_at_once: None) -> None:
    def stubborn(io: ExecPeer) -> int:
        io.trap(signal.SIGTERM)
        rig.stdout.close(rig.stdout.read)
        io.write(STDOUT, b"x")
        io.ended.wait(HANG)
        return 0

    with pytest.raises(OutputClosed):
        rig.run(stubborn)
    assert rig.session_codes == [137]


def test_a_stream_without_framing_ends_the_command(rig: Rig) -> None:
    def broken(io: ExecPeer) -> int:
        io.write_raw(b"HTTP/1.1 500 oops")
        io.ended.wait(HANG)
        return 0

    with pytest.raises(HealthCheckFailed) as caught:
        rig.run(broken)
    assert caught.value.endpoint == rig.engine.endpoint
    assert rig.session_codes == [143]


def test_truncated_output_is_no_success(rig: Rig) -> None:
    def cut(io: ExecPeer) -> int:
        io.write_raw(b"\1\0\0\0\0\0\0\5abc")
        return 0

    with pytest.raises(EngineGone) as caught:
        rig.run(cut)
    assert "broke off" in caught.value.reason


def test_an_exception_from_outside_ends_the_command_and_is_raised_again(rig: Rig) -> None:
    def sized() -> Size | None:
        if rig.terminal == ["raw"]:
            raise KeyboardInterrupt
        return None

    def waiting(io: ExecPeer) -> int:
        wait_until(lambda: rig.terminal == ["raw"])
        rig.wake.post(Resize())
        io.ended.wait(HANG)
        return 0

    io = ExecIO(None, None, None, sized, rig.on_terminal)
    with pytest.raises(KeyboardInterrupt):
        rig.run(waiting, tty=True, io=io)
    assert rig.session_codes == [143]
    assert rig.terminal == ["raw", "restored"]


def test_a_stream_that_ends_before_its_command_ends_the_command(rig: Rig) -> None:
    rig.limits = dataclasses.replace(NEVER, status=0)

    def deserted(io: ExecPeer) -> int:
        io.drop()
        io.ended.wait(HANG)
        return 0

    with pytest.raises(ExecFailed) as caught:
        rig.run(deserted)
    assert "never reported" in caught.value.reason
    assert rig.session_codes == [143]


def test_an_engine_that_forgets_the_status(rig: Rig) -> None:
    state = rig.engine.exec_inspect

    def forgetful(exec_id: str):  # type: ignore[no-untyped-def]
        import dataclasses

        return dataclasses.replace(state(exec_id), exit_code=None, running=False)

    rig.engine.exec_inspect = forgetful  # type: ignore[method-assign]
    with pytest.raises(ExecFailed) as caught:
        rig.run(ScriptedExec())
    assert "without a status" in caught.value.reason


def test_nothing_stays_open(rig: Rig) -> None:
    rig.run(ScriptedExec())
    with nothing_left_open():
        for number in range(5):
            rig.run(ScriptedExec(stdout=b"x", code=number))


# --- Ctrl-Z --------------------------------------------------------------------------------------


def test_a_command_that_may_have_suspended_itself_is_continued(rig: Rig) -> None:
    """The fake's processes cannot be seen in /proc, as a remote engine's."""
    rig.limits = dataclasses.replace(NEVER, looks=(0.0, 0.01))

    def command(peer: ExecPeer) -> int:
        peer.trap(signal.SIGCONT)
        os.write(rig.stdin.write, b"a\x1a")
        assert peer.read() == b"a\x1a"
        return peer.signals.get()

    assert rig.run(command, tty=True) == ExecStatus(code=signal.SIGCONT)


def test_podbot_stopped_by_another_process_suspends_itself_and_redraws(rig: Rig) -> None:
    asked: list[object] = []

    class Recorded:
        def suspend(self, leave: bytes, enter: bytes, *, commanded: bool) -> None:
            assert commanded
            asked.append((leave, enter))

        def retake(self, enter: bytes) -> None:
            asked.append(enter)

    def command(peer: ExecPeer) -> int:
        peer.trap(signal.SIGCONT)
        peer.write(STDOUT, b"\x1b[?1049h")
        assert os.read(rig.stdout.read, 100) == b"\x1b[?1049h"
        rig.wake.post(Suspend())
        number = peer.signals.get()
        rig.wake.post(Continued())
        sizes = [peer.sizes.get() for _ in range(4)]
        assert set(sizes) == {Size(100, 29), Size(100, 30)}
        return number

    rig.size = Size(100, 30)
    io = dataclasses.replace(rig.io(), job=Recorded())
    assert rig.run(command, tty=True, io=io) == ExecStatus(code=signal.SIGCONT)
    enter = b"\x1b[?1049h"
    screen = ScreenModes()
    screen.feed(enter)
    assert asked == [(screen.lend(), enter), enter]

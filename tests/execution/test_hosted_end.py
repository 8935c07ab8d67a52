"""How a hosted exec ends: by the agent, by the client, by a signal, and with clients that read nothing."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import threading

import pytest

from podbot.errors import DiskFull, EngineGone, OutputClosed, RequestFailed, SandboxDied
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.streams.relay import LIMIT
from podbot.streams.wake import Resize, Signal
from podbot.testing import STDERR, STDOUT, ExecPeer, ScriptedExec
from tests.execution.hosted_rig import BRIEF, LONG, Rig, Stubborn
from tests.streams.channels import LineFilter
from tests.waiting import HANG, wait_until

# --- the agent's own end ----------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 3, 137, 255])
def test_the_session_ends_with_the_agent_while_the_client_is_connected(rig: Rig, code: int) -> None:
    assert rig.run(ScriptedExec(stdout=b"one\ntwo\n", stderr=b"err", code=code)) == ExecStatus(code)
    assert (rig.said(rig.stdout), rig.said(rig.stderr)) == (b"one\ntwo\n", b"err")
    assert rig.through.ends == ["agent"]
    assert not rig.events


def test_an_agent_that_exits_when_its_input_ends(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, io.read_all().upper())
        return 4

    os.write(rig.stdin.write, b"hello\nhalf")
    rig.stdin.close(rig.stdin.write)
    assert rig.run(agent) == ExecStatus(4)
    assert rig.said(rig.stdout) == b"HELLO\n"
    assert not rig.events


# --- the client's end, and signals ------------------------------------------------------------------


def test_an_agent_that_ignores_the_end_of_its_input_gets_term(rig: Rig) -> None:
    rig.wait(grace=0)
    rig.stdin.close(rig.stdin.write)
    assert rig.run(Stubborn()) == ExecStatus(128 + signal.SIGTERM)
    assert rig.kinds == ["host.grace"]


def test_an_agent_that_ignores_term_is_killed(rig: Rig) -> None:
    rig.wait(grace=0, term=0)
    agent = Stubborn(deaf=True, begun=lambda: rig.stdin.close(rig.stdin.write))
    assert rig.run(agent) == ExecStatus(128 + signal.SIGKILL)
    assert agent.signals == [signal.SIGTERM, signal.SIGKILL]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_its_input_before_anything_else(rig: Rig, number: int) -> None:
    os.write(rig.stdin.write, b"queued\n")

    def agent(io: ExecPeer) -> int:
        got = io.read()
        rig.wake.post(Resize())
        rig.wake.post(Signal(number))
        io.write(STDOUT, got + io.read_all() + b"bye\n")
        return 0

    assert rig.run(agent) == ExecStatus(128 + number, signal=number)
    assert rig.said(rig.stdout) == b"queued\nbye\n"
    assert not rig.events


def test_a_second_signal_does_not_wait_for_the_grace(rig: Rig) -> None:
    agent = Stubborn(deaf=True)

    def thrice() -> None:
        for _ in range(3):
            rig.wake.post(Signal(signal.SIGINT))
            assert agent.ended_input.wait(HANG)

    with rig.meanwhile(thrice):
        assert rig.run(agent) == ExecStatus(130, signal=signal.SIGINT)
    assert agent.signals == [signal.SIGTERM, signal.SIGKILL]
    assert "deadline" not in rig.end.since.pauses, "none of it came by the time"


def test_a_signal_after_the_clients_end_only_changes_the_status(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        io.read_all()
        rig.wake.post(Signal(signal.SIGTERM))
        io.write(STDOUT, b"saved\n")  # podbot polls at least once between this and the end, and so sees the signal
        return 0

    rig.stdin.close(rig.stdin.write)
    assert rig.run(agent) == ExecStatus(143, signal=15)
    assert rig.said(rig.stdout) == b"saved\n"


def test_what_is_queued_reaches_a_slow_agent_before_its_input_ends(rig: Rig) -> None:
    """The grace passes twice, each time after the agent has taken something."""
    sent = b"x" * 1023 + b"\n"
    took = bytearray()
    graces = 0

    def agent(io: ExecPeer) -> int:
        nonlocal graces
        while piece := io.read(64 << 10):
            took.extend(piece)
            if len(took) < 600 << 10:
                continue
            wait_until(lambda: "input_ended" in rig.end.since.pauses)  # podbot can queue the rest
            if len(took) > rig.end.since.sent and graces < 2:
                graces += 1
                rig.end.pass_deadline()
        return 0

    def client() -> None:
        for _ in range(1500):
            os.write(rig.stdin.write, sent)
        rig.stdin.close(rig.stdin.write)

    with rig.meanwhile(client):
        assert rig.run(agent) == ExecStatus(0)
    assert len(took) == 1500 * 1024
    assert graces == 2
    assert not rig.events


def test_an_agent_that_reads_nothing_is_not_waited_for(rig: Rig) -> None:
    rig.wait(grace=0)

    def agent(io: ExecPeer) -> int:
        io.ended.wait(LONG)
        return 0

    def client() -> None:
        for _ in range(900):
            os.write(rig.stdin.write, b"x" * 1023 + b"\n")
        rig.stdin.close(rig.stdin.write)

    with rig.meanwhile(client):
        assert rig.run(agent) == ExecStatus(143)


# --- a client that does not read, or is gone ----------------------------------------------------------


def read_in_bites(rig: Rig, size: int, bites: int) -> bytes:
    """The client reads ``size`` bytes; so many times all patience passes, each time after it has taken something."""
    got = bytearray()
    while len(got) < size and (piece := os.read(rig.stdout.read, 8192)):
        got += piece
        if bites and len(got) > rig.end.since.delivered:
            bites -= 1
            rig.end.pass_deadline()
    assert not bites
    return bytes(got)


def test_output_is_delivered_to_a_slow_reader_after_the_end(rig: Rig) -> None:
    line = b"y" * 1023 + b"\n"
    got = b""

    def reader() -> None:
        nonlocal got
        wait_until(lambda: "undelivered" in rig.end.since.pauses)
        got = read_in_bites(rig, 900 * 1024, bites=5)

    with rig.meanwhile(reader):
        assert rig.run(ScriptedExec(stdout=line * 900)) == ExecStatus(0)
        rig.stdout.close(rig.stdout.write)
    assert got == line * 900
    assert not rig.events


def test_a_client_that_reads_nothing_is_abandoned(rig: Rig) -> None:
    rig.wait(delivery=0)
    assert rig.run(ScriptedExec(stdout=b"z" * 299_999 + b"\n", code=3)) == ExecStatus(3)
    assert rig.kinds == ["host.undelivered"]
    assert rig.events[0].fields["bytes"] == 300_000 - fcntl.fcntl(rig.stdout.write, fcntl.F_GETPIPE_SZ)


def test_with_a_client_that_reads_nothing_the_engine_is_asked(rig: Rig) -> None:
    """More output than all buffers can take: the stream's end is not seen, so the engine's answer decides."""
    rig.wait(look=BRIEF, delivery=0)

    def agent(io: ExecPeer) -> int:
        with contextlib.suppress(OSError):
            while True:
                io.write(STDOUT, b"z" * 8191 + b"\n")
        return 5

    def ends_unseen() -> None:
        wait_until(lambda: [name for name, _ in rig.engine.calls].count("exec_inspect") > 2)
        assert not rig.events, "as long as it runs, nothing is given up"
        (session,) = rig.engine.sessions.values()
        session.code = 5

    with rig.meanwhile(ends_unseen):
        assert rig.run(agent) == ExecStatus(5)
    assert rig.kinds == ["host.undelivered"]


def test_a_slow_reader_is_not_treated_as_one_that_reads_nothing(rig: Rig) -> None:
    """The bytes that were read count, not those that wait, because the queue is refilled each time."""
    size = 3 << 20
    line = b"y" * 8191 + b"\n"
    got = b""

    def agent(io: ExecPeer) -> int:
        for _ in range(size // len(line)):
            io.write(STDOUT, line)
        return 0

    def reader() -> None:
        nonlocal got
        wait_until(lambda: rig.end.since.pauses == () and rig.end.undelivered >= LIMIT)
        (session,) = rig.engine.sessions.values()
        session.code = 0  # it ends unseen: the stream's end is behind what nobody reads
        for _ in range(2):  # the second look finds that nothing was read since the first, and asks the engine
            rig.end.pass_deadline()
        assert [name for name, _ in rig.engine.calls].count("exec_inspect") == 1
        got = read_in_bites(rig, size, bites=20)

    with rig.meanwhile(reader):
        assert rig.run(agent) == ExecStatus(0)
        rig.stdout.close(rig.stdout.write)
    assert got == line * (size // len(line))
    assert not rig.events


def test_a_client_that_reads_nothing_and_disconnects_ends_it(rig: Rig) -> None:
    rig.wait(grace=0, term=0, last_output=0)

    def agent(io: ExecPeer) -> int:
        with contextlib.suppress(OSError):
            for number in range(1 << 20):
                io.write(STDOUT, b"z" * 8191 + b"\n")
                if number == 100:  # more than a pipe takes
                    rig.stdin.close(rig.stdin.write)
        return 5

    assert rig.run(agent).code == 143


def test_a_closed_stdout_ends_the_agent(rig: Rig) -> None:
    ended = threading.Event()

    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"hello\n")
        io.ended.wait(LONG)
        ended.set()
        return 0

    rig.stdout.close(rig.stdout.read)
    with pytest.raises(OutputClosed, match="stdout went away, so the command inside was terminated"):
        rig.run(agent)
    assert ended.wait(HANG)


def test_a_client_that_is_all_gone_leaves_the_agent_its_grace(rig: Rig) -> None:
    saved = threading.Event()

    def agent(io: ExecPeer) -> int:
        io.read_all()
        for _ in range(3):
            io.write(STDOUT, b"still at it\n")
            rig.end.stdout_closed.wait(HANG)
        saved.set()
        return 0

    rig.stdin.close(rig.stdin.write)
    rig.stdout.close(rig.stdout.read)
    with pytest.raises(OutputClosed):
        rig.run(agent)
    assert saved.is_set(), "it was not killed in the middle"


def test_a_closed_stderr_ends_nothing(rig: Rig) -> None:
    rig.stderr.close(rig.stderr.read)
    assert rig.run(ScriptedExec(stdout=b"out\n", stderr=b"err", code=6)) == ExecStatus(6)
    assert rig.said(rig.stdout) == b"out\n"


def test_a_full_disk_behind_stdout(rig: Rig) -> None:
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(DiskFull):
        rig.run(ScriptedExec(stdout=b"out\n", waits=True), ExecIO(rig.stdin.read, full.fileno(), None))


# --- the engine, the container, the filter ------------------------------------------------------------


def test_the_container_is_stopped_during_a_stream(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"one\nhal")
        rig.engine.die(rig.name)
        return 0

    with pytest.raises(SandboxDied):
        rig.run(agent)
    assert rig.said(rig.stdout) == b"one\n"


def test_the_engine_stops(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"one\n")
        rig.engine.vanish()
        return 0

    with pytest.raises(EngineGone):
        rig.run(agent)


def test_a_filter_that_fails_ends_the_agent(rig: Rig) -> None:
    class Failing(LineFilter):
        def agent_data(self, data: bytes) -> None:
            raise RuntimeError("a bug")

    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"x\n")
        io.ended.wait(LONG)
        return 0

    rig.through = Failing()
    with pytest.raises(RuntimeError, match="a bug"):
        rig.run(agent)
    assert [session.code for session in rig.engine.sessions.values() if session.spec.command == ("it",)] == [143]
    assert rig.said(rig.stdout) == b""


def test_an_engine_that_does_not_answer_about_a_stuck_agent(rig: Rig) -> None:
    rig.wait(look=BRIEF, delivery=0)

    def agent(io: ExecPeer) -> int:
        with contextlib.suppress(OSError):
            while True:
                io.write(STDOUT, b"z" * 8191 + b"\n")
        return 5

    gone = RequestFailed(operation="inspect an exec session", status=500, reason="busy")
    rig.engine.fail("exec_inspect", gone, times=None)
    with pytest.raises(SandboxDied):
        rig.run(agent)


def test_noise_and_stderr_are_written_to_stderr(rig: Rig) -> None:
    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b"# banner\nframe\n")
        io.write(STDERR, b"warned")
        return 0

    assert rig.run(agent) == ExecStatus(0)
    assert rig.said(rig.stdout) == b"frame\n"
    assert rig.said(rig.stderr) in (b"# bannerwarned", b"warned# banner")

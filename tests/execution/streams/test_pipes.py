"""Named pipes on this host, and a command's streams by them: real files, real sockets, no clock."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podbot.execution.streams import piped_side
from podbot.execution.streams.piped_side import PipedSide
from podbot.execution.streams.pipes import CommandPipes
from podbot.streams.relay import LIMIT, Relay
from podbot.streams.sides import EngineSide, StreamHelperLost
from podbot.streams.wake import Wake
from tests.streams.plumbing import PATIENCE, Pipe, frame, in_thread, pipes, stream_pair


class Command:
    """Somebody who has opened both pipes, and the engine's end of the connection."""

    def __init__(self, made: CommandPipes, directory: Path, engine: socket.socket) -> None:
        self.stdin = os.open(directory / made.stdin, os.O_RDONLY)
        self.stdout = os.open(directory / made.stdout, os.O_WRONLY)
        self.engine = engine
        made.connected(for_input=True)
        assert os.read(self.stdin, 1) == b"\n"  # by now it runs

    def asked(self) -> bytes:
        """Its stdin, to the end."""
        return b"".join(iter(lambda: os.read(self.stdin, 100), b""))

    def end(self) -> None:
        """Both pipes, then the stream."""
        self.leave()
        self.engine.shutdown(socket.SHUT_WR)

    def leave(self) -> None:
        for fd in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):
                os.close(fd)


@contextlib.contextmanager
def relayed(tmp_path: Path, *, held: bytes = b"") -> Iterator[tuple[Relay, Command, Pipe, Pipe, Pipe]]:
    """(relay, command, the caller's stdin, stdout, stderr)."""
    with (
        contextlib.closing(Wake()) as wake,
        pipes(3) as (stdin, stdout, stderr),
        stream_pair() as (stream, engine),
        contextlib.closing(CommandPipes.make(str(tmp_path))) as made,
    ):
        command = Command(made, tmp_path, engine)
        side = PipedSide(EngineSide(stream, tty=False), made, held)
        relay = Relay(side, stdin=stdin.read, stdout=stdout.write, stderr=stderr.write, wake=wake.fileno())
        with contextlib.closing(relay):
            yield relay, command, stdin, stdout, stderr
        command.leave()


def run(relay: Relay) -> str:
    return relay.run(time.monotonic() + PATIENCE)


def test_pipes_are_private_and_gone_once_they_are_open(tmp_path: Path) -> None:
    made = CommandPipes.make(str(tmp_path))
    found = [os.lstat(tmp_path / name) for name in (made.stdin, made.stdout)]
    assert all(stat.S_ISFIFO(entry.st_mode) and stat.S_IMODE(entry.st_mode) == 0o600 for entry in found)
    made.connected(for_input=True)
    assert os.listdir(tmp_path) == []
    made.close()
    made.close()
    assert made.input == -1


def test_nothing_is_left_when_they_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="No such file"):
        CommandPipes.make(str(tmp_path / "missing"))
    monkeypatch.setattr("sys.executable", "")
    with pytest.raises(OSError, match="no Python"):
        CommandPipes.make(str(tmp_path))
    monkeypatch.setattr("sys.executable", "/no/such/python3")
    with pytest.raises(OSError, match="No such file"):
        CommandPipes.make(str(tmp_path))
    assert os.listdir(tmp_path) == []
    assert len(os.listdir("/proc/self/fd")) <= len(before)


@pytest.mark.parametrize("instead", ["link", "file", "nothing"])
def test_what_is_no_pipe_of_ours_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instead: str) -> None:
    really = os.mkfifo

    def replaced(path: str, mode: int) -> None:
        really(path, mode)
        if path.endswith(".out"):
            os.unlink(path)
            if instead == "link":
                really(tmp_path / "elsewhere", mode)
                os.symlink(tmp_path / "elsewhere", path)
            elif instead == "file":
                Path(path).touch()

    monkeypatch.setattr(os, "mkfifo", replaced)
    made = CommandPipes.make(str(tmp_path))
    assert select.select([made.output], [], [], PATIENCE)[0]
    assert os.read(made.output, 1) == b""  # the pump has ended
    made.connected(for_input=True)
    made.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piped_side, "DRAIN", 0.05)


def test_a_pump_that_waits_in_the_kernel_is_left_behind(tmp_path: Path, impatient: None) -> None:
    """As a hostile agent can bring about (ADR 0016); here it is stopped, which podbot cannot tell from that."""
    with relayed(tmp_path) as (relay, command, stdin, _, _):
        side = relay._side
        assert isinstance(side, PipedSide)
        process = side._pipes._pump
        os.kill(process, signal.SIGSTOP)
        os.write(stdin.write, b"x" * 60_000)
        os.write(command.stdout, b"never seen")
        assert relay.run(time.monotonic() + 0.05) == "deadline"
        command.end()
        with pytest.raises(StreamHelperLost):
            run(relay)
    assert not os.path.exists(f"/proc/{process}")


@pytest.mark.parametrize("when", ["before the end", "after the end"])
def test_output_that_a_killed_pump_had_is_said_to_be_lost(tmp_path: Path, when: str) -> None:
    with relayed(tmp_path) as (relay, command, _, stdout, _):
        side = relay._side
        assert isinstance(side, PipedSide)

        def read_all() -> None:
            stdout.drain()

        def fill() -> None:
            with contextlib.suppress(BrokenPipeError):
                for _ in range(64):  # more than the client's pipe, our buffer and the pump's pipe hold
                    os.write(command.stdout, b"x" * (1 << 16))

        with in_thread(fill):
            before = -1
            while relay.undelivered != before or before < LIMIT:
                before = relay.undelivered
                assert relay.run(time.monotonic() + 0.05) == "deadline"
            if when == "after the end":
                side._pipes.finish()
                time.sleep(0.01)
            os.kill(side._pipes._pump, signal.SIGKILL)
        command.end()
        with in_thread(read_all):
            with pytest.raises(StreamHelperLost):
                run(relay)
            relay.close()
            stdout.close(stdout.write)


def test_a_pump_that_is_lost_in_the_middle_is_told_at_once(tmp_path: Path) -> None:
    with relayed(tmp_path) as (relay, command, _, _, _):
        side = relay._side
        assert isinstance(side, PipedSide)
        os.kill(side._pipes._pump, signal.SIGKILL)
        with pytest.raises(StreamHelperLost):
            run(relay)
        with pytest.raises(BrokenPipeError):
            os.write(command.stdout, b"to nobody")


def test_a_fork_of_ours_does_not_keep_the_input_open(tmp_path: Path) -> None:
    with relayed(tmp_path) as (relay, command, stdin, stdout, _):
        side = relay._side
        assert isinstance(side, PipedSide)
        held = os.dup(side._pipes.input)  # as a forked process would
        os.write(stdin.write, b"all of it")
        stdin.close(stdin.write)

        def answer() -> None:
            os.write(command.stdout, command.asked())
            command.end()

        with in_thread(answer):
            assert run(relay) == "ended"
        assert os.read(stdout.read, 100) == b"all of it"
        os.close(held)


def test_a_podbot_that_dies_before_the_command_runs_leaves_no_files(tmp_path: Path) -> None:
    made = CommandPipes.make(str(tmp_path))
    os.close(made._ours.pop("control"))
    assert select.select([made.output], [], [], PATIENCE)[0]
    assert os.read(made.output, 1) == b""
    assert os.listdir(tmp_path) == []
    made.close()


def test_the_pump_has_nothing_of_ours_but_its_ends(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    os.environ["PODBOT_TEST_SECRET"] = "x"
    try:
        made = CommandPipes.make(str(tmp_path))
        shell = [os.open(tmp_path / made.stdin, os.O_RDONLY), os.open(tmp_path / made.stdout, os.O_WRONLY)]
        place = f"/proc/{made._pump}"
        open_files = [os.readlink(f"{place}/fd/{fd}") for fd in os.listdir(f"{place}/fd")]
        assert os.readlink(f"/proc/self/fd/{write}") not in open_files
        assert os.readlink(f"{place}/cwd") == "/"
        assert b"SECRET" not in Path(place, "environ").read_bytes()
        made.close()
        for fd in (*shell, read):
            os.close(fd)
    finally:
        os.close(write)
        del os.environ["PODBOT_TEST_SECRET"]


def test_the_command_sees_the_end_when_podbot_is_gone(tmp_path: Path) -> None:
    made = CommandPipes.make(str(tmp_path))
    shell = [os.open(tmp_path / made.stdin, os.O_RDONLY), os.open(tmp_path / made.stdout, os.O_WRONLY)]
    made.connected(for_input=True)
    assert os.read(shell[0], 10) == b"\n"
    os.close(made._ours.pop("control"))
    assert os.read(shell[0], 10) == b""
    for fd in shell:
        os.close(fd)
    made.close()


def test_all_three_streams_and_the_end(tmp_path: Path) -> None:
    with relayed(tmp_path, held=b"before ") as (relay, command, stdin, stdout, stderr):
        os.write(stdin.write, b"question")
        stdin.close(stdin.write)

        def answer() -> None:
            os.write(command.stdout, command.asked().upper())
            # What is on the engine's stdout was written by nobody who runs there by now.
            command.engine.sendall(frame(1, b"stray") + frame(2, b"and after"))
            command.end()

        with in_thread(answer):
            assert run(relay) == "ended"
        assert not relay.broken
        assert os.read(stdout.read, 100) == b"QUESTION"
        assert os.read(stderr.read, 100) == b"before and after"


def test_stdin_can_be_opened_again_behind_its_end(tmp_path: Path) -> None:
    with relayed(tmp_path) as (relay, command, stdin, stdout, _):
        os.write(stdin.write, b"all of it")
        stdin.close(stdin.write)
        assert relay.run(time.monotonic() + 0.05) == "deadline"  # by now the command's stdin has ended

        def late() -> None:
            with open(f"/proc/self/fd/{command.stdin}", "rb") as again:  # of a named pipe this waits for a writer
                os.write(command.stdout, again.read())
            command.end()

        with in_thread(late):
            assert run(relay) == "ended"
        assert os.read(stdout.read, 100) == b"all of it"


def test_a_command_without_input_has_no_pipe_for_it(tmp_path: Path) -> None:
    made = CommandPipes.make(str(tmp_path))
    shell = [os.open(tmp_path / made.stdin, os.O_RDONLY), os.open(tmp_path / made.stdout, os.O_WRONLY)]
    made.connected(for_input=False)
    assert os.read(shell[0], 100) == b"\n"
    assert os.read(shell[0], 100) == b""
    for fd in shell:
        os.close(fd)
    made.close()


def test_what_outlives_the_command_is_not_waited_for(tmp_path: Path) -> None:
    with relayed(tmp_path) as (relay, command, _, stdout, _):
        os.write(command.stdout, b"its own")
        command.engine.shutdown(socket.SHUT_WR)  # it ended; somebody else still has its stdout
        assert run(relay) == "ended"
        with pytest.raises(BrokenPipeError):
            os.write(command.stdout, b"too late")
        assert os.read(stdout.read, 100) == b"its own"


def test_a_command_that_closes_its_stdin_is_deaf_and_not_dead(tmp_path: Path) -> None:
    with relayed(tmp_path) as (relay, command, stdin, stdout, _):
        os.close(command.stdin)

        def talk() -> None:
            for _ in range(3):
                os.write(stdin.write, b"x" * 60_000)
                time.sleep(0.01)
            os.write(command.stdout, b"still here")
            assert os.read(stdout.read, 100) == b"still here"
            command.end()

        with in_thread(talk):
            assert run(relay) == "ended"
        assert relay.unsent == 0


def test_an_engine_that_breaks_off_in_a_frame_is_told_of(tmp_path: Path) -> None:
    with relayed(tmp_path) as (relay, command, _, stdout, _):
        os.write(command.stdout, b"read all the same")
        command.engine.sendall(frame(2, b"half")[:-2])
        command.end()
        assert run(relay) == "ended"
        assert relay.truncated
        assert relay.broken
        assert os.read(stdout.read, 100) == b"read all the same"


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    sizes=st.lists(st.integers(1, 200_000), min_size=1, max_size=6),
    noise=st.lists(st.integers(0, 5), max_size=4),
    back=st.integers(0, 300_000),
)
def test_any_sizes_arrive_as_they_were(tmp_path: Path, sizes: list[int], noise: list[int], back: int) -> None:
    block = os.urandom(max(*sizes, back, 1))
    with relayed(tmp_path) as (relay, command, stdin, stdout, stderr):
        came, heard = bytearray(), bytearray()

        def inside() -> None:
            for number, size in enumerate(sizes):
                view = memoryview(block)[:size]
                while view:
                    view = view[os.write(command.stdout, view) :]
                command.engine.sendall(b"".join(frame(2, b"e" * count) for count in noise[number : number + 1]))
            while data := os.read(command.stdin, 1 << 16):
                heard.extend(data)
            command.end()

        def outside() -> None:
            view = memoryview(block)[:back]
            while view:
                view = view[os.write(stdin.write, view) :]
            stdin.close(stdin.write)

        def collect() -> None:
            while data := os.read(stdout.read, 1 << 16):
                came.extend(data)

        with in_thread(inside), in_thread(outside), in_thread(collect):
            assert run(relay) == "ended"
            relay.close()
            stdout.close(stdout.write)
        stderr.close(stderr.write)
        assert came == b"".join(block[:size] for size in sizes)
        assert heard == block[:back]
        assert stderr.drain() == b"e" * sum(noise[: len(sizes)])

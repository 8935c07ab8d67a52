"""The relay between descriptors and an exec stream: real sockets and pipes, no clock."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import signal
import socket
import time
from collections.abc import Iterator

import pytest

from podbot.streams import relay as module
from podbot.streams.demux import BadFrame
from podbot.streams.relay import LIMIT, Relay, SinkClosed
from podbot.streams.sides import CHUNK, Duplex, EngineSide
from podbot.streams.wake import Resize, Signal, Wake
from tests.streams.plumbing import (
    Pipe,
    frame,
    in_thread,
    nothing_left_open,
    pipes,
    read_exactly,
    run_until,
    stream_pair,
)
from tests.waiting import HANG

BIG = 8 << 20


@contextlib.contextmanager
def relay(
    stream: Duplex | EngineSide,
    wake: Wake,
    *,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
) -> Iterator[Relay]:
    side = stream if isinstance(stream, EngineSide) else EngineSide(stream, tty=False)
    made = Relay(side, stdin=stdin, stdout=stdout, stderr=stderr, wake=wake.fileno())
    with contextlib.closing(made):
        yield made


def run(made: Relay) -> str:
    return made.run(time.monotonic() + HANG)


def test_megabytes_in_both_directions_arrive_unchanged(wake: Wake) -> None:
    block = os.urandom(1 << 16)
    sent, came = hashlib.sha256(), hashlib.sha256()

    def feed() -> None:
        for number in range(BIG // len(block)):
            data = number.to_bytes(4, "big") + block[4:]
            sent.update(data)
            os.write(stdin.write, data)
        stdin.close(stdin.write)

    def echo() -> None:
        while data := engine.recv(1 << 16):
            engine.sendall(frame(1, data))
        engine.shutdown(socket.SHUT_WR)

    def collect() -> None:
        while data := os.read(stdout.read, 1 << 16):
            came.update(data)

    with pipes(2) as (stdin, stdout), stream_pair() as (stream, engine):
        with in_thread(feed), in_thread(echo), in_thread(collect):
            side = EngineSide(stream, tty=False)
            with relay(side, wake, stdin=stdin.read, stdout=stdout.write) as made:
                while (pause := run(made)) != "ended":
                    assert pause == "woken"
                assert not side.broken
            stdout.close(stdout.write)
        assert came.digest() == sent.digest()


def test_stdout_and_stderr_are_separate(wake: Wake) -> None:
    with pipes(2) as (out, err), stream_pair(frame(1, b"first ")) as (stream, engine):
        engine.sendall(frame(2, b"bad") + frame(1, b"good") + frame(0, b"!") + frame(1, b""))
        engine.close()
        with relay(stream, wake, stdout=out.write, stderr=err.write) as made:
            assert run(made) == "ended"
        assert os.read(out.read, 100) == b"first good!"
        assert os.read(err.read, 100) == b"bad"


def test_a_terminals_stream_is_raw_and_all_stdout(wake: Wake) -> None:
    with pipes(2) as (out, err), stream_pair(b"\1\0\0\0") as (stream, engine):
        engine.sendall(b"\x1b[2Jhello")
        engine.close()
        side = EngineSide(stream, tty=True)
        with relay(side, wake, stdout=out.write, stderr=err.write) as made:
            assert run(made) == "ended"
            assert not side.broken
        assert os.read(out.read, 100) == b"\1\0\0\0\x1b[2Jhello"


def test_a_reader_that_stops_costs_no_memory_and_loses_nothing(wake: Wake) -> None:
    data = os.urandom(1 << 16)
    total = 0

    def shout() -> None:
        nonlocal total
        for _ in range(BIG // len(data)):
            engine.sendall(frame(1, data))
            total += len(data)
        engine.shutdown(socket.SHUT_WR)

    came = b""

    def collect() -> None:
        nonlocal came
        came = out.drain()

    with pipes(1) as (out,), stream_pair() as (stream, engine), relay(stream, wake, stdout=out.write) as made:
        with in_thread(shout):
            run_until(made, lambda: made.undelivered >= LIMIT)
            for _ in range(3):
                assert made.run(time.monotonic() + 0.02) == "deadline", "nothing moves any more"
            assert LIMIT <= made.undelivered <= LIMIT + CHUNK
            assert total < BIG
            with in_thread(collect):
                assert run(made) == "ended"
                made.close()
                out.close(out.write)
        assert came == data * (BIG // len(data))


def test_input_is_not_divided_where_the_engine_has_no_more_room(wake: Wake) -> None:
    """Issue 29.20: `dd bs=512` in the container read 2,999 whole blocks and 2 parts of what were 3,000."""
    blocks = bytes(BIG)
    with stream_pair() as (stream, engine):
        side = EngineSide(stream, tty=False)
        sizes = []
        for _ in range(64):
            with contextlib.suppress(BlockingIOError):
                while True:
                    sizes.append(side.send([memoryview(blocks)[:CHUNK]]))
            engine.recv(8192)
        assert len(sizes) > 3
        assert [size % 512 for size in sizes] == [0] * len(sizes)


def test_an_engine_that_stops_reading_costs_no_memory_and_loses_nothing(wake: Wake) -> None:
    data = os.urandom(1 << 16)

    def feed() -> None:
        for _ in range(BIG // len(data)):
            os.write(stdin.write, data)
        stdin.close(stdin.write)

    def finish() -> None:
        assert read_exactly(engine, BIG) == data * (BIG // len(data))
        assert engine.recv(1) == b""
        engine.shutdown(socket.SHUT_WR)

    with (
        pipes(1) as (stdin,),
        stream_pair() as (stream, engine),
        relay(stream, wake, stdin=stdin.read) as made,
        in_thread(feed),
    ):
        run_until(made, lambda: made.unsent >= LIMIT)
        for _ in range(3):
            assert made.run(time.monotonic() + 0.02) == "deadline", "nothing moves any more"
        assert LIMIT <= made.unsent <= LIMIT + CHUNK
        with in_thread(finish):
            assert run(made) == "ended"


def test_the_end_of_stdin_is_passed_on_and_output_continues(wake: Wake) -> None:
    def command() -> None:
        assert read_exactly(engine, 5) == b"hello"
        assert engine.recv(1) == b"", "end of file reaches the command"
        engine.sendall(frame(1, b"counted 5"))
        engine.shutdown(socket.SHUT_WR)

    with pipes(2) as (stdin, out), stream_pair() as (stream, engine):
        os.write(stdin.write, b"hello")
        stdin.close(stdin.write)
        with in_thread(command), relay(stream, wake, stdin=stdin.read, stdout=out.write) as made:
            assert run(made) == "ended"
        assert os.read(out.read, 100) == b"counted 5"


def test_without_stdin_the_command_reads_end_of_file_at_once(wake: Wake) -> None:
    with stream_pair() as (stream, engine), relay(stream, wake):
        assert engine.recv(1) == b""


def test_the_end_of_the_command_ends_the_relay_with_stdin_still_open(wake: Wake) -> None:
    with pipes(2) as (stdin, out), stream_pair() as (stream, engine):
        engine.sendall(frame(1, b"bye"))
        engine.close()
        with relay(stream, wake, stdin=stdin.read, stdout=out.write) as made:
            assert run(made) == "ended"
        assert os.read(out.read, 10) == b"bye"


def test_output_of_a_command_that_does_not_read_its_stdin_is_relayed(wake: Wake) -> None:
    with pipes(2) as (stdin, out), stream_pair() as (stream, engine):
        os.set_blocking(stdin.write, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(stdin.write, b"y\n" * 4096):
                pass
        engine.sendall(frame(1, b"enough"))
        engine.close()
        with relay(stream, wake, stdin=stdin.read, stdout=out.write) as made:
            assert run(made) == "ended"
        assert os.read(out.read, 10) == b"enough"


@pytest.mark.parametrize("bad", ["closed", "write-only"])
def test_a_stdin_that_cannot_be_read_is_end_of_file(wake: Wake, bad: str) -> None:
    with pipes(1) as (pipe,), stream_pair() as (stream, engine):
        fd = pipe.write
        if bad == "closed":
            fd = os.dup(pipe.write)
            os.close(fd)
        with relay(stream, wake, stdin=fd) as made:
            pipe.close(pipe.read)

            def command() -> None:
                assert engine.recv(1) == b""
                engine.shutdown(socket.SHUT_WR)

            with in_thread(command):
                assert run(made) == "ended"


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_closed_output_is_named(wake: Wake, name: str) -> None:
    with pipes(2) as (gone, other), stream_pair() as (stream, engine):
        out, err = (gone, other) if name == "stdout" else (other, gone)
        with relay(stream, wake, stdout=out.write, stderr=err.write) as made:
            gone.close(gone.read)
            engine.sendall(frame(1 if name == "stdout" else 2, b"x"))
            with pytest.raises(SinkClosed) as caught:
                run(made)
        assert caught.value.stream == name


def test_wake_messages_return_to_the_caller(wake: Wake) -> None:
    with pipes(1) as (out,), stream_pair() as (stream, engine), relay(stream, wake, stdout=out.write) as made:
        wake.post(Signal(signal.SIGINT))
        wake.post(Resize())
        assert run(made) == "woken"
        assert wake.take() == [Signal(signal.SIGINT), Resize()]
        assert made.run(time.monotonic()) == "deadline"
        engine.sendall(frame(1, b"after"))
        engine.close()
        assert run(made) == "ended"
        assert os.read(out.read, 10) == b"after"


def test_a_deadline_does_not_lose_available_bytes(wake: Wake) -> None:
    with pipes(1) as (out,), stream_pair() as (stream, engine), relay(stream, wake, stdout=out.write) as made:
        engine.sendall(frame(1, b"abc")[:9])
        assert made.run(time.monotonic() + 0.02) == "deadline"
        engine.sendall(b"bc")
        engine.close()
        assert run(made) == "ended"
        assert os.read(out.read, 10) == b"abc"


def test_a_stream_that_ends_inside_a_frame_is_broken(wake: Wake) -> None:
    with stream_pair() as (stream, engine):
        engine.sendall(frame(1, b"abc")[:-1])
        engine.close()
        side = EngineSide(stream, tty=False)
        with relay(side, wake) as made:
            assert run(made) == "ended"
        assert side.broken


def test_invalid_frames_are_not_output(wake: Wake) -> None:
    with pipes(1) as (out,), stream_pair() as (stream, engine), relay(stream, wake, stdout=out.write) as made:
        engine.sendall(b"HTTP/1.1 500 oops")
        with pytest.raises(BadFrame):
            run(made)


class Failing:
    """An exec stream over a network that fails."""

    leftover = b""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self._sock = sock
        self._number = number

    def fileno(self) -> int:
        return self._sock.fileno()

    def recv(self, _limit: int) -> bytes:
        raise OSError(self._number, os.strerror(self._number))

    def send(self, _data: bytes | memoryview) -> int:
        raise OSError(self._number, os.strerror(self._number))

    def shut_write(self) -> None:
        """There is nothing to shut down."""


@pytest.mark.parametrize("number", [errno.ECONNRESET, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.EIO, 1])
def test_a_connection_that_fails_in_any_way_is_a_broken_stream(wake: Wake, number: int) -> None:
    with pipes(1) as (stdin,), stream_pair() as (_stream, engine):
        os.write(stdin.write, b"x")
        side = EngineSide(Failing(engine, number), tty=False)
        with relay(side, wake, stdin=stdin.read) as made:
            _stream.close()
            assert run(made) == "ended"
            assert side.broken


def test_a_bad_first_frame_leaves_no_descriptor_open(wake: Wake) -> None:
    with (
        pipes(1) as (out,),
        stream_pair(b"HTTP/1.1") as (stream, _),
        nothing_left_open(),
        pytest.raises(BadFrame),
        relay(stream, wake, stdout=out.write) as made,
    ):
        run(made)


def test_the_callers_descriptors_stay_open_and_unchanged(wake: Wake) -> None:
    with pipes(2) as (stdin, out), stream_pair() as (stream, engine):
        engine.close()
        with relay(stream, wake, stdin=stdin.read, stdout=out.write) as made:
            assert run(made) == "ended"
        for fd in (stdin.read, out.write):
            assert os.get_blocking(fd)
        assert module.LIMIT == 1 << 20


def test_both_outputs_may_be_one_pipe(wake: Wake) -> None:
    with pipes(1) as (out,), stream_pair() as (stream, engine):
        second = os.dup(out.write)
        engine.sendall(frame(1, b"a") + frame(2, b"b"))
        engine.close()
        with relay(stream, wake, stdout=out.write, stderr=second) as made:
            assert run(made) == "ended"
        os.close(second)
        assert sorted(os.read(out.read, 10)) == sorted(b"ab")


def test_one_socket_may_be_stdin_and_stdout(wake: Wake) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, stream_pair() as (stream, engine):
        theirs.sendall(b"in")
        with relay(stream, wake, stdin=ours.fileno(), stdout=ours.fileno()) as made:

            def command() -> None:
                assert read_exactly(engine, 2) == b"in"
                engine.sendall(frame(1, b"out"))
                engine.shutdown(socket.SHUT_WR)

            with in_thread(command):
                assert run(made) == "ended"
        assert theirs.recv(10) == b"out"


def test_pipe_ends_close_once() -> None:
    pipe = Pipe()
    pipe.close(pipe.read)
    pipe.close()

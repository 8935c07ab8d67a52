"""The relay when everything passes through a filter."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from podbot.streams.protocol_channel import Filter
from podbot.streams.relay import LIMIT, Relay, SinkClosed
from podbot.streams.sides import Duplex, EngineSide
from podbot.streams.sink import LOG_PATIENCE, LogSink
from podbot.streams.wake import Resize, Wake
from tests.streams.channels import LineFilter
from tests.streams.plumbing import Received, frame, in_thread, pipes, read_exactly, run_until, stream_pair
from tests.waiting import HANG, attempts


@contextlib.contextmanager
def relay(
    stream: Duplex,
    wake: Wake,
    through: Filter,
    *,
    stdin: int,
    stdout: int,
    stderr: int | None,
    log_patience: float = LOG_PATIENCE,
) -> Iterator[Relay]:
    side = EngineSide(stream, tty=False)
    made = Relay(
        side,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        wake=wake.fileno(),
        through=through,
        log_patience=log_patience,
    )
    with contextlib.closing(made):
        yield made


def run(made: Relay) -> str:
    """Until the relay has something to report, which it must."""
    return made.run(time.monotonic() + HANG)


def run_briefly(made: Relay) -> str:
    """For what must not happen: on a slow machine there is less time for it."""
    return made.run(time.monotonic() + 0.02)


def test_frames_answers_noise_and_ends(wake: Wake) -> None:
    through = LineFilter()
    with (
        pipes(3) as (stdin, stdout, stderr),
        stream_pair() as (stream, engine),
        relay(stream, wake, through, stdin=stdin.read, stdout=stdout.write, stderr=stderr.write) as made,
    ):
        agent, client, log = Received(engine.fileno()), Received(stdout.read), Received(stderr.read)
        os.write(stdin.write, b"one\nnot this\ntw")
        agent.arrives(made, b"one\n")
        client.arrives(made, b"refused\n")
        engine.sendall(frame(1, b"# hello\nthree\nno, ") + frame(2, b"word") + frame(1, b"never\nfour\n"))
        os.write(stdin.write, b"o\n")
        client.arrives(made, b"three\nfour\n")
        log.arrives(made, b"word# hello")
        agent.arrives(made, b"refused\ntwo\n")
        stdin.close(stdin.write)
        assert run(made) == "input_ended"
        assert run(made) == "input_closed"
        assert engine.recv(1) == b"", "the agent's stdin has ended"
        engine.sendall(frame(1, b"last\n"))
        engine.shutdown(socket.SHUT_WR)
        assert run(made) == "ended"
        client.arrives(made, b"last\n")
    assert through.ends == ["client", "agent"]


def test_input_that_is_ended_from_here_ends_behind_what_is_queued(wake: Wake) -> None:
    with pipes(2) as (stdin, stdout), stream_pair(send_buffer=4096) as (stream, engine):
        through = LineFilter()
        with relay(stream, wake, through, stdin=stdin.read, stdout=stdout.write, stderr=None) as made:
            sent = b"x" * 60_000 + b"\nhal"
            os.write(stdin.write, sent)
            run_until(made, lambda: made.sent + made.unsent == 60_001)
            made.end_input()
            made.end_input()
            assert made.unsent
            assert run_briefly(made) == "deadline", "the agent has not taken it all"
            got = bytearray()
            pause = "deadline"
            while pause == "deadline":
                with contextlib.suppress(BlockingIOError):
                    got += engine.recv(1 << 16, socket.MSG_DONTWAIT)
                pause = made.run(time.monotonic() + 0.001)
            assert pause == "input_closed"
            while piece := engine.recv(1 << 16):
                got += piece
            assert bytes(got) == sent[:-3], "half a frame is not for the agent"
            assert through.ends == ["client"]


def test_an_agent_that_causes_answers_and_reads_none_is_not_read_any_further(wake: Wake) -> None:
    through = LineFilter(answer=b"r" * 8191 + b"\n")
    with (
        pipes(2) as (stdin, stdout),
        stream_pair() as (stream, engine),
        relay(stream, wake, through, stdin=stdin.read, stdout=stdout.write, stderr=None) as made,
    ):
        answered = 0
        while answered < LIMIT:
            engine.sendall(frame(1, b"no\n" * 100))
            answered += 100 * 8192
            run_until(made, lambda: made.sent + made.unsent == answered)  # noqa: B023 - run here
        for _ in range(30):
            engine.sendall(frame(1, b"no\n" * 100))
            run_briefly(made)
        assert made.unsent < LIMIT + 1000 * 8192, "one chunk more than the limit at the most"
        before = made.unsent
        run_briefly(made)
        assert made.unsent == before
        # Its own reading sets it free again.
        over = threading.Event()
        with in_thread(lambda: read_until(engine, over)):
            run_until(made, lambda: not made.unsent)
            over.set()


def read_until(sock: socket.socket, over: threading.Event) -> None:
    """Everything until ``over``: at least LIMIT bytes."""
    got = 0
    sock.settimeout(0.02)
    while not over.is_set():
        with contextlib.suppress(TimeoutError):
            got += len(sock.recv(1 << 16))
    assert got >= LIMIT


def test_a_client_that_causes_answers_and_reads_none_is_not_read_any_further(wake: Wake) -> None:
    through = LineFilter(answer=b"r" * 65535 + b"\n")
    with pipes(2) as (stdin, stdout), stream_pair() as (stream, _engine):
        os.set_blocking(stdin.write, False)
        with relay(stream, wake, through, stdin=stdin.read, stdout=stdout.write, stderr=None) as made:
            refused = b"no" + b"o" * 4093 + b"\n"
            size = fcntl.fcntl(stdout.write, fcntl.F_GETPIPE_SZ)  # less than 64 KiB for a user with many pipes
            os.write(stdin.write, refused)
            run_until(made, lambda: made.delivered == size)  # the pipe takes the first answer, and no further one

            def is_full() -> bool:
                with contextlib.suppress(BlockingIOError):
                    os.write(stdin.write, refused)
                return made.undelivered >= LIMIT

            run_until(made, is_full)
            for _ in range(30):
                is_full()
                run_briefly(made)
            assert LIMIT <= made.undelivered < 3 * LIMIT, "the limit, and what one read of 64 KiB provokes"


def test_a_client_that_reads_late_does_not_block_what_it_sends(wake: Wake) -> None:
    """An agent that answers before it reads further must not cause a deadlock: only podbot's own answers count."""
    through = LineFilter()
    with (
        pipes(2) as (stdin, stdout),
        stream_pair() as (stream, engine),
        relay(stream, wake, through, stdin=stdin.read, stdout=stdout.write, stderr=None) as made,
    ):
        done = threading.Event()

        def flood() -> None:
            engine.sendall(frame(1, b"y" * 1023 + b"\n") * (3 << 10))

        def slow_reader() -> None:
            got = 0
            while got < 3 << 20:
                got += len(os.read(stdout.read, 1 << 16))
            done.set()

        with in_thread(flood):
            run_until(made, lambda: made.undelivered >= LIMIT)
            os.write(stdin.write, b"still read\n")
            Received(engine.fileno()).arrives(made, b"still read\n")
            with in_thread(slow_reader):
                run_until(made, done.is_set)


def test_a_closed_agent_stdin_does_not_hide_the_clients_end(wake: Wake) -> None:
    with pipes(2) as (stdin, stdout), stream_pair() as (stream, engine):
        engine.shutdown(socket.SHUT_RD)
        with relay(stream, wake, LineFilter(), stdin=stdin.read, stdout=stdout.write, stderr=None) as made:
            for _ in range(3):
                os.write(stdin.write, b"into the void\n")
                run_until(made, lambda: not select.select([stdin.read], [], [], 0)[0])
            assert made.unsent == 0
            stdin.close(stdin.write)
            assert run(made) == "input_ended"


def test_a_single_socket_is_not_read_when_it_is_only_writable(wake: Wake) -> None:
    ours, client = socket.socketpair()
    with ours, client, stream_pair() as (stream, engine):
        client.settimeout(HANG)
        with relay(stream, wake, LineFilter(), stdin=ours.fileno(), stdout=ours.fileno(), stderr=None) as made:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            engine.sendall(frame(1, b"z" * 100_000 + b"\n"))
            run_until(made, lambda: made.delivered)
            assert run_briefly(made) == "deadline", "a blocking read would never return"

            def read_on() -> None:
                assert len(read_exactly(client, 100_001)) == 100_001

            with in_thread(read_on):
                run_until(made, lambda: made.delivered == 100_001)


def test_output_that_waits_after_an_end_is_reported(wake: Wake) -> None:
    with (
        pipes(2) as (stdin, stdout),
        stream_pair() as (stream, engine),
        relay(stream, wake, LineFilter(), stdin=stdin.read, stdout=stdout.write, stderr=None) as made,
    ):
        engine.sendall(frame(1, b"a" * 199_999 + b"\n"))
        engine.shutdown(socket.SHUT_WR)
        assert run(made) == "undelivered"
        assert run_briefly(made) == "deadline"
        made.discard("stdout")
        assert run(made) == "ended"


def test_diagnostics_that_nobody_reads_stop_nothing_for_long(wake: Wake) -> None:
    with (
        pipes(3) as (stdin, stdout, stderr),
        stream_pair() as (stream, engine),
        relay(
            stream,
            wake,
            LineFilter(),
            stdin=stdin.read,
            stdout=stdout.write,
            stderr=stderr.write,
            log_patience=0.02,
        ) as made,
    ):

        def flood() -> None:
            for _ in range(80):
                engine.sendall(frame(2, b"e" * 65_535 + b"\n"))
            engine.sendall(frame(1, b"through\n"))

        with in_thread(flood):
            Received(stdout.read).arrives(made, b"through\n")
        assert made.undelivered <= 2 * LIMIT
        said = bytearray()
        os.set_blocking(stderr.read, False)
        engine.sendall(frame(2, b"the end\n"))
        # Lost bytes are reported before the next line that fits, which need not be the first one that is sent.
        for _ in attempts():
            if b"are lost\n" in said and said.endswith(b"the end\n"):
                break
            made.run(time.monotonic() + 0.001)
            with contextlib.suppress(BlockingIOError):
                said += os.read(stderr.read, 1 << 16)
                continue
            if not made.undelivered:  # the line was lost, too, which is reported before the next one
                engine.sendall(frame(2, b"the end\n"))
        assert b"bytes on stderr were not read and are lost\n" in said


def test_a_log_that_is_read_slowly_loses_nothing() -> None:
    with pipes(1) as (pipe,):
        sink = LogSink(pipe.write)
        with contextlib.closing(sink):
            sink.push(memoryview(b"l" * LIMIT))
            assert sink.full()
            sink.flush()
            os.read(pipe.read, 1 << 16)
            sink.flush()
            assert not sink.full() or sink.pending >= LIMIT


def test_a_closed_stdout_is_reported_and_can_be_ignored(wake: Wake) -> None:
    with pipes(2) as (stdin, stdout), stream_pair() as (stream, engine):
        stdout.close(stdout.read)
        with relay(stream, wake, LineFilter(), stdin=stdin.read, stdout=stdout.write, stderr=None) as made:
            engine.sendall(frame(1, b"hello\n"))
            with pytest.raises(SinkClosed) as caught:
                run(made)
            assert caught.value.stream == "stdout"
            made.discard("stdout")
            engine.sendall(frame(1, b"more\n"))
            wake.post(Resize())
            assert run(made) == "woken"
            assert made.undelivered == 0

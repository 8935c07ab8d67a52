from __future__ import annotations

import contextlib
import os
import resource
import socket
from collections.abc import Iterator

import pytest

from podbot.streams.sink import ATOMIC, LIMIT, LogSink, Sink
from tests.streams.plumbing import Pipe, pipes

BLOCK = b"x" * (1 << 20)


@contextlib.contextmanager
def sink(fd: int | None) -> Iterator[Sink]:
    made = Sink(fd)
    with contextlib.closing(made):
        yield made


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    with pipes(1) as (made,):
        yield made


def test_a_full_pipe_does_not_block_and_nothing_is_lost(pipe: Pipe) -> None:
    with sink(pipe.write) as made:
        made.push(memoryview(BLOCK))
        made.push(memoryview(b"end"))
        made.flush()
        assert 0 < made.pending < len(BLOCK) + 3
        came = b""
        while made.pending:
            came += os.read(pipe.read, 1 << 16)
            made.flush()
        came += os.read(pipe.read, 1 << 16)
        assert came == BLOCK + b"end"


def test_the_callers_descriptor_keeps_its_mode(pipe: Pipe) -> None:
    with sink(pipe.write) as made:
        assert made.fileno() != pipe.write
        assert not os.get_blocking(made.fileno())
        assert not os.get_inheritable(made.fileno())
        assert os.get_blocking(pipe.write)
    assert os.get_blocking(pipe.write)
    os.write(pipe.write, b"still open")


@contextlib.contextmanager
def no_more_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Not the lowest free number: a thread of an earlier test may close one below it at any moment.
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_where_a_pipe_cannot_be_opened_again_writes_are_cut(pipe: Pipe) -> None:
    with contextlib.ExitStack() as stack:
        with no_more_descriptors():
            made = stack.enter_context(sink(pipe.write))
        assert made.must_poll
        assert made.fileno() == pipe.write
        made.push(memoryview(BLOCK[: 3 * ATOMIC]))
        made.flush()
        assert made.pending == 2 * ATOMIC, "one piece that a pipe takes whole for one poll"
    assert os.get_blocking(pipe.write)


def test_a_socket_does_not_block_either() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, sink(ours.fileno()) as made:
        for _ in range(4):
            made.push(memoryview(BLOCK))
        made.flush()
        assert made.pending
        assert os.get_blocking(ours.fileno())
        came = 0
        theirs.setblocking(False)
        while made.pending or came < 4 * len(BLOCK):
            came += len(theirs.recv(1 << 18))
            made.flush()
        assert came == 4 * len(BLOCK)


def test_a_file_is_written_from_the_callers_position(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "out")
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    os.write(fd, b"before ")
    with sink(fd) as made:
        made.push(memoryview(b"after"))
        made.flush()
        assert made.pending == 0
    os.close(fd)
    with open(path, "rb") as file:
        assert file.read() == b"before after"


def test_no_descriptor_discards() -> None:
    with sink(None) as made:
        made.push(memoryview(BLOCK))
        made.flush()
        assert (made.pending, made.fileno()) == (0, -1)


def test_a_closed_reader_is_an_error_and_no_signal(pipe: Pipe) -> None:
    with sink(pipe.write) as made:
        pipe.close(pipe.read)
        made.push(memoryview(b"x"))
        with pytest.raises(BrokenPipeError):
            made.flush()
    ours, theirs = socket.socketpair()
    with ours, sink(ours.fileno()) as made:
        theirs.close()
        made.push(memoryview(b"x"))
        with pytest.raises(BrokenPipeError):
            made.flush()


def test_a_reader_that_was_closed_before(pipe: Pipe) -> None:
    pipe.close(pipe.read)
    with sink(pipe.write) as made:
        made.push(memoryview(b"x"))
        with pytest.raises(BrokenPipeError):
            made.flush()


def test_a_terminal_keeps_its_mode() -> None:
    controller, terminal = os.openpty()
    try:
        with sink(terminal) as made:
            made.push(memoryview(b"hi"))
            made.flush()
            assert os.read(controller, 10) == b"hi"
        assert os.get_blocking(terminal)
    finally:
        os.close(controller)
        os.close(terminal)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_socket_under_a_default_timeout(blocking: bool) -> None:
    """The embedder's setdefaulttimeout made its own socket non-blocking, and a slow reader counted as gone after
    that time.
    """
    ours, theirs = socket.socketpair()
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(0.05)
    try:
        with ours, theirs:
            theirs.setblocking(blocking)
            with sink(theirs.fileno()) as made:
                made.push(memoryview(BLOCK))
                made.flush()
                made.flush()
                assert made.pending
            assert os.get_blocking(theirs.fileno()) is blocking
    finally:
        socket.setdefaulttimeout(before)


def test_a_logs_note_about_lost_bytes_counts_towards_its_limit(pipe: Pipe) -> None:
    made = LogSink(pipe.write)
    with contextlib.closing(made):
        made.push(memoryview(b"e" * (2 * LIMIT - 10)))
        made.push(memoryview(b"lost, it does not fit"))
        made.push(memoryview(b"ten bytes\n"))  # fits alone, but not after the note
        assert made.pending == 2 * LIMIT - 10
        made.taken(1000)
        made.push(memoryview(b"fits\n"))
        assert made.pending <= 2 * LIMIT

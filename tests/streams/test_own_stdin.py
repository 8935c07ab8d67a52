"""podbot's own stdin: real pipes, files and sockets, from which another reader gets what was not taken."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.streams.own_stdin import FIRST, OwnStdin
from tests.streams.plumbing import nothing_left_open

Filled = Callable[[bytes], int]


@pytest.fixture(params=["pipe", "file", "socket"])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Filled]:
    """Makes a stdin of one kind that contains some bytes, and then ends."""
    opened: list[int] = []

    def make(data: bytes) -> int:
        if request.param == "file":
            (tmp_path / "input").write_bytes(b"before" + data)
            reader = os.open(tmp_path / "input", os.O_RDONLY)
            os.lseek(reader, 6, os.SEEK_SET)
        elif request.param == "pipe":
            reader, writer = os.pipe()
            os.write(writer, data)
            os.close(writer)
        else:
            ours, theirs = socket.socketpair()
            theirs.sendall(data)
            theirs.close()
            reader = ours.detach()
        opened.append(reader)
        return reader

    yield make
    for fd in opened:
        os.close(fd)


def test_what_was_only_looked_at_stays_for_another_reader(filled: Filled) -> None:
    fd = filled(b"one\ntwo\n")
    own = OwnStdin(fd, shared=True)
    assert (own.read(), own.held) == (b"one\ntwo\n", 8)
    own.take(0)
    assert os.read(fd, 100) == b"one\ntwo\n"


def test_what_the_command_has_read_is_taken_and_the_rest_stays(filled: Filled) -> None:
    fd = filled(b"one\ntwo\n")
    own = OwnStdin(fd, shared=True)
    own.read()
    own.take(4)
    own.take(4)  # the same count once more
    assert own.held == 4
    assert os.read(fd, 100) == b"two\n"


def test_when_all_was_read_the_rest_is_read_ahead(filled: Filled) -> None:
    own = OwnStdin(filled(b"1" * FIRST + b"2" * 5000), shared=True)
    assert own.read() == b"1" * FIRST
    own.take(FIRST)
    assert own.held == 0
    rest = b"".join(iter(own.read, b""))
    own.take(FIRST + 5000)
    assert rest == b"2" * 5000


def test_a_stdin_that_is_not_shared_is_read_ahead(filled: Filled) -> None:
    fd = filled(b"one\ntwo\n")
    own = OwnStdin(fd, shared=False)
    assert (own.read(), own.held) == (b"one\ntwo\n", 0)
    assert os.read(fd, 100) == b""


def test_an_empty_stdin_is_at_its_end(filled: Filled) -> None:
    assert OwnStdin(filled(b""), shared=True).read() == b""


def test_a_device_cannot_be_looked_at() -> None:
    fd = os.open("/dev/zero", os.O_RDONLY)
    try:
        own = OwnStdin(fd, shared=True)
        assert (own.read().strip(b"\0"), own.held) == (b"", 0)
    finally:
        os.close(fd)


def test_what_another_program_has_taken_meanwhile_is_not_waited_for(filled: Filled) -> None:
    fd = filled(b"one")
    own = OwnStdin(fd, shared=True)
    own.read()
    os.read(fd, 3)
    own.take(3)
    assert own.held == 0


def test_an_open_pipe_without_data_has_none_yet() -> None:
    reader, writer = os.pipe()
    try:
        own = OwnStdin(reader, shared=True)
        with nothing_left_open(), pytest.raises(BlockingIOError):
            own.read()
        os.write(writer, b"late")
        assert (own.read(), own.held) == (b"late", 4)
    finally:
        os.close(reader)
        os.close(writer)


def test_where_nothing_can_be_looked_at_the_input_is_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> tuple[int, int]:
        raise OSError(errno.EMFILE, "Too many open files")

    reader, writer = os.pipe()
    os.write(writer, b"important")
    os.close(writer)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "pipe", full)
            own = OwnStdin(reader, shared=True)
            assert (own.read(), own.held) == (b"important", 0)
            assert own.read() == b""
    finally:
        os.close(reader)


@pytest.mark.parametrize("kind", [socket.SOCK_SEQPACKET, socket.SOCK_DGRAM])
def test_a_message_is_read_whole(kind: socket.SocketKind) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    with ours, theirs:
        theirs.send(b"x" * 20_000)
        own = OwnStdin(ours.fileno(), shared=True)
        assert (own.read(), own.held) == (b"x" * 20_000, 0)


def test_a_reader_beside_podbot_keeps_what_it_took(filled: Filled) -> None:
    fd = filled(b"one\ntwo\nsix\n")
    own = OwnStdin(fd, shared=True)
    own.read()
    assert os.read(fd, 4) == b"one\n"
    own.take(4)  # the command has read "one", too, but that is not there any more
    assert os.read(fd, 100) == b"two\nsix\n"


def test_a_closed_stdin_is_an_error() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        OwnStdin(-1, shared=True).read()


@given(st.binary(min_size=1, max_size=6000), st.lists(st.integers(0, 6000), max_size=5))
def test_no_byte_is_lost_or_read_twice(data: bytes, counts: list[int]) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, data)
        os.close(writer)
        own = OwnStdin(reader, shared=True)
        first = own.read()
        for count in sorted(counts):
            own.take(count)
        taken = len(first) - own.held
        assert taken == min(max(counts, default=0), len(first))
        assert first[:taken] + b"".join(iter(lambda: os.read(reader, 1 << 16), b"")) == data
    finally:
        os.close(reader)

"""The listening socket of a sandbox's gateway: the guest makes it inside, and podbot trusts nothing that it is sent."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from podbot.guest.channel import Channel
from podbot.guest.frames import GATEWAY
from podbot.guest.reach import ask_for_listener, dial, hand_over
from tests.guest.test_end_with_podbot import pytestmark, said, sandbox
from tests.waiting import HANG

__all__ = ["pytestmark"]


def free_port() -> int:
    """Below those that the kernel gives to connections: none of another test's takes it before it is used."""
    while True:
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", random.randrange(12_000, 32_000)))
            return int(found.getsockname()[1])


def listening(address: str = "127.0.0.1", port: int = 0) -> socket.socket:
    return socket.create_server((address, port))


@pytest.mark.parametrize("word", ["serve", "serve-or-end"])
def test_podbot_alone_holds_the_listener_that_the_guest_made(tmp_path: Path, word: str) -> None:
    port = free_port()
    with sandbox(tmp_path, word) as box:
        connected = box.connected()
        listener = ask_for_listener(connected, port, HANG)
        assert listener is not None
        assert hand_over(box.listener, connected, leased=word == "serve-or-end")
        box.listener.close()
        with listener, socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = listener.accept()
            with accepted:
                accepted.sendall(b"from the gateway")
                assert client.recv(64) == b"from the gateway"
        with Channel.open(dial(box.directory, "here")) as channel:  # the guest closes its copy before it serves this
            assert said(channel, "echo", "x") == b"x\n"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        connected.close()


def test_the_guest_serves_none_when_the_port_is_in_use(tmp_path: Path) -> None:
    with listening() as other, sandbox(tmp_path, "serve") as box:
        connected = box.connected()
        assert ask_for_listener(connected, other.getsockname()[1], HANG) is None
        assert not hand_over(box.listener, connected)
        connected.close()
        box.listener.close()


@contextlib.contextmanager
def answered(answer: Callable[[socket.socket], object]) -> Iterator[socket.socket]:
    """podbot's end of a connection whose other end has answered already."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        answer(theirs)
        yield ours


def passing(*descriptors: int, word: bytes = GATEWAY) -> Callable[[socket.socket], object]:
    return lambda theirs: socket.send_fds(theirs, [word], list(descriptors))


PORT = free_port()


def unusable(tmp_path: Path) -> dict[str, socket.socket | BinaryIO]:
    """Sockets and files that are not a listener on that port of the loopback interface."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", PORT))
    accepting = listening()
    client = socket.create_connection(accepting.getsockname())
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(tmp_path / "unix"))
    unix.listen()
    six = socket.create_server(("::1", 0), family=socket.AF_INET6)
    return {
        "a socket that does not listen": bound,
        "another port": accepting,
        "a connection": client,
        "a unix socket": unix,
        "an IPv6 socket": six,
        "a datagram socket": socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "every address": listening("0.0.0.0"),
        "a file": (tmp_path / "file").open("wb"),
    }


def test_only_a_listener_on_that_port_of_the_loopback_interface_is_accepted(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        for name, found in unusable(tmp_path).items():
            stack.callback(found.close)
            number = found.fileno()
            with answered(passing(number)) as ours:
                assert ask_for_listener(ours, PORT, HANG) is None, name


def test_every_address_with_that_port_is_refused() -> None:
    with listening("0.0.0.0") as every, answered(passing(every.fileno())) as ours:
        assert ask_for_listener(ours, every.getsockname()[1], HANG) is None


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda theirs: theirs.close(), id="nothing"),
        pytest.param(lambda theirs: theirs.sendall(GATEWAY), id="no descriptor"),
        pytest.param(lambda theirs: theirs.sendall(b"x"), id="another byte"),
    ],
)
def test_other_answers_are_refused(answer: Callable[[socket.socket], object]) -> None:
    with answered(answer) as ours:
        assert ask_for_listener(ours, PORT, HANG) is None


def test_several_descriptors_or_another_byte_are_refused() -> None:
    with listening() as good:
        port = good.getsockname()[1]
        for answer in (passing(good.fileno(), word=b"x"), passing(0, good.fileno()), passing(good.fileno(), 0)):
            with answered(answer) as ours:
                found = ask_for_listener(ours, port, HANG)
            assert found is None


def test_a_guest_that_does_not_answer_is_not_waited_for() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert ask_for_listener(ours, PORT, 0.05) is None

"""What a hostile guest may send, and the readers of the protocol.

A table maps a name to a script and, for greetings, to what a channel's error says. ``tests/execution/test_lies.py``
tells the same lies to `exec`, `run` and `host`.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from podbot.errors import ChannelLost, NoGuest, PodbotError
from podbot.guest import frames
from podbot.guest.channel import Channel
from podbot.guest.link import Patience, SocketLink
from podbot.guest.messages import Ended, GuestCommand
from podbot.guest.polled_command import ConnectionState, PolledCommand, Wait
from podbot.guest.reach import dial
from podbot.streams.sides import StreamsLost
from tests.guest.liar import ENDED, FACTS, Peer

COMMAND = GuestCommand(("true",), stdin="open")
DISCARDED = GuestCommand(("true",), stdin="open", discard=True)
SHORT = 0.2  # seconds that podbot waits for a guest that is silent

Script = Callable[[Peer], None]


def says(kind: int, words: object) -> Script:
    def script(peer: Peer) -> None:
        _, ident, _ = peer.hear(frames.HELLO)
        peer.say(kind, ident, words)
        peer.stay()

    return script


def sends(data: bytes, *, then_leaves: bool = False) -> Script:
    def script(peer: Peer) -> None:
        peer.hear(frames.HELLO)
        peer.socket.sendall(data)
        if not then_leaves:
            peer.stay()

    return script


def floods(peer: Peer) -> None:
    peer.hear(frames.HELLO)
    junk = frames.frame(frames.STDOUT, 4242, b"x" * 1000) * 50
    while True:
        peer.socket.sendall(junk)


def passes_descriptors(peer: Peer) -> None:
    peer.hear(frames.HELLO)
    _pass_descriptors(peer)


def _pass_descriptors(peer: Peer) -> None:
    with socket.socket() as tcp:
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\xff\xff\xff\x7f")
        numbers = array.array("i", [tcp.fileno()] * 200)
        try:
            peer.socket.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
        except PermissionError:  # the kernel refuses them
            return
    peer.stay()


def hears(peer: Peer) -> None:
    peer.hear()


def begins(peer: Peer) -> None:
    peer.begin()
    peer.stay()


def greets(peer: Peer) -> None:
    peer.greet()
    peer.stay()


HUGE = frames.HEADER.pack(2**32 - 1, frames.WELCOME, 1)


GREETINGS: dict[str, tuple[Script, str]] = {
    "it leaves": (lambda _: None, "lost: it ended|failed"),
    "it leaves after the greeting": (hears, "lost: it ended|failed"),
    "garbage": (sends(b"\xff" * 5000), "an invalid frame"),
    "another protocol": (sends(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "an invalid frame"),
    "a frame of 4 GiB": (sends(HUGE), "an invalid frame"),
    "a frame of 4 GiB that comes": (sends(HUGE + b"x" * (1 << 20)), "an invalid frame"),
    "half a frame, and it leaves": (
        sends(frames.frame(frames.WELCOME, 1, b"x" * 99)[:50], then_leaves=True),
        "it ended",
    ),
    "a later version": (
        says(frames.WELCOME, {**FACTS, "version": frames.VERSION + 1}),
        f"uses version {frames.VERSION + 1}",
    ),
    "version 0": (says(frames.WELCOME, {**FACTS, "version": 0}), "uses version 0"),
    "a version that is text": (says(frames.WELCOME, {**FACTS, "version": "1"}), "an invalid message"),
    "no version": (says(frames.WELCOME, {}), "an invalid message"),
    "no object": (says(frames.WELCOME, []), "an invalid message"),
    "no JSON": (says(frames.WELCOME, b"{"), "an invalid message"),
    "no text": (says(frames.WELCOME, b"\xff\xfe"), "an invalid message"),
    "deep nesting": (says(frames.WELCOME, b"[" * 60_000), "an invalid message"),
    "a number of 60,000 digits": (says(frames.WELCOME, b'{"version":' + b"9" * 60_000 + b"}"), "an invalid message"),
    "facts of 60 KB": (says(frames.WELCOME, {**FACTS, "shell": "x" * 60_000}), "an invalid message"),
    "a refusal": (says(frames.REFUSED, {"field": "a", "value": "b", "reason": "c"}), "refused the handshake"),
    "a refusal that is none": (says(frames.REFUSED, {"field": 1}), "an invalid message"),
    "an unrequested flood": (floods, "unrequested"),
    "descriptors": (passes_descriptors, "lost: it ended|failed"),
}


SILENT: dict[str, Script] = {
    "nothing": Peer.silence,
    "half a header": sends(frames.HEADER.pack(9, frames.WELCOME, 1)[:5]),
    "half a frame": sends(frames.frame(frames.WELCOME, 1, b"x" * 99)[:50]),
    "an answer for another id": sends(frames.frame(frames.WELCOME, 99, json.dumps(FACTS).encode())),
    "another kind": sends(frames.frame(frames.PONG, 1)),
}


def answers(*said: tuple[int, object]) -> Script:
    """To the start of a command; an id of 0 stands for that of the command."""

    def script(peer: Peer) -> None:
        peer.greet()
        _, ident, _ = peer.hear(frames.START)
        for kind, words in said:
            peer.say(kind, ident, words)
        peer.stay()

    return script


STARTED = (frames.STARTED, {"pid": 7, "job": 0})


# Of a command that has started.
MESSAGES: dict[str, tuple[int, object]] = {
    "ended with no code": (frames.ENDED, {}),
    "ended with code 256": (frames.ENDED, {**ENDED, "code": 256}),
    "ended by signal 99": (frames.ENDED, {**ENDED, "signal": 99}),
    "ended after NaN seconds": (frames.ENDED, {**ENDED, "seconds": float("nan")}),
    "ended, and left job -1": (frames.ENDED, {**ENDED, "left_job": -1}),
    "ended in no JSON": (frames.ENDED, b"\0"),
    "credit that was not used": (frames.STDIN_CREDIT, frames.NUMBER.pack(1)),
    "credit of 4 GiB": (frames.STDIN_CREDIT, frames.NUMBER.pack(2**32 - 1)),
    "credit that is no number": (frames.STDIN_CREDIT, b"1"),
}


STARTS: dict[str, Script] = {
    "started with no pid": answers((frames.STARTED, {})),
    "started with a pid below 0": answers((frames.STARTED, {"pid": -1, "job": 0})),
    "started with a TERM of no choices": answers((frames.STARTED, {"pid": 7, "job": 0, "term": 0})),
    "refused with no reason": answers((frames.REFUSED, {"field": "cwd", "value": "/"})),
}
PROTOCOL = STARTS | {name: answers(STARTED, said) for name, said in MESSAGES.items()}


HONEST = b"honest\n"  # what a liar's command has printed before the lie
Lie = Callable[[Peer, int], None]  # about the command of this id, which runs


def _frame(kind: int, words: object = b"", *, other: int = 0) -> Lie:
    """A frame of the command's id, or of one that is higher by ``other``."""

    def lie(peer: Peer, ident: int) -> None:
        peer.say(kind, ident + other, words)
        peer.stay()

    return lie


def _bytes(data: bytes, *, then_leaves: bool = False) -> Lie:
    def lie(peer: Peer, ident: int) -> None:
        del ident
        peer.socket.sendall(data)
        if not then_leaves:
            peer.stay()

    return lie


def _leaves(peer: Peer, ident: int) -> None:
    del peer, ident


def _passes_descriptors(peer: Peer, ident: int) -> None:
    del ident
    _pass_descriptors(peer)


# To a reader of one command, for which there is nothing that must be ignored.
LIES: dict[str, Lie] = {name: _frame(*said) for name, said in MESSAGES.items()} | {
    "credit of 0 bytes": _frame(frames.STDIN_CREDIT, frames.NUMBER.pack(0)),
    "started twice": _frame(frames.STARTED, {"pid": 8, "job": 0}),
    "refused after the start": _frame(frames.REFUSED, {"field": "cwd", "value": "/", "reason": "no"}),
    "a refusal of the connection": _frame(frames.REFUSED, {"field": "a", "value": "b", "reason": "c"}, other=-1),
    "a second greeting": _frame(frames.WELCOME, FACTS, other=-1),
    "an answer to a ping": _frame(frames.PONG),
    "output of another command": _frame(frames.STDOUT, b"not of this command\n", other=1),
    "empty output": _frame(frames.STDOUT),
    "an unknown kind": _frame(200, b"x"),
    "garbage": _bytes(b"\xff" * 5000),
    "a frame of 4 GiB": _bytes(frames.HEADER.pack(2**32 - 1, frames.STDOUT, 2) + b"x" * 5000),
    "half a frame, and it leaves": _bytes(frames.frame(frames.STDOUT, 2, b"x" * 99)[:50], then_leaves=True),
    "it leaves": _leaves,
    "descriptors": _passes_descriptors,
}


def _says_nothing_more(peer: Peer, ident: int) -> None:
    del ident
    peer.stay()


def _takes_nothing_more(peer: Peer, ident: int) -> None:
    del ident
    peer.silence()


def _prints_on(peer: Peer, ident: int) -> None:
    """Whatever its credit is: podbot takes the output as it comes, and so there is always some."""
    piece = frames.frame(frames.STDOUT, ident, HONEST) * 1000
    while True:
        peer.socket.sendall(piece)


ENDLESS: dict[str, Lie] = {
    "it says nothing more": _says_nothing_more,
    "it takes nothing more": _takes_nothing_more,
    "it prints on": _prints_on,
}


# What it may say of the end of a command, and with it of the whole sandbox, which only podbot's host can know.
OF_THE_SANDBOX: dict[str, dict[str, object]] = {
    "TERM ended it": {**ENDED, "code": 143, "signal": 15, "cause": "sandbox_end"},
    "it handled TERM": {**ENDED, "code": 3, "cause": "sandbox_end"},
    "it handled TERM well": {**ENDED, "cause": "sandbox_end"},
}


def runs(lie: Lie) -> Script:
    """A command runs and prints HONEST; then follows ``lie``."""

    def script(peer: Peer) -> None:
        ident = peer.begin()
        peer.say(frames.STDOUT, ident, HONEST)
        lie(peer, ident)

    return script


@dataclass(frozen=True)
class Reader:
    """``run`` connects, runs a command and returns its end and its output. The classes are those of its errors."""

    name: str
    run: Callable[[Path, GuestCommand, Patience], tuple[Ended, bytes]]
    greeting: type[PodbotError]
    later: tuple[type[Exception], ...]


def _run_on_channel(directory: Path, command: GuestCommand, patience: Patience) -> tuple[Ended, bytes]:
    found: list[bytes] = []
    with Channel.open(dial(str(directory), "box", patience), patience) as channel:
        ended = channel.start(command, lambda _, data: found.append(data)).wait()
    assert ended is not None
    return ended, b"".join(found)


def wait_on(link: SocketLink) -> Wait:
    """Waits for the connection alone."""

    def wait(left: float, events: int) -> bool:
        poller = select.poll()
        poller.register(link.fileno(), events)
        poller.poll(max(0.0, left) * 1000)
        return False

    return wait


def _run_polled(directory: Path, command: GuestCommand, patience: Patience) -> tuple[Ended, bytes]:
    link = dial(str(directory), "box", patience)
    waiting = wait_on(link)
    polled = PolledCommand.greeted(link, patience.greeting, waiting)
    try:
        polled.start(command, patience.answer, waiting)
        return relayed(polled)
    finally:
        polled.close()


def relayed(polled: PolledCommand) -> tuple[Ended, bytes]:
    """What a relay does with a command whose output is read at once."""
    found = bytearray()
    while not polled.ended:
        poller = select.poll()
        for fd, events in polled.wants(room=True, sending=False):
            poller.register(fd, events)
        ready = dict(poller.poll(0 if polled.eager else None))
        for piece in polled.receive(ready):
            found += piece.data
    assert polled.end is not None
    return polled.end, bytes(found)


class _ByteByByte(SocketLink):
    """So that nothing of what follows the start of a command is received with it."""

    def receive(self, limit: int) -> bytes:
        return super().receive(min(limit, 1))


def left_connection(directory: Path, command: GuestCommand, patience: Patience) -> tuple[int, dict[str, object]]:
    """A command that one process has started, for another one: the connection's descriptor, and its state."""
    with contextlib.closing(dial(str(directory), "box", patience)) as dialled:
        link = _ByteByByte(socket.socket(fileno=os.dup(dialled.fileno())), "box")
    waiting = wait_on(link)
    running = PolledCommand.greeted(link, patience.greeting, waiting)
    with contextlib.closing(running):
        running.start(command, patience.answer, waiting)
        return os.dup(link.fileno()), json.loads(json.dumps(running.state().described()))


def _run_resumed(directory: Path, command: GuestCommand, patience: Patience) -> tuple[Ended, bytes]:
    """As the helper process of ``host`` continues it."""
    connection, state = left_connection(directory, command, patience)
    link = SocketLink(socket.socket(fileno=connection), "box")
    with contextlib.closing(PolledCommand.resumed(link, ConnectionState.read(state))) as running:
        return relayed(running)


CHANNEL = Reader("channel", _run_on_channel, ChannelLost, (ChannelLost,))
POLLED = Reader("polled", _run_polled, NoGuest, (ChannelLost, StreamsLost))
RESUMED = Reader("resumed", _run_resumed, NoGuest, (ChannelLost, StreamsLost))
of_one_command = pytest.mark.parametrize("reader", [POLLED, RESUMED], ids=lambda reader: reader.name)
each_greeted = pytest.mark.parametrize("reader", [CHANNEL, POLLED], ids=lambda reader: reader.name)
each_reader = pytest.mark.parametrize("reader", [CHANNEL, POLLED, RESUMED], ids=lambda reader: reader.name)

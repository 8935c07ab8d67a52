"""What a hostile guest may send, for both readers of the protocol, and the two readers.

A table maps a name to a script and, for greetings, to what a channel's error says.
"""

from __future__ import annotations

import array
import json
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
from podbot.guest.polled_command import PolledCommand, Wait
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


PROTOCOL: dict[str, Script] = {
    "started with no pid": answers((frames.STARTED, {})),
    "started with a pid below 0": answers((frames.STARTED, {"pid": -1, "job": 0})),
    "refused with no reason": answers((frames.REFUSED, {"field": "cwd", "value": "/"})),
    "ended with no code": answers(STARTED, (frames.ENDED, {})),
    "ended with code 256": answers(STARTED, (frames.ENDED, {**ENDED, "code": 256})),
    "ended by signal 99": answers(STARTED, (frames.ENDED, {**ENDED, "signal": 99})),
    "ended after NaN seconds": answers(STARTED, (frames.ENDED, {**ENDED, "seconds": float("nan")})),
    "ended, and left job -1": answers(STARTED, (frames.ENDED, {**ENDED, "left_job": -1})),
    "ended in no JSON": answers(STARTED, (frames.ENDED, b"\0")),
    "credit that was not used": answers(STARTED, (frames.STDIN_CREDIT, frames.NUMBER.pack(1))),
    "credit of 4 GiB": answers(STARTED, (frames.STDIN_CREDIT, frames.NUMBER.pack(2**32 - 1))),
    "credit that is no number": answers(STARTED, (frames.STDIN_CREDIT, b"1")),
}


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


CHANNEL = Reader("channel", _run_on_channel, ChannelLost, (ChannelLost,))
POLLED = Reader("polled", _run_polled, NoGuest, (ChannelLost, StreamsLost))
each_reader = pytest.mark.parametrize("reader", [CHANNEL, POLLED], ids=lambda reader: reader.name)

"""Every lie of ``lies`` to each reader of the protocol: one clear error, in bounded time and memory."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import threading
from pathlib import Path

import pytest

from podbot.errors import CommandRefused
from podbot.guest import frames
from podbot.guest.link import Patience, SocketLink
from podbot.guest.polled_command import PolledCommand
from podbot.guest.reach import dial
from tests.guest.liar import ENDED, LONG, PATIENT, Peer, liar
from tests.guest.lies import (
    CHANNEL,
    COMMAND,
    DISCARDED,
    GREETINGS,
    LIES,
    PROTOCOL,
    SHORT,
    SILENT,
    STARTED,
    Lie,
    Reader,
    Script,
    answers,
    each_greeted,
    each_reader,
    of_one_command,
    runs,
    wait_on,
)


@each_greeted
@pytest.mark.parametrize(("script", "reason"), GREETINGS.values(), ids=GREETINGS.keys())
def test_a_greeting_that_is_none_is_one_clear_error(
    tmp_path: Path, reader: Reader, script: Script, reason: str
) -> None:
    with (
        liar(str(tmp_path), script),
        pytest.raises(reader.greeting, match=reason if reader is CHANNEL else "box") as caught,
    ):
        reader.run(tmp_path, COMMAND, PATIENT)
    assert caught.value.where == "box"  # type: ignore[attr-defined]
    assert len(str(caught.value)) < 300


@each_greeted
@pytest.mark.parametrize("script", SILENT.values(), ids=SILENT.keys())
def test_a_greeting_that_never_comes_is_not_waited_for(tmp_path: Path, reader: Reader, script: Script) -> None:
    with liar(str(tmp_path), script), pytest.raises(reader.greeting) as caught:
        reader.run(tmp_path, COMMAND, Patience(greeting=SHORT))
    assert reader is not CHANNEL or "did not answer within 0.2 s" in str(caught.value)


@each_greeted
def test_a_greeting_that_drips_is_not_waited_for(tmp_path: Path, reader: Reader) -> None:
    def script(peer: Peer) -> None:
        peer.hear(frames.HELLO)
        for byte in frames.frame(frames.WELCOME, 1, b" " * 60_000):
            peer.socket.sendall(bytes([byte]))
            threading.Event().wait(0.01)

    with liar(str(tmp_path), script), pytest.raises(reader.greeting, match="did not answer"):
        reader.run(tmp_path, COMMAND, Patience(greeting=SHORT))


@each_reader
@pytest.mark.parametrize("script", PROTOCOL.values(), ids=PROTOCOL.keys())
def test_what_makes_no_sense_ends_the_connection(tmp_path: Path, reader: Reader, script: Script) -> None:
    with liar(str(tmp_path), script), pytest.raises(reader.later) as caught:
        reader.run(tmp_path, COMMAND, PATIENT)
    assert reader is not CHANNEL or "invalid message" in str(caught.value)
    assert len(str(caught.value)) < 300


@of_one_command
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_what_a_command_cannot_have_caused_ends_its_connection(tmp_path: Path, reader: Reader, lie: Lie) -> None:
    with liar(str(tmp_path), runs(lie)), pytest.raises(reader.later) as caught:
        reader.run(tmp_path, COMMAND, PATIENT)
    assert len(str(caught.value)) < 300


class _Flooding(SocketLink):
    """Nothing can be sent, and there is always more to receive, as from a guest that is faster than podbot."""

    flooding, received = False, 0

    def send(self, data: memoryview) -> int:
        if self.flooding:
            raise BrokenPipeError(errno.EPIPE, "")
        return super().send(data)

    def receive(self, limit: int) -> bytes:
        if not self.flooding:
            return super().receive(limit)
        self.received += 1
        assert self.received < 10, "the flood has no end"
        return frames.frame(frames.STDIN_CREDIT, 2, frames.NUMBER.pack(0)) * 1000


def test_a_flood_from_a_guest_that_takes_nothing_more_ends(tmp_path: Path) -> None:
    """podbot reads what is left when it cannot send, which hung here: credit of 0 bytes uses up none."""
    with liar(str(tmp_path), runs(lambda peer, _: peer.stay())):
        with contextlib.closing(dial(str(tmp_path), "box", PATIENT)) as dialled:
            link = _Flooding(socket.socket(fileno=os.dup(dialled.fileno())), "box")
        with contextlib.closing(PolledCommand.greeted(link, LONG, wait_on(link))) as running:
            running.start(COMMAND, LONG, wait_on(link))
            link.flooding = True
            assert not running.signal(signal.SIGTERM)
            assert "invalid message" in running.lost


@each_reader
def test_output_that_was_to_be_discarded_ends_the_connection(tmp_path: Path, reader: Reader) -> None:
    script = answers(STARTED, (frames.STDOUT, b"x"))
    with liar(str(tmp_path), script), pytest.raises(reader.later, match="credit"):
        reader.run(tmp_path, DISCARDED, PATIENT)


@each_reader
@pytest.mark.parametrize("kind", [frames.PONG, frames.STDOUT, frames.ENDED, 200])
def test_a_flood_of_unrequested_frames_ends_the_connection(tmp_path: Path, reader: Reader, kind: int) -> None:
    def script(peer: Peer) -> None:
        peer.begin()
        junk = frames.frame(kind, 4242) * 100
        while True:
            peer.socket.sendall(junk)

    with liar(str(tmp_path), script), pytest.raises(reader.later):
        reader.run(tmp_path, COMMAND, PATIENT)


@each_reader
def test_a_command_that_is_never_started_is_not_waited_for(tmp_path: Path, reader: Reader) -> None:
    patience = Patience(greeting=LONG, silence=LONG, answer=SHORT)
    with liar(str(tmp_path), answers()), pytest.raises(reader.later, match=r"did not start a command within 0\.2 s"):
        reader.run(tmp_path, COMMAND, patience)


@each_reader
def test_a_refusal_is_quoted_and_nothing_else_of_it_counts(tmp_path: Path, reader: Reader) -> None:
    said = {"field": "cwd\x1b", "value": "\x1b]0;title\x07/x", "reason": "No such file\x1b\n" + "y" * 4000, "more": [1]}
    with liar(str(tmp_path), answers((frames.REFUSED, said))), pytest.raises(CommandRefused) as caught:
        reader.run(tmp_path, COMMAND, PATIENT)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@each_reader
def test_what_an_honest_guest_says_is_read(tmp_path: Path, reader: Reader) -> None:
    """So that the tests above fail for what the guest says, and for nothing else."""
    script = answers(STARTED, (frames.STDOUT, b"out"), (frames.STDERR, b"err"), (frames.ENDED, {**ENDED, "code": 3}))
    with liar(str(tmp_path), script):
        ended, found = reader.run(tmp_path, COMMAND, PATIENT)
    assert (ended.code, found) == (3, b"outerr")

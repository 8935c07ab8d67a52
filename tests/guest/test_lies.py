"""Every lie of ``lies`` to both readers of the protocol: one clear error, in bounded time and memory."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from podbot.errors import CommandRefused
from podbot.guest import frames
from podbot.guest.link import Patience
from tests.guest.liar import ENDED, LONG, PATIENT, Peer, liar
from tests.guest.lies import (
    CHANNEL,
    COMMAND,
    DISCARDED,
    GREETINGS,
    PROTOCOL,
    SHORT,
    SILENT,
    STARTED,
    Reader,
    Script,
    answers,
    each_reader,
)


@each_reader
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


@each_reader
@pytest.mark.parametrize("script", SILENT.values(), ids=SILENT.keys())
def test_a_greeting_that_never_comes_is_not_waited_for(tmp_path: Path, reader: Reader, script: Script) -> None:
    with liar(str(tmp_path), script), pytest.raises(reader.greeting) as caught:
        reader.run(tmp_path, COMMAND, Patience(greeting=SHORT))
    assert reader is not CHANNEL or "did not answer within 0.2 s" in str(caught.value)


@each_reader
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
    said = {"field": "cwd", "value": "\x1b]0;title\x07/x", "reason": "No such file", "more": [1]}
    with liar(str(tmp_path), answers((frames.REFUSED, said))), pytest.raises(CommandRefused) as caught:
        reader.run(tmp_path, COMMAND, PATIENT)
    assert "\x1b" not in str(caught.value)


@each_reader
def test_what_an_honest_guest_says_is_read(tmp_path: Path, reader: Reader) -> None:
    """So that the tests above fail for what the guest says, and for nothing else."""
    script = answers(STARTED, (frames.STDOUT, b"out"), (frames.STDERR, b"err"), (frames.ENDED, {**ENDED, "code": 3}))
    with liar(str(tmp_path), script):
        ended, found = reader.run(tmp_path, COMMAND, PATIENT)
    assert (ended.code, found) == (3, b"outerr")

"""Every lie of ``tests/guest/lies.py`` to `exec`, `run` and `host`: the engine runs the command, or one clear error."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.errors import ChannelLost, CommandSurvived, ExecFailed, PodbotError, SandboxDied
from podbot.execution.runner import ExecStatus
from podbot.guest import frames
from podbot.streams.wake import Signal
from tests.execution.doors import DISCARDING, DOORS, ENGINES, NEVER, Door, Rig, by_exec, rigged
from tests.execution.running import Told
from tests.guest.liar import ENDED, Peer, liar
from tests.guest.lies import (
    ENDLESS,
    GREETINGS,
    HONEST,
    LIES,
    OF_THE_SANDBOX,
    SHORT,
    SILENT,
    STARTED,
    STARTS,
    Lie,
    Script,
    answers,
    runs,
)

TAKEN = 8 << 20  # bytes that podbot and the socket's buffers may take of a flood
RAW = "\x1b[2J\n\rpodbot: all is well\u202e" + "y" * 4000
MESSAGE = 400  # characters of an error, at most

each_door = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with rigged(tmp_path) as made:
        yield made


def left_to_the_engine(rig: Rig, door: Door, script: Script) -> None:
    """Nothing is said of the guest: `exec` reports that nothing was started, and the others ask the engine once."""
    with rig.reading(), liar(rig.place, script):
        status = door(rig)
    if door is by_exec:
        assert (status, rig.engines, rig.out) == (None, 0, b"")
    else:
        assert (status, rig.engines, rig.out) == (ExecStatus(5), 1, ENGINES)
    assert (rig.err, rig.events) == (b"", [])


def fails(rig: Rig, door: Door, script: Script, kind: type[PodbotError] = ChannelLost) -> str:
    """The only error; the engine runs nothing, and all that is printed is what the liar's command has printed."""
    with rig.reading(), liar(rig.place, script), pytest.raises(PodbotError) as caught:
        door(rig)
    assert type(caught.value) is kind
    assert HONEST.startswith(rig.out)  # what comes with garbage in one piece is lost with it
    assert (rig.engines, rig.err, rig.events) == (0, b"", [])
    said = caught.value.message  # the remedy is a text of podbot's
    assert len(said) < MESSAGE
    assert said.isprintable()
    return said


@each_door
@pytest.mark.parametrize("script", [script for script, _ in GREETINGS.values()], ids=GREETINGS.keys())
def test_a_greeting_that_is_none_leaves_the_command_to_the_engine(rig: Rig, door: Door, script: Script) -> None:
    left_to_the_engine(rig, door, script)


@each_door
@pytest.mark.parametrize("script", SILENT.values(), ids=SILENT.keys())
def test_a_greeting_that_never_comes_is_not_waited_for(rig: Rig, door: Door, script: Script) -> None:
    rig.limits = dataclasses.replace(NEVER, greeting=SHORT)
    left_to_the_engine(rig, door, script)


@each_door
@pytest.mark.parametrize("script", STARTS.values(), ids=STARTS.keys())
def test_a_start_that_makes_no_sense_is_one_error(rig: Rig, door: Door, script: Script) -> None:
    """The command may run, so that the engine must not run it a second time."""
    assert "invalid message" in fails(rig, door, script)


@each_door
@pytest.mark.parametrize("term", [-1, 2, 1 << 70, True, 0.0, "0", "xterm", [0], {}])
def test_a_term_that_is_not_one_of_the_choices_is_one_error(rig: Rig, door: Door, term: object) -> None:
    rig.spec = dataclasses.replace(rig.spec, tty=True, term_choices=("a", "b"))
    said = fails(rig, door, answers((frames.STARTED, {"pid": 7, "job": 0, "term": term})))
    assert "invalid message (term is not a number from 0 to 1)" in said
    assert rig.terms == []


@each_door
@pytest.mark.parametrize(
    ("term", "told"),
    [(None, [("mine", False)]), (0, []), (1, [("b", True)])],
    ids=["none, as an older guest", "the host's own", "another"],
)
def test_a_chosen_term_is_told_by_the_name_that_podbot_sent(
    rig: Rig, door: Door, term: int | None, told: list[tuple[str, bool]]
) -> None:
    choices = {"env": {"TERM": "mine"}, "term_choices": ("a", "b")}
    rig.spec = dataclasses.replace(rig.spec, tty=True, **choices)  # type: ignore[arg-type]
    script = answers((frames.STARTED, {"pid": 7, "job": 0, "term": term}), (frames.ENDED, ENDED))
    with rig.reading(), liar(rig.place, script):
        assert door(rig) == ExecStatus(0)
    assert rig.terms == told


@each_door
def test_a_start_that_is_never_reported_ends_with_a_signal(rig: Rig, door: Door) -> None:
    rig.limits = dataclasses.replace(NEVER, start_after_signal=0.0)
    rig.wake.post(Signal(signal.SIGTERM))
    with rig.reading(), liar(rig.place, answers()):
        assert door(rig) == ExecStatus(128 + signal.SIGTERM, signal.SIGTERM)
    assert (rig.engines, rig.out) == (0, b"")


@each_door
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_lie_about_a_command_is_one_error_after_its_honest_output(rig: Rig, door: Door, lie: Lie) -> None:
    fails(rig, door, runs(lie))


@each_door
def test_a_sandbox_that_ends_with_the_lie_is_that_error(rig: Rig, door: Door) -> None:
    def dies(peer: Peer, ident: int) -> None:
        rig.engine.stop(rig.name, seconds=0)
        peer.say(frames.STDIN_CREDIT, ident, b"1")
        peer.stay()

    fails(rig, door, runs(dies), SandboxDied)


def flooded(rig: Rig, door: Door, kind: int, payload: bytes) -> None:
    """The flood ends in an error, and until then podbot has taken little of it."""
    sent = 0

    def floods(peer: Peer) -> None:
        nonlocal sent
        piece = frames.frame(kind, peer.begin(), payload) * 1000
        while True:
            sent += peer.socket.send(piece)

    with rig.reading(), liar(rig.place, floods), pytest.raises(ChannelLost, match="invalid message"):
        door(rig)
    assert sent < TAKEN
    assert (rig.out, rig.err) == (b"", b"")


@each_door
@pytest.mark.parametrize("kind", [frames.STDIN_CREDIT, frames.PONG, 200])
def test_a_flood_of_what_was_not_asked_for_is_one_error(rig: Rig, door: Door, kind: int) -> None:
    flooded(rig, door, kind, frames.NUMBER.pack(0))


@pytest.mark.parametrize("door", DISCARDING.values(), ids=DISCARDING.keys())
@pytest.mark.parametrize("kind", [frames.STDOUT, frames.STDERR])
def test_a_flood_of_output_that_was_to_be_discarded_is_one_error(rig: Rig, door: Door, kind: int) -> None:
    rig.discards = True
    flooded(rig, door, kind, b"x" * 1000)


@each_door
def test_a_flood_from_one_that_takes_nothing_more_ends(rig: Rig, door: Door) -> None:
    def floods(peer: Peer, ident: int) -> None:
        peer.socket.shutdown(socket.SHUT_RD)
        piece = frames.frame(frames.STDIN_CREDIT, ident, frames.NUMBER.pack(0)) * 10_000
        while True:
            peer.socket.sendall(piece)

    os.write(rig.stdin.write, b"in\n")
    fails(rig, door, runs(floods))


@each_door
@pytest.mark.parametrize("lie", ENDLESS.values(), ids=ENDLESS.keys())
def test_one_that_never_reports_the_end_is_not_waited_for_after_a_signal(rig: Rig, door: Door, lie: Lie) -> None:
    rig.limits = dataclasses.replace(NEVER, term=0.0, last_output=0.0, grace=0.0, status=0.0, flush=0.0, delivery=0.0)

    def then(peer: Peer, ident: int) -> None:
        rig.wake.post(Signal(signal.SIGTERM))
        lie(peer, ident)

    os.write(rig.stdin.write, b"in\n" * 10_000)
    with rig.reading(), liar(rig.place, runs(then)):
        if door is by_exec:
            with pytest.raises(CommandSurvived):
                door(rig)
        else:  # the sandbox is removed with all of its processes
            assert door(rig) == ExecStatus(128 + signal.SIGTERM, signal.SIGTERM)
    assert not rig.out.replace(HONEST, b"")


@each_door
def test_survivors_that_it_reports_are_named_unless_the_sandbox_ends(rig: Rig, door: Door) -> None:
    def script(peer: Peer, ident: int) -> None:
        peer.say(frames.ENDED, ident, {**ENDED, "code": 3, "survivors": 2})
        peer.stay()

    with rig.reading(), liar(rig.place, runs(script)):
        if door is by_exec:
            with pytest.raises(CommandSurvived):
                door(rig)
        else:
            assert door(rig) == ExecStatus(3)
    assert rig.out == HONEST


each_end_of_the_sandbox = pytest.mark.parametrize("said", OF_THE_SANDBOX.values(), ids=OF_THE_SANDBOX.keys())


@each_door
@each_end_of_the_sandbox
@pytest.mark.parametrize("ended", [False, True])
def test_that_the_sandbox_is_ending_is_not_believed(
    rig: Rig, door: Door, said: dict[str, object], *, ended: bool
) -> None:
    """podbot said in `run`, too, that the podbot that ran its session was killed."""

    def lie(peer: Peer, ident: int) -> None:
        if ended:
            rig.engine.stop(rig.name, seconds=0)
        peer.say(frames.ENDED, ident, said)
        peer.stay()

    with rig.reading(), liar(rig.place, runs(lie)):
        found = door(rig)
    assert found == ExecStatus(int(str(said["code"])), killed=said["signal"], cause="sandbox_end")  # type: ignore[arg-type]
    assert (rig.opened, rig.engines, rig.out) == (0, 0, HONEST)


@each_door
@each_end_of_the_sandbox
@pytest.mark.parametrize("ended", [False, True])
def test_what_this_host_shows_of_the_end_of_the_sandbox_counts_if_it_has_ended(
    rig: Rig, door: Door, said: dict[str, object], *, ended: bool
) -> None:
    rig.witness = Told("stopped")
    rig.limits = dataclasses.replace(NEVER, term=0.0)

    def tells(peer: Peer, ident: int) -> None:
        if ended:
            rig.engine.stop(rig.name, seconds=0)
        peer.say(frames.ENDED, ident, said)
        peer.stay()

    with rig.reading(), liar(rig.place, runs(tells)):
        if ended:
            with pytest.raises(SandboxDied, match="a podbot was told to stop it"):
                door(rig)
        else:
            found = door(rig)
            assert found is not None
            assert (found.code, found.cause) == (said["code"], "sandbox_end")
    assert rig.out == HONEST


@each_door
@pytest.mark.parametrize("field", ["cwd", "user", "command", "\x1b[2J"])
def test_a_refusal_leaves_the_command_to_the_engine(rig: Rig, door: Door, field: str) -> None:
    left_to_the_engine(rig, door, answers((frames.REFUSED, {"field": field, "value": RAW, "reason": RAW})))


@each_door
@pytest.mark.parametrize(("field", "asked"), [("cwd", {"workdir": "/x"}), ("user", {"user": "x"})])
def test_a_refusal_of_the_directory_or_the_user_shows_nothing_raw(
    rig: Rig, door: Door, field: str, asked: dict[str, str]
) -> None:
    rig.spec = dataclasses.replace(rig.spec, **asked)  # type: ignore[arg-type]
    script = answers((frames.REFUSED, {"field": field, "value": RAW, "reason": RAW}))
    assert "podbot: all is well" in fails(rig, door, script, ExecFailed)


@each_door
def test_what_an_honest_guest_says_is_relayed(rig: Rig, door: Door) -> None:
    """So that the tests above fail for what the guest says, and for nothing else."""
    script = answers(STARTED, (frames.STDOUT, HONEST), (frames.ENDED, {**ENDED, "code": 3}))
    with rig.reading(), liar(rig.place, script):
        assert door(rig) == ExecStatus(3)
    assert (rig.engines, rig.out) == (0, HONEST)

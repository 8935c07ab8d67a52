"""A connection to a guest that one process leaves and another continues, at any byte."""

from __future__ import annotations

import contextlib
import json
import select
import socket

from hypothesis import given, settings
from hypothesis import strategies as st

from podbot.guest import frames
from podbot.guest.link import SocketLink
from podbot.guest.messages import GuestCommand
from podbot.guest.polled_command import ConnectionState, PolledCommand
from podbot.streams.demux import Piece

ENDED = {"code": 3, "signal": None, "timed_out": False, "out_of_memory": False, "seconds": 0.1, "survivors": 0}
PIECES = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(min_size=1, max_size=50)), max_size=5)


def started(link: SocketLink, guest: socket.socket) -> PolledCommand:
    running = PolledCommand(link)
    guest.sendall(frames.frame(frames.STARTED, 2, b'{"pid": 7, "job": 0}'))
    running.start(GuestCommand(("it",), cwd="/"), 60.0, lambda _left, _events: False)
    return running


def everything(running: PolledCommand) -> list[Piece]:
    found: list[Piece] = []
    while not running.ended:
        found += running.receive({running.fileno(): select.POLLIN})
    return found


@settings(deadline=None)
@given(pieces=PIECES, data=st.data())
def test_no_byte_of_either_direction_is_lost(pieces: list[tuple[int, bytes]], data: st.DataObject) -> None:
    kinds = {1: frames.STDOUT, 2: frames.STDERR}
    sent = b"".join(frames.frame(kinds[stream], 2, text) for stream, text in pieces)
    sent += frames.frame(frames.ENDED, 2, json.dumps(ENDED).encode())
    cut = data.draw(st.integers(0, len(sent) - 1))
    ours, theirs = socket.socketpair()
    with theirs, contextlib.closing(SocketLink(ours.dup(), "x")) as again:
        first = started(SocketLink(ours, "x"), theirs)
        theirs.sendall(sent[:cut])
        before = first.receive({first.fileno(): select.POLLIN}) if cut else []
        state = ConnectionState.read(json.loads(json.dumps(first.state().described())))
        first.close()
        theirs.sendall(sent[cut:])
        second = PolledCommand.resumed(again, state)
        after = everything(second)
    assert [(piece.stream, bytes(piece.data)) for piece in before + after] == pieces
    assert second.end is not None
    assert (second.end.code, second.pid) == (3, 7)


def test_frames_that_were_not_sent_yet_are_sent_by_the_next_process() -> None:
    ours, theirs = socket.socketpair()
    with theirs, contextlib.closing(SocketLink(ours.dup(), "x")) as again:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        first = started(SocketLink(ours, "x"), theirs)
        written = first.send([memoryview(b"x" * frames.WINDOW)])
        assert first.state().unsent, "the socket took everything"
        first.signal(15)
        state = first.state()
        first.close()
        second = PolledCommand.resumed(again, state)
        decoder, found = frames.Decoder(), list[tuple[int, int, bytes]]()
        while not found or found[-1][0] != frames.SIGNAL:
            list(second.wants(room=True, sending=False))
            found += decoder.feed(theirs.recv(1 << 16))
    assert [kind for kind, _, _ in found] == [frames.START, frames.STDIN, frames.SIGNAL]
    assert len(found[1][2]) == written


def test_output_that_was_received_and_not_taken_counts_for_the_credit() -> None:
    ours, theirs = socket.socketpair()
    with theirs, contextlib.closing(SocketLink(ours.dup(), "x")) as again:
        first = started(SocketLink(ours, "x"), theirs)
        while first.state().credit:
            first.send([memoryview(b"x" * frames.PAYLOAD_LIMIT)])
            theirs.recv(1 << 17)
        theirs.sendall(frames.frame(frames.STDOUT, 2, b"x" * frames.PAYLOAD_LIMIT) * 2)
        for _ in range(2):
            with contextlib.suppress(BlockingIOError):
                first.send([memoryview(b"x")])  # without credit it receives what there is
        state = first.state()
        first.close()
        second = PolledCommand.resumed(again, state)
        second.receive({})
        assert state.taken == 2 * frames.PAYLOAD_LIMIT
        assert second.state().allowed > state.allowed, "the guest would wait for credit for ever"

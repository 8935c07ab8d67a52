"""Properties of a channel that hold for any bytes from a guest; for hypothesis and for the fuzzer."""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
from collections.abc import Iterable

from podbot.errors import ChannelLost, CommandRefused, NoGuest
from podbot.guest import frames
from podbot.guest.exchange import Exchange
from podbot.guest.jobs import Answer
from podbot.guest.link import Patience, SocketLink
from podbot.guest.messages import GuestCommand, Malformed, job_from, jobs_from, output_from, parsed
from podbot.guest.polled_command import PolledCommand
from podbot.guest.running import Running
from podbot.streams.sides import StreamsLost

WINDOW = 1 << 19
LONG = Patience(greeting=60, silence=60, answer=60)
RUNNING, LIST, OUTPUT = 1, 2, 3  # the ids that a channel under test has


def check_stream(data: bytes, cuts: Iterable[int] = ()) -> None:
    """``data`` arrives in pieces, then the end: there is one ChannelLost, and no unvalidated value is returned."""
    ours, theirs = socket.socketpair()
    taken: list[bytes] = []
    exchange = Exchange(SocketLink(ours, "box"), LONG)
    try:
        running = Running(exchange, lambda _, found: taken.append(found))
        answers = [Answer(exchange, frames.JOB_ANSWER), Answer(exchange, frames.JOB_DATA)]
        assert [running.id, *(answer.id for answer in answers)] == [RUNNING, LIST, OUTPUT]
        lost = _fed(exchange, running, theirs, data, cuts)
        assert lost.where == "box"
        assert len(lost.reason) < 200
        assert sum(map(len, taken)) <= len(data)
        _check_end(running)
        _check_answers(answers)
    finally:
        exchange.close()
        theirs.close()


def check_polled(data: bytes, cuts: Iterable[int] = ()) -> None:
    """The same for a command that is polled, whose guest sends ``data`` from the greeting on."""
    ours, theirs = socket.socketpair()
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    pieces = [data[begin:end] for begin, end in itertools.pairwise(places)]

    def send_next(_left: float, _events: int) -> bool:
        """Called whenever the command waits for the guest, which closes the connection after the last piece."""
        try:
            theirs.sendall(pieces.pop(0), socket.MSG_DONTWAIT)
        except IndexError:
            theirs.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pieces.clear()
        return False

    found, polled = 0, None
    with contextlib.suppress(NoGuest):
        polled = PolledCommand.greeted(SocketLink(ours, "box"), 60, send_next)
    if polled is None:
        theirs.close()
        return
    try:
        with contextlib.suppress(CommandRefused, ChannelLost, StreamsLost):
            polled.start(GuestCommand(("true",), stdin="open"), 60, send_next)
            while not polled.ended:
                send_next(0, 0)
                found += sum(len(piece.data) for piece in polled.receive({polled.fileno(): select.POLLIN}))
        assert found <= len(data)
        assert len(polled.lost) < 200
        assert polled.end is None or 0 <= polled.end.code <= 255
    finally:
        polled.close()
        theirs.close()


def _fed(exchange: Exchange, running: Running, peer: socket.socket, data: bytes, cuts: Iterable[int]) -> ChannelLost:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for begin, end in itertools.pairwise(places):
        try:
            peer.sendall(data[begin:end], socket.MSG_DONTWAIT)
        except BlockingIOError:  # the command has ended, and nothing reads
            break
        with contextlib.suppress(ChannelLost):
            running.wait(0)
    peer.shutdown(socket.SHUT_WR)
    with exchange.lock:
        try:
            exchange.wait(running, lambda: False, None)
        except ChannelLost as exc:
            return exc
    raise AssertionError("the channel outlived its guest")


def _check_end(running: Running) -> None:
    with contextlib.suppress(ChannelLost):
        running.wait(0)
    ended = running.ended
    if ended is not None:
        assert 0 <= ended.code <= 255
        assert ended.signal is None or 1 <= ended.signal <= 64
        assert ended.seconds >= 0


def _check_answers(answers: list[Answer]) -> None:
    for answer in answers:
        payload = None
        with contextlib.suppress(ChannelLost, CommandRefused):
            payload = answer.wait(0)
        if payload is not None:
            for read in (jobs_from, output_from, lambda found: job_from(parsed(found))):
                with contextlib.suppress(Malformed):
                    read(payload)

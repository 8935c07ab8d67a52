"""Requests that podbot never sends, and errors of the guest's own: they end at most their connection or command."""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from podbot.errors import ChannelLost, CommandRefused, TooManyChannels
from podbot.guest import frames
from podbot.guest.channel import Channel
from podbot.guest.local import LocalGuest
from podbot.guest.messages import GuestCommand
from podbot.guest.reach import dial
from podbot.guest.running import Running
from tests.guest import test_end_with_podbot as namespaces
from tests.guest.liar import LONG, Peer
from tests.inside import PROGRAM
from tests.waiting import wait_until

NUMBER = frames.NUMBER.pack
START = {
    "argv": ["sleep", "600"], "cwd": "/", "env": {}, "mode": "extend", "stdin": False, "deadline": None, "grace": 2,
    "rlimits": {}, "tty": None, "discard": False, "user": "", "keep": 0, "window": 1000,
}  # fmt: skip


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[namespaces.Sandbox]:
    with namespaces.sandbox(tmp_path_factory.mktemp("box")) as found, found.leased():
        yield found


@pytest.fixture
def neighbour(box: namespaces.Sandbox) -> Iterator[Running]:
    """A command of another connection, which must not notice anything."""
    with Channel.open(dial(box.directory, "here")) as channel:
        running = channel.start(GuestCommand(("cat",), stdin="open"), lambda *_: None)
        yield running
        running.close_stdin()
        ended = running.wait(LONG)
        assert ended is not None
        assert ended.code == 0
        assert namespaces.said(channel, "echo", "x") == b"x\n"


def connected(box: namespaces.Sandbox) -> Peer:
    peer = Peer(socket.socket(socket.AF_UNIX))
    peer.socket.settimeout(LONG)
    peer.socket.connect(f"{box.directory}/channel")
    peer.say(frames.HELLO, 1, {"version": frames.VERSION})
    peer.hear(frames.WELCOME)
    return peer


def repeat(peer: Peer, kind: int, ident: int, words: object) -> None:
    """Send a frame a few times, and read until the guest closes the connection."""
    for _ in range(10):
        peer.say(kind, ident, words)
    while True:
        peer.hear()


REQUESTS: dict[str, tuple[int, object]] = {
    "no document": (frames.START, b""),
    "no object": (frames.START, []),
    "an empty object": (frames.START, {}),
    "no program": (frames.START, {**START, "argv": []}),
    "a program that is a number": (frames.START, {**START, "argv": [1]}),
    "a variable that is a number": (frames.START, {**START, "env": {"a": 1}}),
    "a variable with a zero byte": (frames.START, {**START, "env": {"a": "\0"}}),
    "a job whose program is a number": (frames.START, {**START, "argv": [1], "keep": 10}),
    "a window that is text": (frames.START, {**START, "window": "x"}),
    "a terminal with three sizes": (frames.START, {**START, "tty": [1, 2, 3]}),
    "a TERM that is a number": (frames.START, {**START, "term_choices": [1]}),
    "deep nesting": (frames.START, b"[" * 60_000),
    "a job request that is none": (frames.JOB, []),
    "a job request without an operation": (frames.JOB, {}),
    "a job that is a list": (frames.JOB, {"op": "poll", "job": []}),
    "an unknown kind": (99, b""),
    "signal 0": (frames.SIGNAL, NUMBER(0)),
    "signal 65": (frames.SIGNAL, NUMBER(65)),
    "signal 2^31": (frames.SIGNAL, NUMBER(1 << 31)),
    "signal 2^32 - 1": (frames.SIGNAL, NUMBER((1 << 32) - 1)),
    "a signal of two bytes": (frames.SIGNAL, b"\0\1"),
    "a size of one byte": (frames.RESIZE, b"\0"),
    "more input than there is credit for": (frames.STDIN, b"x" * frames.PAYLOAD_LIMIT),
}


@pytest.mark.parametrize(("kind", "words"), REQUESTS.values(), ids=REQUESTS.keys())
@pytest.mark.usefixtures("neighbour")
def test_a_request_that_violates_the_protocol_ends_its_connection_alone(
    box: namespaces.Sandbox, kind: int, words: object
) -> None:
    peer = connected(box)
    with peer.socket:
        peer.say(frames.START, 2, {**START, "stdin": True})
        peer.hear(frames.STARTED)
        with pytest.raises(ConnectionError):
            repeat(peer, kind, 3 if kind == frames.START else 2, words)


REFUSED: dict[str, tuple[int, dict[str, Any], str]] = {
    "a job's signal 2^40": (frames.JOB, {"op": "signal", "job": 1, "number": 1 << 40}, "signal"),
    "a job's signal that is text": (frames.JOB, {"op": "signal", "job": 1, "number": "9"}, "signal"),
    "columns over 65535": (frames.START, {**START, "tty": [65536, 1]}, "tty"),
    "a deadline below 0": (frames.START, {**START, "deadline": -1}, "deadline"),
    "a deadline that is infinite": (frames.START, {**START, "deadline": float("inf")}, "deadline"),
    "a grace that is no number": (frames.START, {**START, "grace": float("nan")}, "term_grace"),
}


@pytest.mark.parametrize(("kind", "words", "field"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.usefixtures("neighbour")
def test_a_value_that_cannot_be_used_is_refused(
    box: namespaces.Sandbox, kind: int, words: dict[str, Any], field: str
) -> None:
    peer = connected(box)
    with peer.socket:
        peer.say(frames.START, 2, {**START, "keep": 10})
        job = json.loads(peer.hear(frames.STARTED)[2])["job"]
        peer.say(kind, 3, {**words, "job": job} if kind == frames.JOB else words)
        assert json.loads(peer.hear(frames.REFUSED)[2])["field"] == field
        peer.say(frames.JOB, 4, {"op": "terminate", "job": job})
        peer.hear(frames.ENDED)


def test_a_channel_over_the_limit_is_refused_by_name(box: namespaces.Sandbox) -> None:
    with contextlib.ExitStack() as stack:
        wait_until(lambda: serves(box), what="the guest to see that earlier connections are closed")
        for _ in range(frames.CHANNEL_LIMIT):
            stack.enter_context(Channel.open(dial(box.directory, "here")))
        with pytest.raises(TooManyChannels, match="the guest in here already serves 64 channels") as caught:
            Channel.open(dial(box.directory, "here"))
        assert (caught.value.limit, isinstance(caught.value, RuntimeError)) == (64, True)
        silent = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(17)]
        for one in silent:
            one.connect(f"{box.directory}/channel")
        silent[-1].settimeout(LONG)
        assert silent[-1].recv(1) == b"", "only some that are over the limit are waited for"
    wait_until(lambda: serves(box), what="the guest to see that the others are closed")


def serves(box: namespaces.Sandbox) -> bool:
    try:
        with Channel.open(dial(box.directory, "here")) as channel:
            return namespaces.said(channel, "echo", "x") == b"x\n"
    except (ChannelLost, TooManyChannels):
        return False


def test_a_wait_that_is_withdrawn_is_not_answered(box: namespaces.Sandbox) -> None:
    peer = connected(box)
    with peer.socket:
        peer.say(frames.START, 2, {**START, "keep": 10})
        job = json.loads(peer.hear(frames.STARTED)[2])["job"]
        for ident in (3, 4):
            peer.say(frames.JOB, ident, {"op": "wait", "job": job})
        peer.say(frames.JOB, 3, {"op": "withdraw", "job": job})
        peer.say(frames.JOB, 4, {"op": "withdraw", "job": job + 1})
        peer.say(frames.JOB, 5, {"op": "terminate", "job": job})
        answers = [peer.hear()[:2] for _ in range(3)]
        assert sorted(answers) == [(frames.ENDED, 2), (frames.JOB_ANSWER, 4), (frames.JOB_ANSWER, 5)]


def test_of_one_job_only_so_many_requests_wait(box: namespaces.Sandbox) -> None:
    peer = connected(box)
    with peer.socket:
        peer.say(frames.START, 2, {**START, "keep": 10})
        job = json.loads(peer.hear(frames.STARTED)[2])["job"]
        for ident in range(3, 3 + 1024):
            peer.say(frames.JOB, ident, {"op": "wait", "job": job})
        assert "already wait" in json.loads(peer.hear(frames.REFUSED)[2])["reason"]
    with Channel.open(dial(box.directory, "here")) as channel:  # the waits ended with their connection
        found = channel.attach(job)
        assert found.wait(0) is None
        found.kill()
        assert found.wait(LONG) is not None


def test_a_deadline_of_a_thousand_years(box: namespaces.Sandbox) -> None:
    with Channel.open(dial(box.directory, "here")) as channel:
        running = channel.start(GuestCommand(("sleep", "0.05"), deadline=3e10), lambda *_: None)
        ended = running.wait(LONG)
        assert ended is not None
        assert (ended.code, ended.timed_out) == (0, False)


@pytest.mark.parametrize("number", [-1, 0, 65, 1 << 31, 1 << 40])
def test_a_number_that_no_signal_has_is_refused_before_it_is_sent(box: namespaces.Sandbox, number: int) -> None:
    with Channel.open(dial(box.directory, "here")) as channel:
        running = channel.start(GuestCommand(("sleep", "600")))
        job = channel.attach(channel.start(GuestCommand(("sleep", "600"), keep=10)).job)
        for send in (running.signal, job.signal):
            with pytest.raises(CommandRefused, match="from 1 to 64") as caught:
                send(number)
            assert caught.value.field == "signal"
        with pytest.raises(CommandRefused, match="from 0 to 65535"):
            running.resize(1 << 16, 1)
        for one in (running, job):
            one.signal(signal.SIGKILL)
            assert one.wait(LONG) is not None
        job.forget()


def test_an_error_of_the_guest_ends_the_command_that_it_concerns() -> None:
    with LocalGuest.start(program=PROGRAM) as guest:
        channel = guest.channel
        other = channel.start(GuestCommand(("cat",), stdin="open"), lambda *_: None)
        limits = resource.prlimit(guest.pid, resource.RLIMIT_NOFILE)
        ended = None
        for deadline in (0.3, 3, 30):
            running = channel.start(GuestCommand(("sleep", "600"), deadline=deadline), lambda *_: None)
            resource.prlimit(guest.pid, resource.RLIMIT_NOFILE, (3, limits[1]))  # /proc cannot be read
            wait_until(lambda: not namespaces.lives(running.pid), what="the end of the command")  # noqa: B023 - now
            resource.prlimit(guest.pid, resource.RLIMIT_NOFILE, limits)
            ended = running.wait(LONG)
            if ended is not None and ended.signal == signal.SIGKILL:
                break
            # On a slow machine TERM may have come first, before there was an error.
        assert ended is not None
        assert (ended.timed_out, ended.signal) == (True, signal.SIGKILL)
        other.close_stdin()
        ended = other.wait(LONG)
        assert ended is not None
        assert ended.code == 0


def test_while_it_has_no_descriptors_a_guest_accepts_no_connection_and_does_not_spin(box: namespaces.Sandbox) -> None:
    pid = box.guest()
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    with Channel.open(dial(box.directory, "here")) as channel:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        with socket.socket(socket.AF_UNIX) as waiting:
            waiting.connect(f"{box.directory}/channel")
            with pytest.raises(CommandRefused, match="Too many open files"):
                channel.start(GuestCommand(("true",)))
            before = namespaces.switches(pid)
            wait_until(lambda: len(channel.jobs()) < 65 and namespaces.switches(pid) > before, what="it to sleep")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    with Channel.open(dial(box.directory, "here")) as channel:
        assert namespaces.said(channel, "echo", "x") == b"x\n"

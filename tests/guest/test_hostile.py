"""What a hostile guest can do to a channel: each ends in one clear error, or is ignored. See also ``test_lies``."""

from __future__ import annotations

import json
import os
import resource
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from podbot.errors import ChannelLost, NoGuest, PodbotError, TooManyChannels
from podbot.guest import frames
from podbot.guest.channel import Channel
from podbot.guest.link import Patience, SocketLink
from podbot.guest.reach import dial
from podbot.guest.running import Running
from tests.faults import STRANGER, GiveAway
from tests.guest.liar import ENDED, LONG, PATIENT, Peer, liar
from tests.guest.lies import COMMAND, SHORT, begins, greets, says

IMPATIENT = Patience(greeting=LONG, silence=0.05, answer=SHORT)  # for a guest from which nothing more will come


def opened(directory: Path, patience: Patience = PATIENT) -> Channel:
    return Channel.open(dial(str(directory), "box", patience), patience)


# --- What lies in the place of the socket ---


def test_no_socket(tmp_path: Path) -> None:
    with pytest.raises(NoGuest, match="does not exist"):
        opened(tmp_path)
    with pytest.raises(NoGuest, match="does not exist"):
        opened(tmp_path / "none")


def _link(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path.parent / "s"))
    path.symlink_to("s")


PLACES: dict[str, Callable[[Path], object]] = {
    "FIFO": os.mkfifo,
    "regular file": Path.touch,
    "directory": Path.mkdir,
    "link to a socket": _link,
    "link to nothing": lambda path: path.symlink_to("/nonexistent"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES.keys())
def test_another_thing_in_the_place_of_the_socket(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "channel")
    with pytest.raises(NoGuest, match="path is not a socket"):
        opened(tmp_path)


def test_a_link_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(NoGuest, match="does not exist"):
        opened(tmp_path / "link")


def test_a_socket_without_a_listener(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(tmp_path / "channel"))
        with pytest.raises(NoGuest, match="no process listens"):
            opened(tmp_path)


def test_a_socket_of_another_kind(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(tmp_path / "channel"))
        with pytest.raises(NoGuest, match="no process listens"):
            opened(tmp_path)


def test_a_queue_that_is_never_emptied(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as full, socket.socket(socket.AF_UNIX) as first:
        full.bind(str(tmp_path / "channel"))
        full.listen(0)
        first.connect(str(tmp_path / "channel"))
        with pytest.raises(NoGuest, match="accepts no connection"):
            opened(tmp_path, Patience(greeting=SHORT))


def test_a_socket_of_another_user(tmp_path: Path, give_away: GiveAway) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "channel"))
        other.listen()
        give_away(tmp_path / "channel")
        with pytest.raises(NoGuest, match=f"belongs to user {STRANGER}"):
            opened(tmp_path)


# --- The greeting ---


def test_a_refusal_for_too_many_channels_is_an_error_of_its_own(tmp_path: Path) -> None:
    said = {"field": "channel", "value": "\x1b", "reason": "\x1b"}
    with liar(str(tmp_path), says(frames.REFUSED, said)), pytest.raises(TooManyChannels) as caught:
        opened(tmp_path)
    assert "\x1b" not in str(caught.value)


# --- A command ---


def test_output_without_credit_ends_the_channel_before_memory_does(tmp_path: Path) -> None:
    def script(peer: Peer) -> None:
        ident = peer.begin()
        chunk = frames.frame(frames.STDOUT, ident, b"x" * frames.PAYLOAD_LIMIT)
        for _ in range(4000):
            peer.socket.sendall(chunk)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with liar(str(tmp_path), script), opened(tmp_path) as channel:
        running = channel.start(COMMAND, lambda *_: None)
        other = channel.start
        with pytest.raises(ChannelLost, match="more output than it had credit for"):
            other(COMMAND, lambda *_: None)
        assert running.ended is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30 << 10


def test_unrequested_frames_are_ignored(tmp_path: Path) -> None:
    def script(peer: Peer) -> None:
        peer.greet()
        _, ident, _ = peer.hear(frames.START)
        peer.say(frames.STDOUT, ident, b"before the start")
        peer.say(frames.ENDED, ident, ENDED)
        peer.say(frames.STARTED, ident + 1, {"pid": 1, "job": 0})
        peer.say(frames.STARTED, ident, {"pid": 7, "job": 0})
        peer.say(frames.STARTED, ident, {"pid": 8, "job": 0})
        peer.say(frames.REFUSED, ident, {"field": "cwd", "value": "", "reason": ""})
        for kind in (0, 3, 99, 255, frames.WELCOME, frames.JOB_ANSWER, frames.JOB_DATA, frames.PONG):
            peer.say(kind, ident, b"?")
        peer.say(frames.STDOUT, ident + 1, b"another's")
        peer.say(frames.STDOUT, 0, b"unrequested")
        peer.say(frames.STDOUT, ident, b"")
        peer.say(frames.STDOUT, ident, b"its own")
        peer.say(frames.ENDED, ident, {**ENDED, "code": 3})
        peer.say(frames.ENDED, ident, {**ENDED, "code": 4})
        peer.say(frames.STDOUT, ident, b"after the end")
        peer.stay()

    with liar(str(tmp_path), script), opened(tmp_path) as channel:
        found: list[bytes] = []
        running = channel.start(COMMAND, lambda _, data: found.append(data))
        ended = running.wait(LONG)
        assert ended is not None
        assert (running.pid, ended.code, found) == (7, 3, [b"its own"])
        again = running.wait(LONG)
        assert again == ended


def test_a_command_that_never_ends_is_waited_for_as_long_as_was_asked(tmp_path: Path) -> None:
    with liar(str(tmp_path), begins), opened(tmp_path) as channel:
        running = channel.start(COMMAND, lambda *_: None)
        assert running.wait(0.05) is None
        assert running.wait(0) is None


def test_one_that_neither_ends_nor_answers_is_not_waited_for(tmp_path: Path) -> None:
    with liar(str(tmp_path), begins), opened(tmp_path) as channel:
        running = channel.start(COMMAND, lambda *_: None)
        channel.patience = IMPATIENT  # only now: what the liar does answer may take its time
        with pytest.raises(ChannelLost, match="has not answered"):
            running.wait()


class _Interrupted(BaseException):
    """What a signal handler may raise anywhere."""


class _InterruptedLink(SocketLink):
    """``receive`` and ``send`` are interrupted when the attribute of that name is set; ``send`` in the middle."""

    receiving = sending = False

    def receive(self, limit: int) -> bytes:
        if self.receiving:
            raise _Interrupted
        return super().receive(limit)

    def send(self, data: memoryview) -> int:
        if self.sending:
            super().send(data[:3])
            raise _Interrupted
        return super().send(data)


def _interrupted_link(directory: Path) -> _InterruptedLink:
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(f"{directory}/channel")
    return _InterruptedLink(connected, "box")


def test_a_command_whose_start_is_interrupted_is_abandoned(tmp_path: Path) -> None:
    heard: list[int] = []
    over = threading.Event()

    def script(peer: Peer) -> None:
        peer.greet()
        _, ident, _ = peer.hear(frames.START)
        peer.say(frames.STARTED, ident, {"pid": 7, "job": 0})
        heard.extend((ident, peer.hear(frames.ABANDON)[1]))
        over.set()
        peer.stay()

    with liar(str(tmp_path), script):
        link = _interrupted_link(tmp_path)
        with Channel.open(link, PATIENT) as channel:
            link.receiving = True
            with pytest.raises(_Interrupted):
                channel.start(COMMAND)
            assert over.wait(LONG)
            assert heard[0] == heard[1]


def test_after_half_a_frame_was_sent_a_channel_is_not_used(tmp_path: Path) -> None:
    with liar(str(tmp_path), begins):
        link = _interrupted_link(tmp_path)
        with Channel.open(link, PATIENT) as channel:
            running = channel.start(COMMAND)
            link.sending = True
            with pytest.raises(_Interrupted):
                running.close_stdin()
            with pytest.raises(ChannelLost, match="sending to it was interrupted"):
                running.signal(9)


def test_short_waits_notice_a_silent_guest_as_a_long_one_does(tmp_path: Path) -> None:
    with liar(str(tmp_path), begins), opened(tmp_path) as channel:
        running = channel.start(COMMAND, lambda *_: None)
        channel.patience = IMPATIENT
        with pytest.raises(ChannelLost, match="has not answered"):
            _wait_often(running)


def _wait_often(running: Running) -> None:
    for _ in range(500):
        running.wait(0.01)


def test_one_that_takes_no_input_is_not_waited_for(tmp_path: Path) -> None:
    def script(peer: Peer) -> None:
        ident = peer.begin()
        peer.say(frames.STDIN_CREDIT, ident, b"\0\0\0\0")
        peer.silence()

    with liar(str(tmp_path), script), opened(tmp_path) as channel:
        running = channel.start(COMMAND, lambda *_: None)
        channel.patience = IMPATIENT
        with pytest.raises(ChannelLost, match=r"accepted no data for 0\.2 s|has not answered"):
            running.write(b"x" * (8 << 20))


def test_all_who_wait_hear_of_its_end_once(tmp_path: Path) -> None:
    gone = threading.Event()

    def script(peer: Peer) -> None:
        peer.greet()
        for _ in range(6):
            _, ident, _ = peer.hear(frames.START)
            peer.say(frames.STARTED, ident, {"pid": 7, "job": 0})
        gone.wait(LONG)
        peer.socket.sendall(frames.frame(frames.STDOUT, 1, b"x" * 99)[:40])

    heard: list[object] = []
    with liar(str(tmp_path), script), opened(tmp_path) as channel:
        commands = [channel.start(COMMAND, lambda *_: None) for _ in range(6)]

        def work(number: int) -> None:
            try:
                commands[number].wait(LONG)
            except PodbotError as exc:
                heard.append(str(exc))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        gone.set()
        for thread in threads:
            thread.join(LONG)
    assert len(heard) == 6
    assert len(set(heard)) == 1
    assert "ended" in str(heard[0])


# --- Jobs ---

JOB = {"job": 1, "argv": ["x"], "started": 1.0, "ended": None, "totals": [0, 0]}
JOBS: dict[str, tuple[int, object]] = {
    "a list that is none": (frames.JOB_ANSWER, {"jobs": 1, "more": False}),
    "a job that is none": (frames.JOB_ANSWER, {"jobs": [1], "more": False}),
    "a job without an end": (frames.JOB_ANSWER, {"jobs": [{**JOB, "ended": {}}], "more": False}),
    "totals below 0": (frames.JOB_ANSWER, {"jobs": [{**JOB, "totals": [-1, 0]}], "more": False}),
    "the same job twice": (frames.JOB_ANSWER, {"jobs": [JOB, JOB], "more": False}),
    "an empty part that is not the last": (frames.JOB_ANSWER, {"jobs": [], "more": True}),
    "no word about more": (frames.JOB_ANSWER, {"jobs": [JOB]}),
    "no JSON": (frames.JOB_ANSWER, b"x"),
}


@pytest.mark.parametrize("said", JOBS.values(), ids=JOBS.keys())
def test_jobs_that_make_no_sense_end_the_channel(tmp_path: Path, said: tuple[int, object]) -> None:
    def script(peer: Peer) -> None:
        peer.greet()
        _, ident, _ = peer.hear(frames.JOB)
        peer.say(said[0], ident, said[1])
        peer.stay()

    with liar(str(tmp_path), script), opened(tmp_path) as channel, pytest.raises(ChannelLost, match="invalid"):
        channel.jobs()


@pytest.mark.parametrize(("step", "reason"), [(0, "repeats jobs"), (1, "more than 256 jobs")])
def test_a_list_of_jobs_that_never_ends_ends_the_channel(tmp_path: Path, step: int, reason: str) -> None:
    def script(peer: Peer) -> None:
        peer.greet()
        for number in range(1000):
            _, ident, _ = peer.hear(frames.JOB)
            peer.say(frames.JOB_ANSWER, ident, {"jobs": [{**JOB, "job": 1 + number * step}], "more": True})

    with liar(str(tmp_path), script), opened(tmp_path) as channel, pytest.raises(ChannelLost, match=reason):
        channel.jobs()


def test_a_wait_for_a_job_that_is_over_is_withdrawn(tmp_path: Path) -> None:
    sent: list[tuple[int, str]] = []
    withdrawn = threading.Event()

    def script(peer: Peer) -> None:
        peer.greet()
        _, ident, _ = peer.hear(frames.JOB)
        peer.say(frames.JOB_ANSWER, ident, JOB)
        for _ in range(2):
            _, ident, payload = peer.hear(frames.JOB)
            sent.append((ident, json.loads(payload)["op"]))
        withdrawn.set()
        peer.stay()

    with liar(str(tmp_path), script), opened(tmp_path) as channel:
        assert channel.attach(1).wait(0) is None
        withdrawn.wait(LONG)
    (first, _), (second, _) = sent
    assert [operation for _, operation in sent] == ["wait", "withdraw"]
    assert first == second


def test_output_beyond_its_total_ends_the_channel(tmp_path: Path) -> None:
    def script(peer: Peer) -> None:
        peer.greet()
        _, ident, _ = peer.hear(frames.JOB)
        peer.say(frames.JOB_ANSWER, ident, JOB)
        _, ident, _ = peer.hear(frames.JOB)
        peer.say(frames.JOB_DATA, ident, frames.DATA.pack(2**63, 1) + b"x")
        peer.stay()

    with liar(str(tmp_path), script), opened(tmp_path) as channel:
        job = channel.attach(1)
        with pytest.raises(ChannelLost, match="exceeds its total"):
            job.output(1, 0)


def test_an_answer_about_jobs_that_never_comes_is_not_waited_for(tmp_path: Path) -> None:
    patience = Patience(greeting=LONG, silence=LONG, answer=SHORT)
    with (
        liar(str(tmp_path), greets),
        opened(tmp_path, patience) as channel,
        pytest.raises(ChannelLost, match=r"0\.2 s"),
    ):
        channel.jobs()

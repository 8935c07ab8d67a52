"""From podbot to a helper process that outlives it: the name is never free in between (issue 10.16)."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading

import pytest

from podbot.api import ending_helper
from podbot.engine.podman.words import WORDS
from podbot.errors import SessionExists
from podbot.execution.command_control import LeftCommand
from podbot.guest import frames
from podbot.guest.polled_command import ConnectionState
from podbot.hosting.handover import SOON, Handover
from podbot.launch.resources.guard import GuardPlan
from podbot.launch.types import Keep
from podbot.session.directory import session_directory, sessions
from podbot.session.flags import ENDING, WANTED, await_ending, flagged, is_live
from podbot.testing import FakeEngine
from tests.guest.test_connection_state import ENDED
from tests.session.plans import SESSION, Place, in_state
from tests.streams.plumbing import in_thread
from tests.waiting import HANG, wait_until

HELPER = ending_helper.__file__
STATE = ConnectionState(pid=7, allowed=1000, taken=0, credit=0, received=b"", unsent=frames.frame(frames.PING, 5))


def ended(leave: Handover) -> None:
    if leave.reaper is not None:
        leave.reaper.join(HANG)
        assert not leave.reaper.is_alive()


def test_the_helper_holds_the_name_until_it_exits(place: Place) -> None:
    """Its engine is a socket of ours that sends nothing until we disconnect."""
    path = os.path.join(place.base, "engine.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        engine = FakeEngine(endpoint=f"unix://{path}")
        engine.words = WORDS  # the kind that the helper process opens
        listener.settimeout(HANG)
        lease, guest = socket.socketpair()
        with session_directory(place.directory(), engine.endpoint) as directory:
            in_state(directory, "running")
            directory.lease = lease.fileno()
            leave = Handover(engine, place.sandbox(), directory, place.events.append, helper=HELPER)
            assert leave(LeftCommand("e1"), hurried=True)
            assert directory.handed_over
        lease.close()
        guest.setblocking(False)
        connection, _ = listener.accept()
        asked = connection.recv(4096)
        assert b"/exec/e1/json" in asked
        assert is_live(place.directory(), ENDING)
        assert [record.live for record in sessions(place.environ)] == [True]
        with pytest.raises(BlockingIOError):
            guest.recv(1)  # it holds the other end of the connection with which the sandbox ends
        with pytest.raises(SessionExists), session_directory(place.directory(), engine.endpoint):
            pass
        listener.close()
        connection.close()
    ended(leave)
    assert guest.recv(1) == b""
    guest.close()
    assert [record.live for record in sessions(place.environ)] == [False]
    assert place.kinds() == ["host.handover"]


def test_the_helper_continues_a_guests_connection_and_terminates_the_agent_there(place: Place) -> None:
    engine = FakeEngine(endpoint=f"unix://{place.base}/none.sock")
    engine.words = WORDS
    ours, guest = socket.socketpair()
    with guest, session_directory(place.directory(), engine.endpoint) as directory:
        guest.settimeout(HANG)
        in_state(directory, "running")
        leave = Handover(engine, place.sandbox(), directory, place.events.append, helper=HELPER)
        with ours:
            assert leave(LeftCommand(connection=ours.fileno(), state=STATE.described()), hurried=True)
        decoder, found = frames.Decoder(), list[tuple[int, int, bytes]]()
        while len(found) < 2:
            found += decoder.feed(guest.recv(1 << 16))
        guest.sendall(frames.frame(frames.ENDED, 2, json.dumps(ENDED).encode()))
    ended(leave)
    assert found == [(frames.PING, 5, b""), (frames.TERMINATE, 2, b"")]


def test_whoever_wants_the_name_says_so_and_waits(place: Place) -> None:
    await_ending(place.directory(), place.events.append)
    assert place.events == []
    seen = threading.Event()
    with session_directory(place.directory(), "unix:///x"), contextlib.ExitStack() as ending:
        ending.enter_context(flagged(place.directory(), ENDING))

        def end() -> None:
            wait_until(lambda: is_live(place.directory(), WANTED))
            seen.set()
            ending.close()

        with in_thread(end):
            await_ending(place.directory(), place.events.append, HANG)
            assert seen.is_set()
    assert place.kinds() == ["session.ending"]


def test_nobody_is_waited_for_for_ever(place: Place) -> None:
    with session_directory(place.directory(), "unix:///x"), flagged(place.directory(), ENDING):
        await_ending(place.directory(), place.events.append, 0.0)
    assert place.kinds() == ["session.ending"]


def test_without_an_interpreter_podbot_ends_it_itself(place: Place) -> None:
    engine = FakeEngine()
    with session_directory(place.directory(), engine.endpoint) as directory:
        leave = Handover(engine, place.sandbox(), directory, place.events.append, helper="/in/an/archive.zip/helper.py")
        assert not leave(LeftCommand("e1"), hurried=False)
        assert not directory.handed_over
        assert not is_live(place.directory(), ENDING)
    assert place.kinds() == ["host.no_helper"]


NOTING = """
import json, os, sys
with open({noted!r}, "w") as file:
    json.dump([sys.orig_argv, dict(os.environ)], file)
sys.stdin.read()
"""


def noting(place: Place, noted: str) -> str:
    """A helper program that notes what it was started with."""
    path = os.path.join(place.base, "helper.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(NOTING.format(noted=noted))
    return path


@pytest.mark.parametrize(
    ("elapsed", "keep", "helped"),
    [(SOON / 2, "never", False), (SOON * 2, "never", True), (0, "always", True), (0, "when_unsaved", True)],
)
def test_podbot_itself_only_does_quick_work(place: Place, elapsed: float, keep: Keep, helped: bool) -> None:
    engine = FakeEngine(endpoint=f"unix://{place.base}/none.sock")
    with session_directory(place.directory(), engine.endpoint) as directory:
        in_state(directory, "running")
        leave = Handover(
            engine, place.sandbox(keep=keep), directory, place.events.append, helper=noting(place, os.devnull)
        )
        leave.clean_up_unless_soon(elapsed)
        assert directory.handed_over == helped
    ended(leave)
    assert [record.session for record in sessions(place.environ)] == [SESSION]


def test_the_helper_scans_a_guarded_workspace(place: Place) -> None:
    engine = FakeEngine(endpoint=f"unix://{place.base}/none.sock")
    with session_directory(place.directory(), engine.endpoint) as directory:
        in_state(directory, "running")
        leave = Handover(
            engine,
            place.sandbox(guard=GuardPlan(place.workspace)),
            directory,
            place.events.append,
            helper=noting(place, os.devnull),
        )
        leave.clean_up_unless_soon(0)
        assert directory.handed_over
    ended(leave)


def test_no_secret_is_handed_over(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-hunter2")
    noted = os.path.join(place.base, "noted")
    engine = FakeEngine()
    with session_directory(place.directory(), engine.endpoint) as directory:
        in_state(directory, "running")
        leave = Handover(engine, place.sandbox(), directory, place.events.append, helper=noting(place, noted))
        assert leave(LeftCommand("e1"), hurried=False)
        ended(leave)
    with open(noted, encoding="utf-8") as file:
        argv, env = json.load(file)
    assert "hunter2" not in repr((argv, env))
    assert SESSION not in " ".join(argv)

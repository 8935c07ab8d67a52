"""From podbot to a helper process that outlives it: the name is never free in between (issue 10.16)."""

from __future__ import annotations

import contextlib
import os
import socket
import threading

import pytest

from podbot.api import ending_helper
from podbot.engine.podman.words import WORDS
from podbot.errors import SessionExists
from podbot.hosting import handover
from podbot.hosting.handover import SOON, Handover
from podbot.launch.resources.guard import GuardPlan
from podbot.launch.types import Keep
from podbot.session.flags import ENDING, await_ending, is_live
from podbot.session.sessions import session_directory, sessions
from podbot.testing import FakeEngine
from tests.session.plans import SESSION, Place, in_state

HELPER = ending_helper.__file__


@pytest.fixture
def place(tmp_path: os.PathLike[str]) -> Place:
    return Place(os.fspath(tmp_path))


def ended(leave: Handover) -> None:
    if leave.reaper is not None:
        leave.reaper.join(30)
        assert not leave.reaper.is_alive()


def test_the_helper_has_the_name_until_it_ends(place: Place) -> None:
    """Its engine is a socket of ours that says nothing until we hang up."""
    path = os.path.join(place.base, "engine.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        engine = FakeEngine(endpoint=f"unix://{path}")
        engine.words = WORDS  # the kind that the helper process opens
        read, write = os.pipe()
        with session_directory(place.directory(), engine.endpoint) as directory:
            in_state(directory, "running")
            leave = Handover(engine, place.sandbox(), directory, place.events.append, helper=HELPER)
            assert leave("e1", (read,), hurried=True)
            assert directory.handed_over
        os.close(read)
        connection, _ = listener.accept()
        asked = connection.recv(4096)
        assert b"/exec/e1/json" in asked
        assert is_live(place.directory(), ENDING)
        assert [record.live for record in sessions(place.environ)] == [True]
        assert os.write(write, b"x") == 1  # it holds the other end
        with pytest.raises(SessionExists), session_directory(place.directory(), engine.endpoint):
            pass
        listener.close()
        connection.close()
    ended(leave)
    os.close(write)
    assert [record.live for record in sessions(place.environ)] == [False]
    assert place.kinds() == ["host.handover"]


def test_whoever_wants_the_name_says_so_and_waits(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await_ending(place.directory(), place.events.append)
    assert place.events == []
    seen = threading.Event()

    def look(*_: object) -> None:
        if is_live(place.directory(), "wanted"):
            seen.set()
            ending.close()

    monkeypatch.setattr("podbot.session.sessions.time.sleep", look)
    with session_directory(place.directory(), "unix:///x"), contextlib.ExitStack() as ending:
        from podbot.session.flags import flagged

        ending.enter_context(flagged(place.directory(), ENDING))
        await_ending(place.directory(), place.events.append)
        assert seen.is_set()
    assert place.kinds() == ["session.ending"]


def test_nobody_is_waited_for_for_ever(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from podbot.session.flags import flagged

    monkeypatch.setattr("podbot.session.flags.ENDING_SECONDS", 0.0)
    with session_directory(place.directory(), "unix:///x"), flagged(place.directory(), ENDING):
        await_ending(place.directory(), place.events.append)
    assert place.kinds() == ["session.ending"]


def test_without_an_interpreter_podbot_ends_it_itself(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_script: str) -> str:
        raise OSError("no Python interpreter")

    monkeypatch.setattr(handover, "interpreter", none)
    engine = FakeEngine()
    with session_directory(place.directory(), engine.endpoint) as directory:
        leave = Handover(engine, place.sandbox(), directory, place.events.append, helper=HELPER)
        assert not leave("e1", (), hurried=False)
        assert not directory.handed_over
        assert not is_live(place.directory(), ENDING)
    assert place.kinds() == ["host.no_helper"]


@pytest.mark.parametrize(
    ("elapsed", "keep", "helped"),
    [(SOON / 2, "never", False), (SOON * 2, "never", True), (0, "always", True), (0, "when_unsaved", True)],
)
def test_only_what_is_quick_is_done_by_podbot(place: Place, elapsed: float, keep: Keep, helped: bool) -> None:
    engine = FakeEngine(endpoint=f"unix://{place.base}/none.sock")
    with session_directory(place.directory(), engine.endpoint) as directory:
        in_state(directory, "running")
        leave = Handover(engine, place.sandbox(keep=keep), directory, place.events.append, helper=HELPER)
        leave.clean_up_unless_soon(elapsed)
        assert directory.handed_over == helped
    ended(leave)
    assert [record.session for record in sessions(place.environ)] == [SESSION]


def test_a_guarded_workspace_is_looked_at_by_the_helper(place: Place) -> None:
    engine = FakeEngine(endpoint=f"unix://{place.base}/none.sock")
    with session_directory(place.directory(), engine.endpoint) as directory:
        in_state(directory, "running")
        leave = Handover(
            engine, place.sandbox(guard=GuardPlan(place.workspace)), directory, place.events.append, helper=HELPER
        )
        leave.clean_up_unless_soon(0)
        assert directory.handed_over
    ended(leave)


def test_no_secret_is_handed_over(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-hunter2")
    started: list[tuple[list[str], dict[str, str]]] = []

    def popen(argv: list[str], *, env: dict[str, str], **_: object) -> None:
        started.append((argv, env))
        raise OSError

    monkeypatch.setattr("subprocess.Popen", popen)
    engine = FakeEngine()
    with session_directory(place.directory(), engine.endpoint) as directory:
        Handover(engine, place.sandbox(), directory, place.events.append, helper=HELPER)("e1", (), hurried=False)
    ((argv, env),) = started
    assert "hunter2" not in repr((argv, env))
    assert SESSION not in " ".join(argv)

"""What the helper process does, on an engine in memory (issue 10.16)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from podbot.engine.podman.driver import reopen
from podbot.errors import EngineGone, RequestFailed
from podbot.github.grant import Grant
from podbot.hosting import ending
from podbot.hosting.ending import Job, end_session, run
from podbot.launch.types import ExecSpec, Keep
from podbot.session.flags import WANTED, flagged, stopping
from podbot.session.orphans import report_orphans
from podbot.session.sessions import session_directory, sessions
from podbot.testing import ExecPeer, FakeEngine
from tests.session.clones import clone_labels, left_behind
from tests.session.granted import granted
from tests.session.plans import SESSION, Place, in_state, labels, made
from tests.session.real import with_git


@pytest.fixture
def place(tmp_path: os.PathLike[str]) -> Place:
    return Place(os.fspath(tmp_path))


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRACE", "TERM_GRACE", "KILL_GRACE"):
        monkeypatch.setattr(ending, name, 0.03)
    monkeypatch.setattr(ending, "LOOK", 0.005)


class Agent:
    """Runs until it is told to end, in a thread of the engine's."""

    def __init__(self, *, deaf: bool = False, leaves: bool = False) -> None:
        self.deaf, self.leaves = deaf, leaves
        self._signals: list[int] = []
        self._over = threading.Event()

    @property
    def signals(self) -> list[int]:
        """What came, once it has ended: the engine may say so before the thread has looked."""
        assert self._over.wait(20)
        return self._signals

    def __call__(self, peer: ExecPeer) -> int:
        if self.deaf:
            peer.trap(signal.SIGTERM)
        if not self.leaves:
            peer.ended.wait(20)
        while not peer.signals.empty():
            self._signals.append(peer.signals.get())
        self._over.set()
        return 0


@contextlib.contextmanager
def handed_over(
    engine: FakeEngine, place: Place, agent: Agent | None, *, drain: Sequence[int] = (), **changes: Any
) -> Iterator[Job]:
    """A session whose podbot has left; its agent runs unless it is None."""
    exec_id = ""
    with contextlib.ExitStack() as stack:
        if agent is not None:
            engine.on("it", agent)
            exec_id = engine.exec_create(SESSION, ExecSpec(command=("it",)))
            stack.callback(engine.exec_start(exec_id, tty=False, size=None).close)
        directory = stack.enter_context(session_directory(place.directory(), engine.endpoint))
        in_state(directory, "running")
        directory.handed_over = True
        values: dict[str, Any] = {"labels": labels(), "keep": "never", "clone": None, "files": None, "hurried": False}
        yield Job(
            directory=directory.path, endpoint=engine.endpoint, engine="fake", lock=directory.lock, container=SESSION,
            exec_id=exec_id, descriptors=drain, **(values | changes),
        )  # fmt: skip


def test_an_agent_that_ignores_everything_is_killed_and_nothing_is_left(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    agent = Agent(deaf=True)
    with handed_over(engine, place, agent) as job:
        end_session(engine, job)
    assert engine.by_name == {}
    assert sessions(place.environ) == []
    assert agent.signals[:1] == [signal.SIGTERM]


@pytest.mark.parametrize("keep", ["never", "always"])
def test_files_outside_the_session_s_directory_go_with_the_container(
    engine: FakeEngine, place: Place, keep: str
) -> None:
    made(engine, SESSION)
    files = os.path.join(place.base, "state", "kept", "x")
    os.makedirs(files)
    with handed_over(engine, place, None, files=files, keep=keep) as job:
        end_session(engine, job)
    assert os.path.exists(files) == (keep == "always")


@pytest.mark.parametrize("leaves", [True, False])
def test_an_agent_that_leaves_by_itself_gets_no_signal(
    engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch, leaves: bool
) -> None:
    monkeypatch.setattr(ending, "GRACE", 20.0)
    made(engine, SESSION)
    agent = Agent(leaves=True) if leaves else None
    with handed_over(engine, place, agent) as job:
        end_session(engine, job)
    assert engine.by_name == {}
    assert agent is None or agent.signals == []


@pytest.mark.parametrize("wanted", [True, False])
def test_there_is_no_grace_when_the_name_is_wanted_or_a_second_signal_came(
    engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    monkeypatch.setattr(ending, "GRACE", 60.0)
    monkeypatch.setattr(ending, "TERM_GRACE", 60.0)
    made(engine, SESSION)
    agent = Agent()
    with handed_over(engine, place, agent, hurried=not wanted) as job, contextlib.ExitStack() as stack:
        if wanted:
            stack.enter_context(flagged(job.directory, WANTED))
        end_session(engine, job)
    assert engine.by_name == {}
    assert agent.signals == [signal.SIGTERM]


def test_what_it_still_prints_is_read(engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "GRACE", 20.0)
    made(engine, SESSION)
    read, write = os.pipe()
    os.set_blocking(read, False)
    done = threading.Event()

    def agent(peer: ExecPeer) -> int:
        os.write(write, b"x" * 60_000)
        os.write(write, b"y" * 60_000)  # more than a pipe holds
        os.close(write)
        done.set()
        return 0

    engine.on("it", agent)
    try:
        with handed_over(engine, place, None, drain=(read,)) as job:
            exec_id = engine.exec_create(SESSION, ExecSpec(command=("it",)))
            with contextlib.closing(engine.exec_start(exec_id, tty=False, size=None)):
                end_session(engine, Job(**{**vars(job), "exec_id": exec_id}))
    finally:
        os.close(read)
    assert done.is_set()


def test_a_descriptor_that_fails_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.write(write, b"x")
    errors = iter([BlockingIOError(), OSError()])

    def fails(*_: object) -> bytes:
        raise next(errors)

    with monkeypatch.context() as patch:
        patch.setattr("podbot.hosting.ending.os.read", fails)
        ending._Drain([read]).wait(0.05)
    assert next(errors, None) is None
    os.close(read)
    os.close(write)


def test_another_container_of_that_name_is_not_touched(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    with handed_over(engine, place, None, labels=labels(created="2026-01-01T00:00:00Z")) as job:
        end_session(engine, job)
    assert SESSION in engine.by_name
    assert sessions(place.environ) == []


def test_a_container_that_is_gone(engine: FakeEngine, place: Place) -> None:
    files = os.path.join(place.base, "state", "kept", "x")
    os.makedirs(files)
    with handed_over(engine, place, None, files=files) as job:
        end_session(engine, Job(**{**vars(job), "exec_id": "gone"}))
    assert sessions(place.environ) == []
    assert not os.path.exists(files)


def test_an_engine_that_is_gone_leaves_the_record_for_the_next_command(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    with handed_over(engine, place, None) as job:
        engine.fail("inspect", EngineGone(endpoint=engine.endpoint, reason="x"))
        with pytest.raises(EngineGone):
            end_session(engine, job)
    (record,) = sessions(place.environ)
    assert (record.session, record.state, record.live) == (SESSION, "orphaned", False)


def test_podbot_stop_in_the_meantime_decides(place: Place) -> None:
    engine = with_git()
    directory = left_behind(engine, place)
    with (
        handed_over(engine, place, None, keep="when_unsaved", clone=directory, labels=clone_labels(place)) as job,
        stopping(job.directory),
    ):
        end_session(engine, job)
    assert SESSION in engine.by_name
    assert [record.state for record in sessions(place.environ)] == ["orphaned"]


@pytest.mark.parametrize(("keep", "untold"), [("when_unsaved", "1 untracked file (new)"), ("always", "kept the")])
def test_what_is_kept_is_told_by_the_next_command_once(place: Place, keep: Keep, untold: str) -> None:
    engine = with_git()
    directory = left_behind(engine, place, keep=keep)
    with open(os.path.join(directory, "new"), "w", encoding="utf-8"):
        pass
    grant = granted(place, engine, SESSION)
    marks = clone_labels(place, keep=keep)
    with handed_over(engine, place, None, keep=keep, clone=directory, labels=marks) as job:
        secret = os.path.join(job.directory, "secrets", "ghapp_token")
        with open(secret, "w", encoding="utf-8") as file:
            file.write("ghs_x")
        end_session(engine, job)
        assert not os.path.exists(secret)
    assert engine.inspect(SESSION).state != "running"
    assert Grant.load(place.directory()) == grant  # for a token-daemon, when it is started again
    (record,) = sessions(place.environ)
    assert (record.state, record.untold) == ("stopped", True)
    report_orphans(engine, place.environ, place.events.append)
    report_orphans(engine, place.environ, place.events.append)
    (event,) = place.events
    assert event.kind == "container.kept"
    assert untold in event.message
    assert [record.state for record in sessions(place.environ)] == ["stopped"]


def test_a_token_goes_with_its_session(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    granted(place, engine, SESSION)
    with handed_over(engine, place, None) as job:
        end_session(engine, job)
    assert not os.path.exists(place.directory())


def test_a_grant_that_cannot_be_read_is_no_reason_to_leave_the_rest(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    with handed_over(engine, place, None) as job:
        with open(os.path.join(job.directory, "token.json"), "w", encoding="utf-8") as file:
            file.write("{}")
        end_session(engine, job)
    assert engine.by_name == {}
    assert not os.path.exists(place.directory())


def test_the_process_asks_the_engine_that_it_is_told_of(place: Place) -> None:
    """Nothing listens there: it gives up without a word, and the session stays."""
    engine = FakeEngine(endpoint=f"unix://{place.base}/none.sock")
    made(engine, SESSION)
    with handed_over(engine, place, None) as job:
        run(json.dumps({**vars(job)}).encode(), lambda endpoint, _kind: reopen(endpoint, "t"))
    assert [record.live for record in sessions(place.environ)] == [False]


def test_a_question_that_fails_counts_as_the_end(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    with handed_over(engine, place, Agent()) as job:
        engine.fail("exec_inspect", RequestFailed(operation="inspect", status=500, reason="x"))
        end_session(engine, job)
    assert engine.by_name == {}

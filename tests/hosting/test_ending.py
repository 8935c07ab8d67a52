"""What the helper process does, on an engine in memory (issue 10.16)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from podbot.engine.endpoint import EngineRef
from podbot.engine.podman.driver import reopen
from podbot.engine.podman.rest import RestEngine
from podbot.errors import EngineGone, RequestFailed
from podbot.events import Event
from podbot.exec_spec import ExecSpec
from podbot.execution.command_control import LeftCommand
from podbot.execution.hosted_end import HostedLimits
from podbot.github.grant import Grant
from podbot.guest.messages import GuestCommand
from podbot.guest.polled_command import PolledCommand
from podbot.guest.reach import dial
from podbot.hosting.ending import Job, end_agent, keep_events, remove_session, run
from podbot.launch.types import Keep
from podbot.session.directory import SessionDirectory, session_directory, sessions
from podbot.session.flags import WANTED, flagged, stopping
from podbot.session.kept_reports import kept_reports
from podbot.session.network import network_of
from podbot.session.orphans import report_orphans
from podbot.session.record import SessionRecord
from podbot.testing import ExecPeer, FakeEngine
from tests.execution.guests import Guests, guests, lives
from tests.guest.liar import PATIENT, liar
from tests.guest.lies import ENDLESS, LIES, Lie, left_connection, runs, wait_on
from tests.session.clones import clone_labels, left_behind
from tests.session.granted import granted
from tests.session.plans import SESSION, Place, in_state, labels, made
from tests.session.real import with_git
from tests.waiting import HANG, wait_until

NEVER = HostedLimits(grace=HANG, term=HANG, kill=HANG, shell=HANG)
AT_ONCE = replace(NEVER, grace=0, term=0)  # no grace, and KILL straight after TERM


class KilledAfter:
    """In place of limits: no grace, and KILL follows TERM when the agent has written the file ``signalled``."""

    grace, kill, status = 0.0, HANG, HANG

    def __init__(self, signalled: Path) -> None:
        self._signalled = signalled

    @property
    def term(self) -> float:
        wait_until(self._signalled.exists)
        return 0


def end_session(engine: FakeEngine, job: Job, limits: HostedLimits) -> None:
    """As the helper does if nothing fails."""
    end_agent(engine, job, limits)
    base = Path(job.directory).parents[2]
    remove_session(engine, job, {"XDG_STATE_HOME": str(base / ".local" / "state")})


class Agent:
    """Runs until it is terminated, in a thread of the engine's."""

    def __init__(self, *, deaf: bool = False, leaves: bool = False) -> None:
        self.deaf, self.leaves = deaf, leaves
        self.ready = threading.Event()  # to be terminated
        self._signals: list[int] = []
        self._over = threading.Event()

    @property
    def signals(self) -> list[int]:
        """The received signals, once it has ended: the engine may report the end before the thread has checked."""
        assert self._over.wait(HANG)
        return self._signals

    def __call__(self, peer: ExecPeer) -> int:
        if self.deaf:
            peer.trap(signal.SIGTERM)
        self.ready.set()
        if not self.leaves:
            peer.ended.wait(2 * HANG)
        while not peer.signals.empty():
            self._signals.append(peer.signals.get())
        self._over.set()
        return 0


@contextlib.contextmanager
def handed_over(engine: FakeEngine, place: Place, agent: Agent | None, **changes: Any) -> Iterator[Job]:
    """A session whose podbot has exited; its agent runs unless it is None."""
    exec_id = ""
    with contextlib.ExitStack() as stack:
        if agent is not None:
            engine.on("it", agent)
            exec_id = engine.exec_create(SESSION, ExecSpec(command=("it",)))
            stack.callback(engine.exec_start(exec_id, tty=False, size=None).close)
            assert agent.ready.wait(HANG)
        directory = stack.enter_context(session_directory(place.directory(), engine.endpoint))
        in_state(directory, "running")
        directory.handed_over = True
        values: dict[str, Any] = {"labels": labels(), "keep": "never", "clone": None, "files": None, "hurried": False}
        values |= {"connection": -1, "state": {}}
        yield Job(
            directory=directory.path, endpoint=engine.endpoint, engine="fake", lock=directory.lock, container=SESSION,
            exec_id=exec_id, **(values | changes),
        )  # fmt: skip


def test_an_agent_that_ignores_everything_is_killed_and_nothing_is_left(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    agent = Agent(deaf=True)
    with handed_over(engine, place, agent) as job:
        end_session(engine, job, AT_ONCE)
    assert engine.by_name == {}
    assert sessions(place.environ) == []
    assert agent.signals == [signal.SIGTERM, signal.SIGKILL]


@pytest.mark.parametrize("keep", ["never", "always"])
def test_files_outside_the_session_s_directory_go_with_the_container(
    engine: FakeEngine, place: Place, keep: str
) -> None:
    made(engine, SESSION)
    files = os.path.join(place.base, "state", "kept", "x")
    os.makedirs(files)
    with handed_over(engine, place, None, files=files, keep=keep) as job:
        end_session(engine, job, AT_ONCE)
    assert os.path.exists(files) == (keep == "always")


@pytest.mark.parametrize("leaves", [True, False])
def test_an_agent_that_leaves_by_itself_gets_no_signal(engine: FakeEngine, place: Place, leaves: bool) -> None:
    made(engine, SESSION)
    agent = Agent(leaves=True) if leaves else None
    with handed_over(engine, place, agent) as job:
        end_session(engine, job, NEVER)
    assert engine.by_name == {}
    assert agent is None or agent.signals == []


@pytest.mark.parametrize("wanted", [True, False])
def test_there_is_no_grace_when_the_name_is_wanted_or_a_second_signal_came(
    engine: FakeEngine, place: Place, wanted: bool
) -> None:
    made(engine, SESSION)
    agent = Agent()
    with handed_over(engine, place, agent, hurried=not wanted) as job, contextlib.ExitStack() as stack:
        if wanted:
            stack.enter_context(flagged(job.directory, WANTED))
        end_session(engine, job, NEVER)
    assert engine.by_name == {}
    assert agent.signals == [signal.SIGTERM]


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Guests]:
    (tmp_path / "guest").mkdir()
    with guests(tmp_path / "guest") as made_guests:
        yield made_guests


@pytest.fixture
def guest(at: Guests) -> Iterator[Callable[[str], LeftCommand]]:
    """Starts a shell line by a guest, as the podbot that has left did; returns what the helper process gets."""
    with contextlib.ExitStack() as stack:

        def start(line: str) -> LeftCommand:
            link = dial(at.directory, SESSION)
            running = PolledCommand.greeted(link, HANG, wait_on(link))
            running.start(GuestCommand(("/bin/sh", "-c", line), cwd="/", stdin="open"), HANG, wait_on(link))
            stack.callback(running.close)
            return LeftCommand(connection=os.dup(link.fileno()), state=running.state().described())

        yield start


def test_an_agent_of_a_guest_that_leaves_by_itself_may_print_and_gets_no_signal(
    engine: FakeEngine, place: Place, tmp_path: Path, guest: Callable[[str], LeftCommand]
) -> None:
    made(engine, SESSION)
    left = guest(f"trap 'echo >{tmp_path}/signal; exit' TERM; head -c 3000000 /dev/zero; echo >{tmp_path}/done")
    with handed_over(engine, place, None, connection=left.connection, state=left.state) as job:
        end_session(engine, job, NEVER)
    assert (tmp_path / "done").exists()
    assert not (tmp_path / "signal").exists()
    assert engine.by_name == {}


@pytest.mark.parametrize("deaf", [True, False])
def test_an_agent_of_a_guest_that_stays_is_terminated_and_then_killed(
    engine: FakeEngine, place: Place, tmp_path: Path, guest: Callable[[str], LeftCommand], deaf: bool
) -> None:
    made(engine, SESSION)
    signalled = tmp_path / "signalled"
    trap = f"trap 'echo >{signalled}{'' if deaf else '; exit'}' TERM"
    left = guest(f"{trap}; echo $$ >{tmp_path}/pid; while :; do sleep 0.01; done")
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
    pid = int((tmp_path / "pid").read_text())
    with handed_over(engine, place, None, connection=left.connection, state=left.state) as job:
        limits = KilledAfter(signalled) if deaf else replace(NEVER, grace=0)
        end_session(engine, job, cast("HostedLimits", limits))
    assert signalled.exists()
    assert not lives(pid)
    assert engine.by_name == {}


def test_a_guest_that_is_gone_counts_as_the_end(
    engine: FakeEngine, place: Place, at: Guests, guest: Callable[[str], LeftCommand]
) -> None:
    made(engine, SESSION)
    left = guest("cat")
    at.process(0).kill()
    with handed_over(engine, place, None, connection=left.connection, state=left.state) as job:
        end_session(engine, job, NEVER)
    assert engine.by_name == {}


@pytest.mark.parametrize("lie", [*LIES.values(), *ENDLESS.values()], ids=[*LIES, *ENDLESS])
def test_a_guest_that_lies_does_not_hold_up_the_end(engine: FakeEngine, place: Place, tmp_path: Path, lie: Lie) -> None:
    made(engine, SESSION)
    (tmp_path / "guest").mkdir()
    with liar(str(tmp_path / "guest"), runs(lie)):
        connection, state = left_connection(tmp_path / "guest", GuestCommand(("it",), stdin="open"), PATIENT)
        with handed_over(engine, place, None, connection=connection, state=state) as job:
            end_session(engine, job, replace(NEVER, grace=0, term=0, kill=0.01))
    assert engine.by_name == {}


def test_another_container_of_that_name_is_not_touched(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    with handed_over(engine, place, None, labels=labels(created="2026-01-01T00:00:00Z")) as job:
        end_session(engine, job, AT_ONCE)
    assert SESSION in engine.by_name
    assert sessions(place.environ) == []


def test_a_container_that_was_removed(engine: FakeEngine, place: Place) -> None:
    files = os.path.join(place.base, "state", "kept", "x")
    os.makedirs(files)
    marks = {"io.podbot.managed": "true", "io.podbot.session": SESSION}
    engine.networks[network_of(SESSION)] = marks
    with handed_over(engine, place, None, files=files) as job:
        end_session(engine, Job(**{**vars(job), "exec_id": "gone"}), AT_ONCE)
    assert sessions(place.environ) == []
    assert not os.path.exists(files)
    assert engine.networks == {}


def test_an_engine_that_stopped_leaves_the_record_for_the_next_command(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    with handed_over(engine, place, None) as job:
        engine.fail("inspect", EngineGone(endpoint=engine.endpoint, reason="x"))
        with pytest.raises(EngineGone):
            end_session(engine, job, AT_ONCE)
    (record,) = sessions(place.environ)
    assert (record.session, record.state, record.live) == (SESSION, "orphaned", False)


def test_podbot_stop_in_the_meantime_decides(place: Place) -> None:
    engine = with_git()
    directory = left_behind(engine, place)
    with (
        handed_over(engine, place, None, keep="when_unsaved", clone=directory, labels=clone_labels(place)) as job,
        stopping(job.directory),
    ):
        end_session(engine, job, AT_ONCE)
    assert SESSION in engine.by_name
    assert [record.state for record in sessions(place.environ)] == ["orphaned"]


@pytest.mark.parametrize(("keep", "said"), [("when_unsaved", "1 untracked file (new)"), ("always", "kept the")])
def test_a_kept_session_is_in_a_report(place: Place, keep: Keep, said: str) -> None:
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
        end_session(engine, job, AT_ONCE)
        assert not os.path.exists(secret)
    assert engine.inspect(SESSION).state != "running"
    assert Grant.load(place.directory()) == grant  # for a token-daemon, when it is started again
    (record,) = sessions(place.environ)
    assert (record.state, record.untold) == ("stopped", False)
    report_orphans(engine, place.environ, place.events.append)
    assert place.events == []
    (report,) = kept_reports(place.environ)
    (event,) = report.events
    assert (report.session, event.kind) == (SESSION, "container.kept")
    assert said in event.message
    assert [record.state for record in sessions(place.environ)] == ["stopped"]


def test_a_warning_about_a_session_that_is_gone_is_in_a_report(engine: FakeEngine, place: Place) -> None:
    stuck = Event("warning", "session.stuck", "processes of the sandbox do not end", {"session": SESSION})
    removed = Event("notice", "session.removed", "removed", {"session": SESSION})
    with handed_over(engine, place, None) as job:
        directory = SessionDirectory(job.directory, job.lock, SessionRecord(SESSION, engine.endpoint, "gone"))
        keep_events(directory, job, place.environ, [removed, stuck])
    (report,) = kept_reports(place.environ)
    assert report.events == (stuck,)


def test_a_token_is_removed_with_its_session(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    granted(place, engine, SESSION)
    with handed_over(engine, place, None) as job:
        end_session(engine, job, AT_ONCE)
    assert not os.path.exists(place.directory())


def test_the_rest_is_removed_even_if_a_grant_cannot_be_read(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    with handed_over(engine, place, None) as job:
        with open(os.path.join(job.directory, "token.json"), "w", encoding="utf-8") as file:
            file.write("{}")
        end_session(engine, job, AT_ONCE)
    assert engine.by_name == {}
    assert not os.path.exists(place.directory())


def closed(ref: EngineRef) -> RestEngine:
    """An engine that is not contacted yet."""
    return reopen(ref.endpoint, "t")


def test_the_process_uses_the_engine_in_its_job(place: Place) -> None:
    """Nothing listens there: it gives up without a message, and the session stays."""
    engine = FakeEngine(endpoint=f"unix://{place.base}/none.sock")
    made(engine, SESSION)
    with handed_over(engine, place, None) as job:
        run(json.dumps({**vars(job)}).encode(), closed, environ={}, pauses=(0.0,))
    assert [record.live for record in sessions(place.environ)] == [False]


@pytest.mark.parametrize("failing", ["open", "remove"])
def test_it_tries_again_when_the_engines_service_was_killed(engine: FakeEngine, place: Place, failing: str) -> None:
    made(engine, SESSION)
    gone = EngineGone(endpoint=engine.endpoint, reason="x")
    opened: list[EngineRef] = []
    if failing != "open":
        engine.fail(failing, gone)

    def open_engine(ref: EngineRef) -> FakeEngine:
        opened.append(ref)
        if failing == "open" and len(opened) < 3:
            raise gone
        return engine

    agent = Agent()
    with handed_over(engine, place, agent) as job:
        run(
            json.dumps({**vars(job)}).encode(),
            open_engine,
            environ={},
            pauses=(0.0, 0.0, 0.0),
            limits=AT_ONCE,
        )
    assert len(opened) == 3  # the first one is for the agent
    assert engine.by_name == {}
    assert sessions(place.environ) == []


def test_a_question_that_fails_counts_as_the_end(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    with handed_over(engine, place, Agent()) as job:
        engine.fail("exec_inspect", RequestFailed(operation="inspect", status=500, reason="x"))
        end_session(engine, job, AT_ONCE)
    assert engine.by_name == {}

"""The remains of a hosted session whose podbot was killed, at the next command (issue 10.16)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading

import pytest

from podbot.engine.port import ContainerInfo
from podbot.errors import RemoveFailed, SessionExists
from podbot.events import Event
from podbot.execution.runner import ExecIO
from podbot.launch.names import keep_label
from podbot.session.directory import remove_directory, session_directory, sessions
from podbot.session.flags import ENDING, USED, flagged, in_use, is_in_use, is_live
from podbot.session.orphans import report_orphans
from podbot.session.run import run_session
from podbot.streams.wake import Wake
from podbot.testing import FakeEngine
from tests.session.clones import clone_labels, left_behind
from tests.session.granted import granted
from tests.session.plans import SESSION, Place, container, in_state, labels
from tests.session.real import with_git


def abandoned(engine: FakeEngine, place: Place, *, started: bool = True, **marks: str) -> None:
    found = engine.create(container(SESSION, marks=labels(**{"mode": "acp"} | marks)))
    if started:
        engine.start(found)
    _record(engine, place)


def _record(engine: FakeEngine, place: Place) -> None:
    with session_directory(place.directory(), engine.endpoint) as directory:
        in_state(directory, "running")


def test_it_is_removed_and_reported(place: Place) -> None:
    engine = FakeEngine()
    abandoned(engine, place)
    report_orphans(engine, place.environ, place.events.append)
    assert engine.by_name == {}
    assert sessions(place.environ) == []
    assert place.kinds() == ["session.removed"]
    assert SESSION in place.events[0].message


@pytest.mark.parametrize("keep", ["never", "when_unsaved"])
def test_only_one_of_two_commands_removes_it_and_reports(place: Place, keep: str) -> None:
    """Otherwise the second would find no container, and report it as kept because it cannot be checked."""

    class Slow(FakeEngine):
        def inspect(self, container: str) -> ContainerInfo:
            info = super().inspect(container)
            self.remove(container)  # by the other command, before we have the session's lock
            remove_directory(place.directory())
            return info

    engine = Slow()
    abandoned(engine, place, keep=keep)
    report_orphans(engine, place.environ, place.events.append)
    assert place.kinds() == []
    assert sessions(place.environ) == []


@pytest.mark.parametrize("state", ["created", "exited"])
def test_the_rest_of_a_run_that_is_over_is_removed_as_well(place: Place, state: str) -> None:
    engine = FakeEngine()
    abandoned(engine, place, started=state == "exited", mode="podbot")
    if state == "exited":
        engine.die(SESSION)
    report_orphans(engine, place.environ, place.events.append)
    assert (list(engine.by_name), sessions(place.environ), place.kinds()) == ([], [], ["session.removed"])


@pytest.mark.parametrize(("keep", "state"), [("false", "running"), ("true", "exited")])
def test_a_run_that_goes_on_or_is_kept_is_only_reported(place: Place, keep: str, state: str) -> None:
    engine = FakeEngine()
    abandoned(engine, place, mode="podbot", keep=keep)
    if state == "exited":
        engine.die(SESSION)
    report_orphans(engine, place.environ, place.events.append)
    assert (list(engine.by_name), place.kinds()) == ([SESSION], ["session.orphan"])


def test_the_command_that_is_about_it_only_reports_it(place: Place) -> None:
    """With `podbot exec NAME` its operator gets the files in it."""
    engine = FakeEngine()
    abandoned(engine, place)
    report_orphans(engine, place.environ, place.events.append, spare=SESSION)
    report_orphans(engine, place.environ, place.events.append, spare=engine.by_name[SESSION].info.id[:12])
    report_orphans(engine, place.environ, place.events.append, spare="proj")
    assert list(engine.by_name) == [SESSION]
    assert place.kinds() == ["session.orphan"] * 3


def test_one_in_which_a_command_is_at_work_is_only_reported(place: Place) -> None:
    engine = FakeEngine()
    abandoned(engine, place)
    with in_use(place.directory()), in_use(place.directory()):
        report_orphans(engine, place.environ, place.events.append)
    assert list(engine.by_name) == [SESSION]
    report_orphans(engine, place.environ, place.events.append)
    assert engine.by_name == {}


def test_one_is_in_use_although_another_podbot_looks_at_it_at_that_moment(place: Place) -> None:
    abandoned(FakeEngine(), place)
    looks = os.open(os.path.join(place.directory(), USED), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(looks, fcntl.LOCK_EX)
    with in_use(place.directory(), sleep=lambda _: os.close(looks)):
        assert is_in_use(place.directory())


def test_nothing_is_made_in_a_directory_that_is_not_a_session_s(place: Place) -> None:
    elsewhere = os.path.join(place.base, "elsewhere")
    os.makedirs(elsewhere)
    os.makedirs(place.runtime)
    os.symlink(elsewhere, place.directory())
    with in_use(place.directory()), in_use(place.directory("missing")):
        assert os.listdir(elsewhere) == []


def test_a_container_whose_id_begins_like_a_name_is_another(place: Place) -> None:
    engine = FakeEngine()
    engine.start(engine.create(container(SESSION, marks=labels(mode="acp"))))
    name = engine.by_name[SESSION].info.id[:12]
    with session_directory(place.directory(name), engine.endpoint) as directory:
        in_state(directory, "running")
    report_orphans(engine, place.environ, place.events.append)
    assert list(engine.by_name) == [SESSION]
    assert place.events == []
    assert sessions(place.environ) == []


def test_a_session_meant_to_be_kept_is_stopped_and_then_ignored(place: Place) -> None:
    engine = FakeEngine()
    abandoned(engine, place, keep=keep_label("always"))
    for _ in range(2):
        report_orphans(engine, place.environ, place.events.append)
    assert engine.inspect(SESSION).state != "running"
    assert place.kinds() == ["container.kept"]
    assert [record.state for record in sessions(place.environ)] == ["stopped"]


def test_a_session_without_a_started_agent_is_removed_whatever_was_planned(place: Place) -> None:
    engine = FakeEngine()
    abandoned(engine, place, started=False, keep=keep_label("always"))
    report_orphans(engine, place.environ, place.events.append)
    assert engine.by_name == {}


@pytest.mark.parametrize("state", ["running", "exited"])
@pytest.mark.parametrize("unsaved", [True, False])
def test_a_clone_is_kept_for_unsaved_work(place: Place, unsaved: bool, state: str) -> None:
    engine = with_git()
    directory = left_behind(engine, place)
    found = engine.by_name.pop(SESSION)
    marks = {**clone_labels(place), **{f"io.podbot.{key}": value for key, value in {"mode": "acp"}.items()}}
    engine.start(engine.create(container(SESSION, marks=marks)))
    assert found.spec.name == SESSION
    if state == "exited":
        engine.stop(SESSION, seconds=0)
    _record(engine, place)
    granted(place, engine, SESSION)
    token = os.path.join(place.directory(), "secrets", "ghapp_token")
    with open(token, "w", encoding="utf-8") as file:
        file.write("ghs_x")
    if unsaved:
        with open(os.path.join(directory, "new"), "w", encoding="utf-8"):
            pass
    report_orphans(engine, place.environ, place.events.append)
    assert not os.path.exists(token)
    if unsaved:
        assert engine.inspect(SESSION).state != "running"
        assert place.kinds() == ["container.kept"]
        assert "1 untracked file (new)" in place.events[0].message
        assert [record.state for record in sessions(place.environ)] == ["stopped"]
    else:
        assert engine.by_name == {}
        assert place.kinds() == ["session.removed"]


def test_clean_up_continues_when_a_token_cannot_be_removed(place: Place) -> None:
    engine = FakeEngine()
    abandoned(engine, place, keep=keep_label("always"))
    os.symlink(place.base, os.path.join(place.directory(), "secrets"))
    report_orphans(engine, place.environ, place.events.append)
    assert place.kinds() == ["container.kept"]


@pytest.mark.parametrize("started", [False, True])
def test_what_the_engine_does_not_list_of_a_start_is_cleared_before_the_session_is_forgotten(
    place: Place, *, started: bool
) -> None:
    """Otherwise nobody would try it again."""
    engine = FakeEngine()
    abandoned(engine, place, started=started)
    with session_directory(place.directory(), engine.endpoint) as directory:
        in_state(directory, "running" if started else "creating")
    engine.fail("clear", RemoveFailed(container=SESSION, reason="busy"))
    report_orphans(engine, place.environ, place.events.append)
    assert (sessions(place.environ) == []) is started
    report_orphans(engine, place.environ, place.events.append)
    assert [name for name, _, _ in engine.cleared] == ([] if started else [SESSION])


def test_one_that_cannot_be_removed_is_reported(place: Place) -> None:
    engine = FakeEngine()
    abandoned(engine, place)
    engine.fail("remove", RemoveFailed(container=SESSION, reason="busy"))
    report_orphans(engine, place.environ, place.events.append)
    assert place.kinds() == ["session.not_removed", "session.orphan"]
    assert "busy" in place.events[0].message
    report_orphans(engine, place.environ, place.events.append)
    assert engine.by_name == {}


def test_two_commands_at_once(place: Place) -> None:
    """The other one has it between our check of its lock and our attempt to take it."""
    engine = FakeEngine()
    abandoned(engine, place)
    inspect = engine.inspect
    with contextlib.ExitStack() as other:

        def taken_meanwhile(container: str) -> ContainerInfo:
            engine.inspect = inspect  # type: ignore[method-assign]
            in_state(other.enter_context(session_directory(place.directory(), engine.endpoint)), "running")
            return inspect(container)

        engine.inspect = taken_meanwhile  # type: ignore[method-assign]
        report_orphans(engine, place.environ, place.events.append)
        assert is_live(place.directory())
    assert place.events == []
    assert SESSION in engine.by_name


def test_a_name_that_another_command_clears_at_the_last_moment_is_waited_for(place: Place, wake: Wake) -> None:
    """Any podbot command removes what a killed one left: it may begin just after the check."""
    engine = FakeEngine()
    with session_directory(place.directory(), engine.endpoint) as directory:
        in_state(directory, "running")
        directory.leave([Event("notice", "test.untold", "reported after the check")])
    begun, cleared = threading.Event(), threading.Event()

    def clear() -> None:
        with flagged(place.directory(), ENDING), session_directory(place.directory(), engine.endpoint):
            begun.set()
            cleared.wait(60)

    other = threading.Thread(target=clear)

    def emit(event: Event) -> None:
        place.events.append(event)
        if event.kind == "test.untold":
            other.start()
            assert begun.wait(60)
        if event.kind == "session.ending":
            cleared.set()

    result = run_session(engine, place.plan(), ExecIO(None, None, None), wake, emit)
    other.join()
    assert result.session == SESSION
    assert place.kinds()[:2] == ["test.untold", "session.ending"]
    assert sessions(place.environ) == []


def test_a_session_that_lives_is_not_waited_for(place: Place, wake: Wake) -> None:
    engine = FakeEngine()
    with session_directory(place.directory(), engine.endpoint), pytest.raises(SessionExists):
        run_session(engine, place.plan(), ExecIO(None, None, None), wake, place.events.append)
    assert place.events == []

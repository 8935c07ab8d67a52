"""What the helper process removes of a session whose podbot was killed, and what it leaves for the next command."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podbot.engine.port import ContainerInfo
from podbot.errors import EngineGone, RemoveFailed, StopFailed
from podbot.launch.resources.guard import GuardPlan
from podbot.places import private_dir
from podbot.session.container_processes import first_process
from podbot.session.directory import left_session, session_directory, sessions
from podbot.session.flags import LOCK, in_use, is_live
from podbot.session.guarding import Scanner, Watch
from podbot.session.killed import EndLimits, remove_left, until_done
from podbot.session.network import network_of
from podbot.session.orphans import report_orphans
from podbot.session.record import SessionRecord, State, write_record
from podbot.testing import FakeEngine
from tests.session.plans import Place, container, in_state, labels
from tests.waiting import Clock

LIMITS = EndLimits(own=0.3, removal=0.1, creation=0.1)  # by a clock that goes on only while podbot waits
LONG = EndLimits(own=600, removal=600, creation=600)  # a test that waited for one would hang
LOOKS_AT_ONCE = 2  # one without, and one with the session's lock
LEASED = {"container": {"guest": "/run/podbot/guest"}, "resources": {"guest": {"leased": True}}}


def no(_pid: int) -> bool:
    """The processes of an engine in memory do not exist here."""
    return False


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path))


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


def killed(engine: FakeEngine, place: Place, state: State, plan: Mapping[str, Any] | None = None) -> SessionRecord:
    """The record of a session ``left`` whose podbot was killed in ``state``."""
    path = private_dir(place.directory("left"))
    with open(os.path.join(path, LOCK), "wb"):
        pass
    record = SessionRecord("left", engine.endpoint, state, plan=plan)
    write_record(path, record)
    return record


def made(engine: FakeEngine, *, started: bool = True, **marks: str) -> str:
    found = engine.create(container("left", marks=labels("left", **marks)))
    if started:
        engine.start(found)
    return found


def clean(
    engine: FakeEngine,
    place: Place,
    record: SessionRecord,
    *,
    first: Callable[[int, str], int | None] = first_process,
) -> None:
    clock = Clock()
    path = place.directory("left")
    remove_left(engine, place.environ, path, record, LIMITS, first=first, gone=no, clock=clock.time, sleep=clock.sleep)


@pytest.mark.parametrize("state", ["stopped", "detached"])
def test_the_session_whose_name_was_not_taken_yet_goes_on(engine: FakeEngine, place: Place, state: State) -> None:
    """The record is still that of an earlier session."""
    made(engine, keep="when_unsaved")
    clean(engine, place, killed(engine, place, state, LEASED))
    assert engine.inspect("left").state == "running"
    assert [found.state for found in sessions(place.environ)] == [state]


def test_the_container_of_a_later_session_of_that_name_goes_on(engine: FakeEngine, place: Place) -> None:
    record = dataclasses.replace(killed(engine, place, "running", LEASED), created="2026-07-31T12:00:00Z")
    write_record(place.directory("left"), record)
    made(engine)
    clean(engine, place, record)
    assert engine.inspect("left").state == "running"


@pytest.mark.parametrize("state", ["claimed", "creating", "running"])
def test_a_session_whose_container_is_gone_loses_its_network_and_directory(
    engine: FakeEngine, place: Place, state: State
) -> None:
    found = made(engine)
    engine.isolate(found, network_of("left"), {"io.podbot.managed": "true", "io.podbot.session": "left"})
    engine.remove(found)
    clean(engine, place, killed(engine, place, state))
    assert engine.networks == {}
    assert not os.path.exists(place.directory("left"))


def looks_before_stop(engine: FakeEngine) -> int:
    """How often the engine was asked for the container's state before it was asked to stop it."""
    operations = [operation for operation, _ in engine.calls]
    return operations[: operations.index("stop")].count("inspect")


@pytest.mark.parametrize("hosted", ["podbot", "acp"])
def test_a_sandbox_that_should_end_by_itself_and_does_not_is_stopped_and_removed(
    engine: FakeEngine, place: Place, hosted: str
) -> None:
    """An agent stopped its guest, for example."""
    made(engine, mode=hosted)
    clean(engine, place, killed(engine, place, "running", LEASED))
    assert looks_before_stop(engine) > LOOKS_AT_ONCE
    assert (engine.by_name, sessions(place.environ)) == ({}, [])


@pytest.mark.parametrize("hosted", ["podbot", "acp"])
def test_a_sandbox_without_a_guest_is_stopped_at_once_and_removed(
    engine: FakeEngine, place: Place, hosted: str
) -> None:
    made(engine, mode=hosted)
    record = killed(engine, place, "running")
    remove_left(engine, place.environ, place.directory("left"), record, LONG, gone=no)
    assert looks_before_stop(engine) == LOOKS_AT_ONCE
    assert (engine.by_name, sessions(place.environ)) == ({}, [])


def test_a_sandbox_without_a_guest_goes_on_while_a_command_runs_in_it(engine: FakeEngine, place: Place) -> None:
    """As with the next command; the operator sees that command."""
    made(engine)
    record = killed(engine, place, "running")
    with in_use(place.directory("left")):
        clean(engine, place, record)
    assert engine.inspect("left").state == "running"
    assert [found.left_behind for found in sessions(place.environ)] == [True]


def test_a_sandbox_is_stopped_only_while_its_session_is_held(place: Place) -> None:
    """So that no other podbot can have taken it over."""
    held: list[bool] = []

    class Watched(FakeEngine):
        def stop(self, container: str, *, seconds: int) -> None:
            held.append(is_live(place.directory("left")))
            super().stop(container, seconds=seconds)

    engine = Watched()
    made(engine)
    clean(engine, place, killed(engine, place, "running"))
    assert held
    assert all(held)


def test_a_sandbox_that_another_podbot_takes_over_while_its_end_is_awaited_is_not_stopped(place: Place) -> None:
    with contextlib.ExitStack() as other:

        class TakenOver(FakeEngine):
            def inspect(self, container: str) -> ContainerInfo:
                if not is_live(place.directory("left")):
                    other.enter_context(left_session(place.directory("left")))
                return super().inspect(container)

        engine = TakenOver()
        made(engine)
        remove_left(
            engine,
            place.environ,
            place.directory("left"),
            killed(engine, place, "running", LEASED),
            LONG,
            gone=no,
        )
        assert "stop" not in [operation for operation, _ in engine.calls]
        assert engine.inspect("left").state == "running"


def test_the_session_that_another_podbot_began_meanwhile_is_not_ended(engine: FakeEngine, place: Place) -> None:
    """It was orphaned too since; what waits for its podbot's end removes it."""
    record = killed(engine, place, "running")
    write_record(place.directory("left"), dataclasses.replace(record, created="2026-07-31T12:00:00Z"))
    engine.start(
        engine.create(container("left", marks={**labels("left"), "io.podbot.created": "2026-07-31T12:00:00Z"}))
    )
    clean(engine, place, record)
    assert engine.inspect("left").state == "running"


def test_a_container_whose_first_process_has_ended_is_not_waited_for(place: Place) -> None:
    """Its monitor was killed, so that the engine calls it running for ever."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:

        class Forgetful(FakeEngine):
            def inspect(self, container: str) -> ContainerInfo:
                looks = [operation for operation, _ in self.calls].count("inspect")
                if looks == 1:
                    process.communicate()
                return dataclasses.replace(super().inspect(container), pid=process.pid)

        engine = Forgetful()
        made(engine)
        record = killed(engine, place, "running", LEASED)
        limits = LONG._replace(removal=0)
        remove_left(
            engine,
            place.environ,
            place.directory("left"),
            record,
            limits,
            first=lambda pid, _id: os.pidfd_open(pid),
            gone=no,
        )
    assert "stop" not in [operation for operation, _ in engine.calls]
    assert engine.by_name == {}


def test_a_number_that_may_be_another_process_s_proves_nothing(engine: FakeEngine, place: Place) -> None:
    """The engine may be in another pid namespace: a missing process there is none here."""
    made(engine)
    record = killed(engine, place, "running", LEASED)
    clean(engine, place, record, first=lambda _pid, _id: None)
    assert looks_before_stop(engine) > LOOKS_AT_ONCE


def test_a_container_that_never_ran_is_removed(engine: FakeEngine, place: Place) -> None:
    made(engine, started=False)
    clean(engine, place, killed(engine, place, "creating"))
    assert (engine.by_name, sessions(place.environ)) == ({}, [])


@pytest.mark.parametrize("was_made", [False, True])
def test_what_the_engine_does_not_list_of_a_start_is_cleared(
    engine: FakeEngine, place: Place, *, was_made: bool
) -> None:
    """Its service was killed, too, while it made the container, or started it."""
    created = "2026-11-30T19:52:18.500000Z"
    if was_made:
        made(engine, started=False, created=created)
    record = dataclasses.replace(killed(engine, place, "creating"), created=created, container="1" * 64)
    write_record(place.directory("left"), record)
    clean(engine, place, record)
    began = datetime(2026, 11, 30, 19, 52, 18, 500000, UTC).timestamp()
    assert engine.cleared == [("left", f"{1:064x}" if was_made else "1" * 64, began)]
    assert (engine.by_name, sessions(place.environ)) == ({}, [])


def test_after_a_failure_it_is_cleared_again(engine: FakeEngine, place: Place) -> None:
    record = killed(engine, place, "creating")
    engine.fail("clear", RemoveFailed(container="left", reason="busy"), times=2)
    until_done(lambda: clean(engine, place, record), pauses=(0.0, 0.0, 0.0))
    assert len(engine.cleared) == 1
    assert sessions(place.environ) == []


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_nothing_is_cleared_of_a_session_that_had_started(engine: FakeEngine, place: Place, state: State) -> None:
    clean(engine, place, killed(engine, place, state))
    assert engine.cleared == []


def test_a_container_that_appears_late_is_removed(place: Place) -> None:
    """The engine goes on with a request whose client was killed."""

    class Slow(FakeEngine):
        def inspect(self, container: str) -> ContainerInfo:
            try:
                return super().inspect(container)
            finally:
                if not self.by_name:
                    made(self, started=False)

    engine = Slow()
    clean(engine, place, killed(engine, place, "creating"))
    assert (engine.by_name, sessions(place.environ)) == ({}, [])


def test_a_kept_session_is_left_to_its_operator(engine: FakeEngine, place: Place) -> None:
    made(engine, keep="true")
    clean(engine, place, killed(engine, place, "running"))
    assert engine.inspect("left").state == "running"
    report_orphans(engine, place.environ, place.events.append)
    assert place.kinds() == ["session.orphan"]


@pytest.mark.parametrize("state", ["created", "running", "exited"])
@pytest.mark.parametrize("keep", ["true", "when_unsaved"])
def test_one_that_was_to_be_kept_and_had_not_begun_is_removed(
    engine: FakeEngine, place: Place, keep: str, state: str
) -> None:
    """It could not be started: its record has no plan yet. Found by random kills."""
    made(engine, started=state != "created", keep=keep)
    if state == "exited":
        engine.die("left")
    clean(engine, place, killed(engine, place, "creating"))
    assert (engine.by_name, sessions(place.environ)) == ({}, [])


@pytest.mark.parametrize("state", ["created", "running", "exited"])
def test_the_next_command_removes_it_as_well(engine: FakeEngine, place: Place, state: str) -> None:
    made(engine, started=state != "created", keep="true")
    if state == "exited":
        engine.die("left")
    killed(engine, place, "creating")
    report_orphans(engine, place.environ, place.events.append)
    assert (engine.by_name, place.kinds()) == ({}, ["session.removed"])


def test_a_container_that_is_not_the_session_s_stays(engine: FakeEngine, place: Place) -> None:
    engine.create(container("left", marks={"io.podbot.managed": "true", "io.podbot.session": "another"}))
    clean(engine, place, killed(engine, place, "creating"))
    assert list(engine.by_name) == ["left"]
    assert sessions(place.environ) == []


def test_a_session_that_another_podbot_began_under_that_name_is_left_alone(engine: FakeEngine, place: Place) -> None:
    record = killed(engine, place, "running")
    made(engine)
    with session_directory(place.directory("left"), engine.endpoint) as other:
        in_state(other, "running")
        clean(engine, place, record)
        assert sessions(place.environ)[0].live


def test_findings_of_the_guard_wait_for_the_next_command(engine: FakeEngine, place: Place) -> None:
    with session_directory(place.directory("left"), engine.endpoint) as directory:
        in_state(directory, "running")
        patient = Scanner(first=60, second=60)  # seconds; however long a new interpreter takes to start
        watch = Watch("left", GuardPlan(place.workspace), directory, place.events.append, patient)
        watch.begin()
        watch.ready()
        record = directory.record
    with open(os.path.join(place.workspace, ".envrc"), "w", encoding="utf-8") as file:
        file.write("echo\n")
    clean(engine, place, record)
    assert place.events == []
    report_orphans(engine, place.environ, place.events.append, scanner=patient)
    assert [event for event in place.events if ".envrc" in event.message]
    assert sessions(place.environ) == []


@pytest.mark.parametrize(("failures", "attempts"), [(0, 1), (2, 3), (9, 3)])
def test_it_is_tried_again_after_an_error(failures: int, attempts: int) -> None:
    tried: list[int] = []

    def work() -> None:
        tried.append(1)
        if len(tried) <= failures:
            raise EngineGone(endpoint="unix:///e.sock", reason="it was killed")

    until_done(work, (0, 0, 0))
    assert len(tried) == attempts


def test_what_an_engine_refuses_to_remove_is_left_to_the_next_command(engine: FakeEngine, place: Place) -> None:
    made(engine)

    def failing(container: str, *, kill: bool = True) -> None:
        raise StopFailed(container=container, reason="the engine was ended")

    engine.remove = failing  # type: ignore[method-assign]
    with pytest.raises(StopFailed):
        clean(engine, place, killed(engine, place, "running"))
    assert [found.left_behind for found in sessions(place.environ)] == [True]

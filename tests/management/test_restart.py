"""Restarts: what is refused before anything is stopped, and the stop."""

from __future__ import annotations

import pytest

from podbot.errors import (
    AlreadyStarted,
    ContainerNotFound,
    SandboxPaused,
    SessionNotRestorable,
    SessionRecordUnknown,
)
from podbot.frozen import replace
from podbot.management.restart import restartable, stop_for_restart
from podbot.session.directory import session_directory
from podbot.session.plan_json import public_part
from podbot.testing import FakeEngine
from tests.session.plans import Place, container, in_state, labels, made


def running(engine: FakeEngine, place: Place, name: str, keep: str = "true", *, planned: bool = True) -> None:
    """A session that runs without a podbot, as after ``podbot start``."""
    spec = container(name, marks=labels(name, keep=keep))
    plan = public_part(place.sandbox(name, container=spec)) if planned else None
    identity = engine.create(spec)
    engine.start(identity)
    with session_directory(place.directory(name), engine.endpoint) as directory:
        directory.move("creating")
        directory.move("running", container=identity, plan=plan)
        for state in ("stopped", "starting", "detached"):
            directory.move(state)


def names(engine: FakeEngine, place: Place, *asked: str) -> list[str]:
    return [found.name for found in restartable(engine, place.environ, asked)]


def stopped(engine: FakeEngine) -> bool:
    return "stop" in {name for name, _ in engine.calls}


@pytest.mark.parametrize("keep", ["true", "when_unsaved"])
def test_a_kept_session_is_stopped_and_nothing_is_removed(engine: FakeEngine, place: Place, keep: str) -> None:
    running(engine, place, "shop", keep)
    (found,) = restartable(engine, place.environ, ["shop"])
    stop_for_restart(engine, place.environ, found, seconds=3, release_seconds=0)
    assert engine.inspect("shop").state == "exited"
    assert not {"remove", "exec_create"} & {name for name, _ in engine.calls}


def test_a_session_that_is_named_twice_is_restarted_once(engine: FakeEngine, place: Place) -> None:
    running(engine, place, "shop")
    running(engine, place, "blog")
    assert names(engine, place, "shop", "blog", "sho") == ["shop", "blog"]


def test_what_its_end_removes_is_refused(engine: FakeEngine, place: Place) -> None:
    running(engine, place, "kept")
    made(engine, "brief")
    engine.start(engine.create(container("clone", marks=labels("clone", keep="when_unsaved"))))
    with session_directory(place.directory("clone"), engine.endpoint) as directory:  # its podbot runs
        in_state(directory, "running")
        with pytest.raises(SessionNotRestorable, match="a podbot runs it, and would remove the clone"):
            names(engine, place, "kept", "clone")
    with pytest.raises(SessionNotRestorable, match="it is not kept, and its end would remove it"):
        names(engine, place, "kept", "brief")
    assert not stopped(engine)


def test_what_could_not_be_started_afterwards_is_refused(engine: FakeEngine, place: Place) -> None:
    running(engine, place, "old", planned=False)
    with pytest.raises(SessionNotRestorable, match="its record has no plan"):
        names(engine, place, "old")
    running(engine, place, "away")
    engine.local = False
    with pytest.raises(SessionNotRestorable, match="its engine is on another host"):
        names(engine, place, "away")
    assert not stopped(engine)


def test_a_session_that_is_being_started_is_refused(engine: FakeEngine, place: Place) -> None:
    engine.create(container("shop", marks=labels("shop", keep="true")))
    with session_directory(place.directory("shop"), engine.endpoint) as directory:
        in_state(directory, "creating")
        with pytest.raises(AlreadyStarted, match="being started or stopped by another podbot"):
            names(engine, place, "shop")


def test_a_record_that_cannot_be_read_is_not_replaced_by_its_copy(engine: FakeEngine, place: Place) -> None:
    running(engine, place, "shop")
    with open(f"{place.directory('shop')}/session.json", "w", encoding="utf-8") as file:
        file.write("{}")
    with pytest.raises(SessionRecordUnknown):
        names(engine, place, "shop")
    assert not stopped(engine)


def test_a_paused_session_is_refused(engine: FakeEngine, place: Place) -> None:
    running(engine, place, "shop")
    engine.by_name["shop"].info = replace(engine.by_name["shop"].info, state="paused")
    with pytest.raises(SandboxPaused):
        names(engine, place, "shop")


def test_an_unknown_name_among_others_stops_nothing(engine: FakeEngine, place: Place) -> None:
    running(engine, place, "shop")
    with pytest.raises(ContainerNotFound):
        names(engine, place, "shop", "nothing")
    assert not stopped(engine)

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from podbot.engine.port import ContainerInfo
from podbot.errors import ContainerNotFound, EngineGone, NotOurs, RemoveFailed
from podbot.events import Event
from podbot.session.directory import remove_directory, session_directory, sessions
from podbot.session.flags import ENDING, is_live
from podbot.session.orphans import await_own_end, is_ours, our_container, report_orphans
from podbot.session.record import SessionRecord, State
from podbot.testing import FakeEngine
from tests.session.plans import Place, container, in_state, kept, labels, made, orphaned


@pytest.mark.parametrize(
    ("marks", "ours"),
    [
        (labels("c"), True),
        ({}, False),
        (labels("c", managed="false"), False),
        (labels("another"), False),
        ({"io.podbot.managed": "true"}, False),
    ],
)
def test_a_container_is_ours_by_two_labels(engine: FakeEngine, marks: dict[str, str], ours: bool) -> None:
    engine.create(container("c", marks=marks))
    assert is_ours(engine.inspect("c")) == ours
    if ours:
        assert our_container(engine, "c") == engine.inspect("c")
    else:
        with pytest.raises(NotOurs):
            our_container(engine, "c")
    with pytest.raises(ContainerNotFound):
        our_container(engine, "nobody")


def test_orphans_are_reported_and_others_are_not(engine: FakeEngine, place: Place) -> None:
    orphaned(engine, place, "orphan")
    kept(engine, place, "kept")
    made(engine, "live")
    with session_directory(place.directory("live"), engine.endpoint):
        report_orphans(engine, place.environ, place.events.append)
    (event,) = place.events
    assert (event.level, event.kind, event.fields["session"]) == ("notice", "session.orphan", "orphan")
    assert "podbot stop orphan" in event.message


@pytest.mark.parametrize(
    ("keep", "end"),
    [("when_unsaved", "removes it unless it holds unsaved work"), ("true", "stops it, with `--rm` it is removed")],
)
def test_the_report_says_what_stop_will_do_with_an_orphan(
    engine: FakeEngine, place: Place, keep: str, end: str
) -> None:
    engine.start(engine.create(container("clone", marks=labels("clone", keep=keep))))
    with session_directory(place.directory("clone"), engine.endpoint) as directory:
        in_state(directory, "running")
    report_orphans(engine, place.environ, place.events.append)
    (event,) = place.events
    assert event.message.endswith(f"`podbot stop clone` {end}")


LEASED = {"container": {"guest": "/run/podbot/guest"}, "resources": {"guest": {"leased": True}}}


def left(engine: FakeEngine, place: Place, plan: Mapping[str, Any] | None, keep: str = "false") -> SessionRecord:
    """The record of a running session whose podbot was killed."""
    engine.start(engine.create(container("left", marks=labels("left", keep=keep))))
    with session_directory(place.directory("left"), engine.endpoint) as directory:
        directory.move("creating", plan=plan)
        directory.move("running")
        return directory.record


def test_the_report_says_that_a_leased_sandbox_ends_by_itself(engine: FakeEngine, place: Place) -> None:
    left(engine, place, LEASED)
    report_orphans(engine, place.environ, place.events.append)
    assert [event.message.partition(";")[0] for event in place.events] == [
        "the session left (running) was left behind by a podbot that was killed, and ends by itself within seconds"
    ]


def test_a_name_is_waited_for_while_its_sandbox_ends_by_itself(engine: FakeEngine, place: Place) -> None:
    record = left(engine, place, LEASED)

    def emit(event: Event) -> None:
        place.events.append(event)
        engine.remove("left")

    await_own_end(engine, record, emit)
    assert place.kinds() == ["session.ending"]
    with pytest.raises(ContainerNotFound):
        engine.inspect("left")


def test_a_stopped_sandbox_that_may_be_kept_is_not_waited_for(engine: FakeEngine, place: Place) -> None:
    record = left(engine, place, LEASED, keep="when_unsaved")
    engine.stop("left", seconds=0)
    await_own_end(engine, record, place.events.append)
    assert place.events == []


def test_no_longer_than_the_limit_is_waited_for_a_sandbox_that_does_not_end(engine: FakeEngine, place: Place) -> None:
    await_own_end(engine, left(engine, place, LEASED), place.events.append, seconds=0)
    assert engine.inspect("left").state == "running"


@pytest.mark.parametrize(
    "plan",
    [
        None,
        {},
        {"container": None, "resources": []},
        {"container": {"guest": None}, "resources": {"guest": {"leased": True}}},
        {"container": {"guest": "/run/podbot/guest"}, "resources": {"guest": {"leased": False}}},
    ],
)
def test_no_other_sandbox_is_waited_for(engine: FakeEngine, place: Place, plan: Mapping[str, Any] | None) -> None:
    record = left(engine, place, plan)
    assert not record.leased
    await_own_end(engine, record, place.events.append)
    assert place.events == []


@pytest.mark.parametrize("name", ["../../victim", "..", "a/b", ""])
def test_a_name_of_an_engine_s_that_is_a_path_is_not_ours(name: str) -> None:
    info = ContainerInfo(id="0" * 64, name=name, image="i", state="exited", created=0.0, labels=labels(name))
    assert not is_ours(info)


def test_a_directory_without_its_container_is_forgotten(engine: FakeEngine, place: Place) -> None:
    orphaned(engine, place, "gone")
    kept(engine, place, "removed-by-hand")
    orphaned(engine, place, "replaced")
    for name in ("gone", "removed-by-hand", "replaced"):
        engine.remove(name)
    engine.create(container("replaced", marks={}))
    report_orphans(engine, place.environ, place.events.append)
    assert sessions(place.environ) == []
    assert place.events == []
    assert "replaced" in engine.by_name


@pytest.mark.parametrize("was_made", [False, True])
def test_the_next_command_clears_what_the_engine_does_not_list_of_a_start(
    engine: FakeEngine, place: Place, *, was_made: bool
) -> None:
    """As the helper process does, if that has not come first; a record of an older podbot has no time."""
    with session_directory(place.directory("left"), engine.endpoint) as directory:
        in_state(directory, "creating")
    if was_made:
        engine.create(container("left", marks=labels("left", keep="never")))
    report_orphans(engine, place.environ, place.events.append)
    assert engine.cleared == [("left", f"{1:064x}" if was_made else "", math.inf)]
    assert (engine.by_name, sessions(place.environ)) == ({}, [])


def test_what_cannot_be_cleared_is_said_once_and_forgotten(engine: FakeEngine, place: Place) -> None:
    """Otherwise every command would fail, until somebody removes the directory."""
    with session_directory(place.directory("left"), engine.endpoint) as directory:
        in_state(directory, "creating")
    engine.fail("clear", RemoveFailed(container="left", reason="busy"), times=None)
    for _ in range(2):
        report_orphans(engine, place.environ, place.events.append)
    assert place.kinds() == ["session.not_removed"]
    assert sessions(place.environ) == []


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_nothing_is_cleared_of_a_session_that_had_started(engine: FakeEngine, place: Place, state: State) -> None:
    with session_directory(place.directory("left"), engine.endpoint) as directory:
        in_state(directory, state)
    report_orphans(engine, place.environ, place.events.append)
    assert engine.cleared == []


def test_another_engines_sessions_are_ignored(engine: FakeEngine, place: Place) -> None:
    other = FakeEngine(endpoint="ssh://elsewhere:22")
    orphaned(other, place, "theirs")
    report_orphans(engine, place.environ, place.events.append)
    assert place.events == []
    assert engine.calls == []
    assert [record.session for record in sessions(place.environ)] == ["theirs"]


def test_an_engine_failure_is_reported_and_nothing_is_removed(engine: FakeEngine, place: Place) -> None:
    orphaned(engine, place, "orphan")
    engine.vanish()
    with pytest.raises(EngineGone):
        report_orphans(engine, place.environ, place.events.append)
    assert [record.session for record in sessions(place.environ)] == ["orphan"]


def test_nothing_left_costs_no_question(engine: FakeEngine, place: Place) -> None:
    report_orphans(engine, place.environ, place.events.append)
    assert engine.calls == []


def test_interrupted_removals_are_finished(place: Place) -> None:
    engine = FakeEngine()
    gone = os.path.join(place.runtime, ".gone-podbot-x-0a1b2c3d")
    engine_dir = os.path.join(place.runtime, ".engine")
    for path in (os.path.join(gone, "secrets"), engine_dir):
        os.makedirs(path)
    report_orphans(engine, place.environ, place.events.append)
    assert not os.path.exists(gone)
    assert os.path.exists(engine_dir)


class AskedWhenGone(FakeEngine):
    """``meanwhile`` is called once, when this engine reports that there is no such container."""

    meanwhile: Callable[[], None] | None = None

    def inspect(self, container: str) -> ContainerInfo:
        try:
            return super().inspect(container)
        except ContainerNotFound:
            happens, self.meanwhile = self.meanwhile, None
            if happens is not None:
                happens()
            raise


def test_a_name_that_another_podbot_claims_meanwhile_is_not_touched(place: Place) -> None:
    """It began while we asked for the previous session's container: its directory must not be removed."""
    engine = AskedWhenGone()
    orphaned(engine, place, "again")
    engine.remove("again")
    with contextlib.ExitStack() as other:
        engine.meanwhile = lambda: _take(other, place.directory("again"), engine.endpoint)
        report_orphans(engine, place.environ, place.events.append)
        assert [(record.session, record.live) for record in sessions(place.environ)] == [("again", True)]
    assert sessions(place.environ) == []


def test_a_container_that_is_made_meanwhile_keeps_its_record(place: Place) -> None:
    engine = AskedWhenGone()
    kept(engine, place, "again")
    engine.remove("again")
    engine.meanwhile = lambda: made(engine, "again")
    report_orphans(engine, place.environ, place.events.append)
    assert [(found.session, found.state) for found in sessions(place.environ)] == [("again", "stopped")]


def test_a_directory_that_another_podbot_removes_meanwhile_is_no_error(place: Place) -> None:
    """A `podbot run` of that name would mistake us for a podbot that runs it, because the flag against that is gone."""
    path = place.directory("again")
    held: list[tuple[bool, bool]] = []

    class Watched(AskedWhenGone):
        def inspect(self, container: str) -> ContainerInfo:
            held.append((is_live(path), is_live(path, ENDING)))
            return super().inspect(container)

    engine = Watched()
    orphaned(engine, place, "again")
    engine.remove("again")
    engine.meanwhile = lambda: remove_directory(path)
    report_orphans(engine, place.environ, place.events.append)
    assert held
    assert (True, False) not in held
    assert not os.path.exists(path)


def _take(stack: contextlib.ExitStack, path: str, endpoint: str) -> None:
    """A session whose container is made and removed while the stack is open."""
    directory = stack.enter_context(session_directory(path, endpoint))
    directory.move("creating")
    stack.callback(directory.move, "gone")

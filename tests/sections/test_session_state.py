from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from podbot.events import Event
from podbot.sections.dispatcher import InProcessDispatcher, ToolInvoked
from podbot.sections.prompt import SubagentIsolationLevel, session_for_subagent
from podbot.sections.session_state import ReducerContext, Session, replace_latest
from podbot.tools import ToolResult


@dataclass(frozen=True)
class Note:
    text: str


@dataclass(frozen=True)
class Count:
    number: int


@dataclass(frozen=True)
class Added:
    by: int


def add(values: tuple[Count, ...], event: Added, /, *, context: ReducerContext) -> tuple[Count, ...]:
    assert isinstance(context.session, Session)
    return (Count((values[-1].number if values else 0) + event.by),)


def invoked(session: Session, result: ToolResult[Any]) -> ToolInvoked:
    return ToolInvoked("tool", None, result, session.session_id, datetime.now(UTC))


def test_a_slice_is_empty_at_first() -> None:
    session = Session()
    assert session[Note].all() == ()
    assert session[Note].latest() is None
    assert session[Note].where(lambda note: bool(note.text)) == ()


def test_an_event_without_a_reducer_is_appended_if_it_is_absent() -> None:
    session = Session()
    for text in ("a", "b", "a"):
        session.dispatch(Note(text))
    assert session[Note].all() == (Note("a"), Note("b"))
    assert session[Note].latest() == Note("b")
    assert session[Note].where(lambda note: note.text == "a") == (Note("a"),)


def test_reducers_of_one_event_each_make_their_own_slice() -> None:
    session = Session()
    session[Count].register(Added, add)
    session[Note].register(Added, lambda values, event, /, *, context: (*values, Note(str(event.by))))
    session.dispatch(Added(2))
    session.dispatch(Added(3))
    assert session[Count].all() == (Count(5),)
    assert session[Note].all() == (Note("2"), Note("3"))
    assert session[Added].all() == ()


def test_replace_latest_keeps_one_value_and_registering_again_replaces() -> None:
    session = Session()
    session[Note].register(Note, replace_latest)
    session[Count].register(Added, add)
    session[Count].register(Added, add)
    session.dispatch(Note("a"))
    session.dispatch(Note("b"))
    session.dispatch(Added(1))
    assert (session[Note].all(), session[Count].all()) == ((Note("b"),), (Count(1),))


def test_seed_and_clear_pass_by_the_reducers() -> None:
    session = Session()
    session[Note].register(Note, replace_latest)
    session[Note].seed(Note("a"), Note("b"))
    assert session[Note].all() == (Note("a"), Note("b"))
    session[Note].clear()
    assert session[Note].all() == ()


def test_a_reducer_that_fails_is_reported_and_leaves_its_slice() -> None:
    events: list[Event] = []
    session = Session(emit=events.append)

    def fail(values: tuple[Note, ...], event: Added, /, *, context: ReducerContext) -> tuple[Note, ...]:
        raise RuntimeError("no\nsuch thing")

    wrong: Any = lambda values, event, /, *, context: [event]  # noqa: E731
    session[Note].seed(Note("a"))
    session[Note].register(Added, fail)
    session[int].register(Added, wrong)
    session[Count].register(Added, add)
    session.dispatch(Added(1))
    assert (session[Note].all(), session[int].all(), session[Count].all()) == ((Note("a"),), (), (Count(1),))
    assert [event.kind for event in events] == ["tools.reducer_failed"] * 2
    assert [event.fields["slice"] for event in events] == ["Note", "int"]
    assert events[0].message == "a reducer failed, Note is as it was: RuntimeError: no\\nsuch thing"


def test_rollback_brings_every_slice_back_and_keeps_the_reducers() -> None:
    session = Session()
    session[Count].register(Added, add)
    session.dispatch(Added(1))
    before = session.snapshot()
    session.dispatch(Added(1))
    session.dispatch(Note("later"))
    session.rollback(before)
    assert (session[Count].all(), session[Note].all()) == ((Count(1),), ())
    session.dispatch(Added(5))
    assert session[Count].latest() == Count(6)
    assert before.session_id == session.session_id
    assert dict(before.slices) == {Count: (Count(1),)}


def test_state_changes_when_a_result_is_dispatched_on_the_bus() -> None:
    session = Session()
    session.bus.dispatch(invoked(session, ToolResult.ok(Note("a"), "done")))
    session.bus.dispatch(invoked(session, ToolResult.error("failed", Note("b"))))
    session.bus.dispatch(invoked(session, ToolResult.error("failed")))
    session.bus.dispatch(invoked(Session(), ToolResult.ok(Note("of another session"), "done")))
    assert session[Note].all() == (Note("a"),)
    assert session[ToolInvoked].all() == ()
    session[Count].register(ToolInvoked, lambda values, event, /, *, context: (Count(len(values) + 1), *values))
    session.bus.dispatch(invoked(session, ToolResult.error("failed")))
    assert session[Count].all() == (Count(1),)
    session.close()
    session.close()
    assert session.bus.dispatch(invoked(session, ToolResult.ok(Note("late"), "done"))).handled == 0


def test_a_clone_has_a_new_id_and_the_same_values_and_shares_nothing() -> None:
    session = Session()
    session[Count].register(Added, add)
    session.dispatch(Added(1))
    clone = session.clone()
    assert clone.session_id != session.session_id
    assert clone.bus is not session.bus
    assert clone[Count].all() == (Count(1),)
    clone.dispatch(Added(1))
    session.dispatch(Added(10))
    clone[Count].register(Added, lambda _values, event, /, *, context: (Count(-event.by),))
    clone.dispatch(Added(1))
    session.dispatch(Added(1))
    assert (session[Count].all(), clone[Count].all()) == ((Count(12),), (Count(-1),))


def test_clones_on_one_bus_are_told_apart_by_their_ids() -> None:
    bus = InProcessDispatcher()
    session = Session(bus=bus)
    clone = session.clone(bus=bus)
    bus.dispatch(invoked(clone, ToolResult.ok(Note("a"), "done")))
    assert (session[Note].all(), clone[Note].all()) == ((), (Note("a"),))


def test_a_clone_gets_the_id_that_is_given() -> None:
    ident = uuid.uuid4()
    assert Session().clone(session_id=ident).session_id == ident
    assert Session(session_id=ident).session_id == ident
    assert Session().session_id != Session().session_id


def test_what_a_session_alone_has_is_not_in_its_clones() -> None:
    session = Session()
    session[Note].keep_from_clones()
    session.dispatch(Note("my container"))
    clone = session.clone()
    clone.dispatch(Note("its container"))
    assert clone[Note].all() == (Note("its container"),)
    assert clone.clone()[Note].all() == ()


def test_isolation_levels() -> None:
    session = Session()
    assert session_for_subagent(session, SubagentIsolationLevel.NO_ISOLATION) is session
    child = session_for_subagent(session, SubagentIsolationLevel.FULL_ISOLATION)
    assert child.session_id != session.session_id
    assert child.bus is not session.bus


def test_a_subscriber_that_fails_is_reported_and_the_others_are_called() -> None:
    events: list[Event] = []
    bus = InProcessDispatcher(emit=events.append)
    seen: list[str] = []

    def fail(note: Note) -> None:
        raise ValueError(note.text)

    def see(note: Note) -> None:
        seen.append(note.text)

    bus.subscribe(Note, fail)
    bus.subscribe(Note, see)
    result = bus.dispatch(Note("a"))
    assert (result.ok, result.handled, [type(error) for error in result.errors]) == (False, 2, [ValueError])
    assert [event.kind for event in events] == ["tools.subscriber_failed"]
    assert bus.unsubscribe(Note, fail)
    assert not bus.unsubscribe(Note, fail)
    assert bus.dispatch(Note("b")).ok
    assert bus.dispatch(Count(1)).handled == 0
    assert seen == ["a", "b"]


def test_many_threads_lose_no_event() -> None:
    session = Session()
    session[Count].register(Added, add)

    def work() -> None:
        for _ in range(100):
            session.dispatch(Added(1))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session[Count].latest() == Count(800)

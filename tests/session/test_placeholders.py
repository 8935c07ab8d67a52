"""A sandbox that cannot have the places of linked worktrees is started without them."""

from __future__ import annotations

import dataclasses
import os
import signal

import pytest

from podbot.container_spec import ContainerSpec
from podbot.errors import (
    CreateFailed,
    EngineStorageFull,
    ImageNotFound,
    MountRefused,
    NameTaken,
    PodbotError,
    StartFailed,
)
from podbot.launch.repository import is_placeholder
from podbot.session.directory import sessions
from podbot.session.plan_json import plan_from
from podbot.session.record import read_record
from podbot.streams.wake import Interrupted, Wake
from podbot.testing import FakeEngine
from tests.session.containers import FAILURES, GONE, logged_in, somebody_s, started, with_placeholders
from tests.session.plans import SESSION, Place


def refusing_placeholders(engine: FakeEngine, operation: str) -> None:
    """An engine that cannot make the directories that placeholders are to be mounted on."""
    create, start = engine.create, engine.start
    error = FAILURES[operation]

    def refusing_create(spec: ContainerSpec) -> str:
        if operation == "create" and any(map(is_placeholder, spec.files)):
            engine.calls.append(("create", "refused"))
            raise error
        return create(spec)

    def refusing_start(container: str) -> None:
        if operation == "start" and any(map(is_placeholder, engine.by_name[SESSION].spec.files)):
            engine.calls.append(("start", "refused"))
            raise error
        start(container)

    engine.create, engine.start = refusing_create, refusing_start  # type: ignore[method-assign]


@pytest.mark.parametrize("operation", ["create", "start"])
def test_without_the_places_that_it_cannot_have_a_sandbox_starts(
    engine: FakeEngine, place: Place, operation: str
) -> None:
    """Their paths come from the repository: an agent could prevent every later session from starting."""
    refusing_placeholders(engine, operation)
    plan = with_placeholders(place, logged_in(place))
    with started(engine, place, plan) as found:
        assert engine.inspect(found).state == "running"
        made = engine.by_name[SESSION]
        assert made.spec == dataclasses.replace(plan.container, files=plan.container.files[:-2])
        assert made.files == {"/root/.codex/auth.json": b"login"}, "the second container has the logins, too"
        record = read_record(place.directory())
        assert record is not None
        assert record.plan is not None
        assert (record.container, plan_from(record.plan).container) == (found, made.spec)
        (notice,) = [event for event in place.events if event.kind == "git.no_placeholders"]
    assert notice.level == "notice"
    assert "`git worktree prune` inside would delete the records of 2 of" in notice.message
    assert "`git worktree lock PATH` on the host prevents that" in notice.message
    assert engine.by_name == {}
    assert sessions(place.environ) == []
    assert len(place.kinds()) == len(set(place.kinds())), "nothing is said twice"


@pytest.mark.parametrize("operation", ["create", "start"])
def test_a_failure_that_occurs_without_them_as_well_is_the_error(
    engine: FakeEngine, place: Place, operation: str
) -> None:
    engine.fail(operation, FAILURES[operation], times=None)
    with pytest.raises(type(FAILURES[operation])), started(engine, place, with_placeholders(place)):
        pytest.fail("it started")
    assert [name for name, _ in engine.calls].count(operation) == 2
    assert "git.no_placeholders" not in place.kinds()
    assert engine.by_name == {}
    assert sessions(place.environ) == []


@pytest.mark.parametrize("error", [GONE, NameTaken(container=SESSION), ImageNotFound(image="i", origin="flag")])
def test_a_failure_with_another_cause_is_not_retried(engine: FakeEngine, place: Place, error: PodbotError) -> None:
    engine.fail("create", error)
    with pytest.raises(type(error)), started(engine, place, with_placeholders(place)):
        pytest.fail("it started")
    assert [name for name, _ in engine.calls].count("create") == 1


def test_a_first_container_that_cannot_be_removed_keeps_the_first_error(engine: FakeEngine, place: Place) -> None:
    refusing_placeholders(engine, "start")
    engine.fail("remove", EngineStorageFull(operation="remove a container"))
    with pytest.raises(StartFailed), started(engine, place, with_placeholders(place)):
        pytest.fail("it started")
    assert engine.by_name == {}


def test_a_foreign_container_of_that_name_is_not_removed(engine: FakeEngine, place: Place) -> None:
    theirs = somebody_s(engine)
    engine.fail("create", FAILURES["create"])
    with pytest.raises(CreateFailed), started(engine, place, with_placeholders(place)):
        pytest.fail("it started")
    assert engine.inspect(SESSION).id == theirs


def test_a_signal_between_the_two_attempts_ends_the_start(engine: FakeEngine, place: Place) -> None:
    refusing_placeholders(engine, "start")
    wake, remove = Wake(), engine.remove

    def interrupted(container: str, *, kill: bool = True) -> None:
        wake.deliver(signal.SIGTERM)
        remove(container, kill=kill)

    engine.remove = interrupted  # type: ignore[method-assign]
    with pytest.raises(Interrupted), started(engine, place, with_placeholders(place), wake):
        pytest.fail("it started")
    assert [name for name, _ in engine.calls].count("create") == 1
    assert engine.by_name == {}


def test_the_second_attempt_looks_at_the_mounts_again(engine: FakeEngine, place: Place) -> None:
    refusing_placeholders(engine, "start")
    remove = engine.remove

    def swapping(container: str, *, kill: bool = True) -> None:
        remove(container, kill=kill)
        if not os.path.islink(place.workspace):
            os.rename(place.workspace, place.workspace + ".away")
            os.symlink("/etc", place.workspace)

    engine.remove = swapping  # type: ignore[method-assign]
    with pytest.raises(MountRefused), started(engine, place, with_placeholders(place)):
        pytest.fail("it started")
    assert engine.by_name == {}

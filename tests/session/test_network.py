"""A session's own network: made before the start, and removed with its container, by any command."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import pytest

from podbot.container_spec import Limits
from podbot.engine.port import Unmet
from podbot.errors import PodbotError, RemoveFailed, RequestFailed, StartFailed
from podbot.events import ignore
from podbot.launch.types import SandboxPlan
from podbot.management.manage import stop_sessions
from podbot.session.container import started_container
from podbot.session.directory import session_directory
from podbot.session.network import network_of, remove_sandbox
from podbot.session.orphans import report_orphans
from podbot.session.resources.resource import Opening
from podbot.streams.wake import Wake
from podbot.testing import FakeEngine
from tests.session.containers import started
from tests.session.plans import SESSION, Place

NETWORK = network_of(SESSION)
NO_SUBNET = RequestFailed(operation="give the session a network of its own", status=500, reason="no free subnet")


def changed(plan: SandboxPlan, **changes: Any) -> SandboxPlan:
    """A plan whose container is another."""
    return dataclasses.replace(plan, container=dataclasses.replace(plan.container, **changes))


def killed(engine: FakeEngine, place: Place, plan: SandboxPlan) -> None:
    """A session whose podbot was killed while its agent ran."""
    with (
        contextlib.closing(Wake()) as wake,
        wake.listening(),
        session_directory(plan.runtime_dir, engine.endpoint) as directory,
    ):
        with started_container(Opening(engine, plan, directory, wake, place.events.append)):
            directory.handed_over = True
        directory.handed_over = False


def test_it_is_made_before_the_start_and_removed_after_the_container(engine: FakeEngine, place: Place) -> None:
    with started(engine, place, place.sandbox()):
        assert engine.by_name[SESSION].network == NETWORK
        labels = {"io.podbot.managed": "true", "io.podbot.session": SESSION}
        assert engine.networks == {NETWORK: labels}
    assert engine.networks == {}
    names = [name for name, _ in engine.calls]
    assert names.index("create") < names.index("isolate") < names.index("start")
    assert names.index("remove") < names.index("remove_network")


@pytest.mark.parametrize("network", ["none", "host", "shop"])
def test_a_chosen_network_is_kept(engine: FakeEngine, place: Place, network: str) -> None:
    with started(engine, place, changed(place.sandbox(), network=network)):
        assert (engine.by_name[SESSION].network, engine.networks) == (network, {})


def test_a_kept_session_keeps_it_and_stop_removes_it(engine: FakeEngine, place: Place) -> None:
    plan = place.sandbox(keep="always")
    with started(engine, place, changed(plan, labels={**plan.container.labels, "io.podbot.keep": "true"})):
        pass
    assert engine.by_name[SESSION].info.state == "exited"
    assert engine.networks.keys() == {NETWORK}
    engine.start(SESSION)
    assert engine.by_name[SESSION].network == NETWORK
    list(stop_sessions(engine, place.environ, [SESSION], seconds=0, remove_kept=True))
    assert (engine.by_name, engine.networks) == ({}, {})


def test_stop_removes_a_killed_podbot_s(engine: FakeEngine, place: Place) -> None:
    killed(engine, place, place.sandbox())
    assert engine.networks.keys() == {NETWORK}
    list(stop_sessions(engine, place.environ, [SESSION], seconds=0))
    assert (engine.by_name, engine.networks) == ({}, {})


def test_the_next_command_removes_what_a_killed_host_left(engine: FakeEngine, place: Place) -> None:
    plan = place.sandbox()
    labels = {**plan.container.labels, "io.podbot.mode": "acp"}
    killed(engine, place, changed(plan, labels=labels))
    report_orphans(engine, place.environ, ignore)
    assert (engine.by_name, engine.networks) == ({}, {})


def test_the_next_command_removes_the_network_of_a_removed_container(engine: FakeEngine, place: Place) -> None:
    killed(engine, place, place.sandbox())
    engine.remove(SESSION)  # as `podman rm` does
    assert engine.networks.keys() == {NETWORK}
    report_orphans(engine, place.environ, ignore)
    assert engine.networks == {}


def test_an_engine_that_cannot_isolate_is_reported_and_used(engine: FakeEngine, place: Place) -> None:
    engine.unisolated = Unmet("sandbox.network", "a network of its own", "unsupported bridge network option isolate")
    with started(engine, place, place.sandbox()):
        assert engine.by_name[SESSION].network == "default"
    (event,) = [event for event in place.events if event.kind == "network.shared"]
    assert event.level == "warning"
    assert "unsupported bridge network option isolate" in event.message


@pytest.mark.parametrize("after", [False, True])
def test_any_other_failure_ends_the_start_and_leaves_nothing(engine: FakeEngine, place: Place, after: bool) -> None:
    engine.fail("isolate", NO_SUBNET, after=after)
    with pytest.raises(RequestFailed, match="no free subnet"), started(engine, place, place.sandbox()):
        pytest.fail("it started")
    assert (engine.by_name, engine.networks) == ({}, {})
    assert "start" not in [name for name, _ in engine.calls]


def test_a_second_attempt_to_start_uses_it_again(engine: FakeEngine, place: Place) -> None:
    engine.fail("start", StartFailed(container=SESSION, reason="cgroup: no such file"))
    limits = Limits(pids=2048, by_default=("pids",))
    with started(engine, place, changed(place.sandbox(), limits=limits)):
        assert engine.by_name[SESSION].network == NETWORK
    assert (engine.by_name, engine.networks) == ({}, {})


def test_one_that_cannot_be_removed_is_the_next_command_s(engine: FakeEngine, place: Place) -> None:
    engine.fail("remove_network", RequestFailed(operation="remove", status=500, reason="busy"))
    with pytest.raises(PodbotError, match="busy"), started(engine, place, place.sandbox()):
        pass
    assert engine.networks.keys() == {NETWORK}
    report_orphans(engine, place.environ, ignore)
    assert engine.networks == {}


@pytest.mark.parametrize("kill", [True, False])
def test_what_the_engine_did_not_remove_is_ended_only_if_it_may_be_killed(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, kill: bool
) -> None:
    """Without it, the container may run, and its nested containers with it."""

    def refuses(container: str, *, kill: bool) -> None:
        raise RemoveFailed(container=container, reason=RemoveFailed.UNKNOWN)

    asked = []

    def ended() -> bool:
        asked.append(kill)
        return False

    monkeypatch.setattr(engine, "remove", refuses)
    with pytest.raises(RemoveFailed):
        remove_sandbox(engine, SESSION, SESSION, kill=kill, ended=ended)
    assert asked == [True] * kill

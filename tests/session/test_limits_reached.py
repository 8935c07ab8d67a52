"""What the operator is told about the limits that a sandbox reached, with the limits that the engine applied."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podbot.config.models import Origin
from podbot.engine.port import Engine
from podbot.errors import ContainerNotFound, EngineGone
from podbot.events import Event
from podbot.execution.runner import ExecStatus
from podbot.frozen import replace
from podbot.launch.types import Limits, Mount, SandboxPlan
from podbot.machine import Disk
from podbot.session.disk_notice import FULL_MEGABYTES, full_disks
from podbot.session.limits_reached import tell_command_limits, tell_limits_reached
from podbot.testing import FakeEngine
from tests.session.plans import SESSION, Place

LIMITED = Limits(memory=256 << 20, pids=100)


def planned(place: Place, limits: Limits = LIMITED) -> SandboxPlan:
    plan = place.plan().sandbox
    return replace(plan, container=replace(plan.container, limits=limits))


def started(engine: FakeEngine, plan: SandboxPlan) -> FakeEngine:
    engine.create(plan.container)
    engine.start(SESSION)
    return engine


@pytest.fixture
def running(engine: FakeEngine, place: Place) -> FakeEngine:
    return started(engine, planned(place))


def told(engine: FakeEngine, plan: SandboxPlan, status: ExecStatus) -> list[Event]:
    events: list[Event] = []
    tell_limits_reached(engine, plan, status, lambda key: Origin("file", f"/c.toml {key}"), events.append)
    return events


@pytest.mark.parametrize(
    ("status", "kind", "said", "key"),
    [
        (
            ExecStatus(137, out_of_memory=True, memory_kills=1),
            "agent.out_of_memory",
            "out of memory: the kernel killed the agent; the limit is 256 MiB",
            "sandbox.memory",
        ),
        (
            ExecStatus(0, memory_kills=1),
            "sandbox.out_of_memory",
            "out of memory: the kernel killed 1 process in the sandbox; the limit is 256 MiB",
            "sandbox.memory",
        ),
        (
            ExecStatus(2, forks_refused=1200),
            "sandbox.out_of_processes",
            "out of processes: the kernel refused 1,200 processes in the sandbox; the limit is 100",
            "sandbox.pids",
        ),
    ],
)
def test_a_limit_is_named_with_its_value_and_origin(
    *, running: FakeEngine, place: Place, status: ExecStatus, kind: str, said: str, key: str
) -> None:
    (event,) = told(running, planned(place), status)
    assert (event.level, event.kind, event.message) == ("warning", kind, f"{said} ({key}, config file /c.toml {key})")


def test_an_engine_that_does_not_answer_costs_no_warning(engine: FakeEngine, place: Place) -> None:
    with pytest.raises(ContainerNotFound):
        engine.confinement(SESSION)
    (event,) = told(engine, planned(place), ExecStatus(137, out_of_memory=True, memory_kills=1))
    assert "the limit is 256 MiB (sandbox.memory, " in event.message


def test_an_agent_that_reached_no_limit_costs_no_question(running: FakeEngine, place: Place) -> None:
    before = len(running.calls)
    assert told(running, planned(place), ExecStatus(0)) == []
    assert told(running, planned(place), ExecStatus(143, 15)) == []
    assert running.calls[before:] == []


def test_without_a_limit_the_kernel_s_counts_are_not_the_sandbox_s(engine: FakeEngine, place: Place) -> None:
    """A rootless engine with cgroup v1 applies none, and the counts are those of other processes."""
    plan = planned(place, Limits())
    started(engine, plan)
    assert told(engine, plan, ExecStatus(0, memory_kills=3, forks_refused=3)) == []
    (event,) = told(engine, plan, ExecStatus(137, out_of_memory=True, memory_kills=3))
    assert "there is no limit (sandbox.memory, " in event.message


def test_a_count_that_an_agent_could_have_made_up_is_not_printed(running: FakeEngine, place: Place) -> None:
    (event,) = told(running, planned(place), ExecStatus(0, forks_refused=1 << 52))
    assert "refused very many processes" in event.message


def commanded(connect: Callable[[], Engine], status: ExecStatus) -> list[str]:
    events: list[Event] = []
    tell_command_limits(connect, SESSION, status, events.append)
    return [event.message for event in events]


def test_a_command_that_memory_ended_names_the_limit(running: FakeEngine) -> None:
    assert commanded(lambda: running, ExecStatus(137, out_of_memory=True, memory_kills=1)) == [
        "out of memory: the kernel killed the command; the limit is 256 MiB (sandbox.memory)"
    ]


def test_that_memory_ended_a_command_is_said_without_an_engine(engine: FakeEngine) -> None:
    def connect() -> Engine:
        raise EngineGone(endpoint="unix:///e", reason="connection refused")

    killed = ExecStatus(137, out_of_memory=True)
    assert commanded(connect, killed) == ["out of memory: the kernel killed the command"]
    assert commanded(lambda: engine, killed) == ["out of memory: the kernel killed the command"], "it is gone"
    assert commanded(connect, ExecStatus(137, memory_kills=1)) == []


def test_a_full_disk_is_named() -> None:
    enough = FULL_MEGABYTES * 1_000_000
    workspace = Mount("/src/shop", "/src/shop")
    assert list(full_disks(workspace, "", look=lambda path: Disk(path, enough, 1))) == []
    (event,) = full_disks(workspace, "", look=lambda path: Disk(path, enough - 1, 1))
    assert (event.level, event.kind, event.fields["path"]) == ("warning", "disk.full", "/src/shop")
    assert event.message == "the disk is full: 15 MB are free on the file system of the workspace (/src/shop)"


@pytest.mark.parametrize(("code", "signal", "number"), [(1, None, 1), (0, None, 0), (127, None, 0), (143, 15, 0)])
def test_the_disks_are_looked_at_where_the_agent_failed(
    running: FakeEngine, place: Place, code: int, signal: int | None, number: int
) -> None:
    before = len(running.calls)
    told(running, planned(place), ExecStatus(code, signal))
    assert [call[0] for call in running.calls[before:]] == ["inspect"] * number

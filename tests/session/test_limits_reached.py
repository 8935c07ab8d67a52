"""What the operator is told about the limits that a sandbox reached, with the limits that the engine applied."""

from __future__ import annotations

import pytest

from podbot.config.models import Origin
from podbot.errors import ContainerNotFound
from podbot.events import Event
from podbot.execution.runner import ExecStatus
from podbot.frozen import replace
from podbot.launch.types import Limits, Mount
from podbot.machine import Disk
from podbot.session.disk_notice import FULL_MEGABYTES, full_disks
from podbot.session.limits_reached import tell_command_limits, tell_limits_reached
from podbot.testing import FakeEngine
from tests.session.plans import SESSION, Place

LIMITED = Limits(memory=256 << 20, pids=100)


@pytest.fixture
def running(engine: FakeEngine, place: Place) -> FakeEngine:
    engine.create(replace(place.plan().sandbox.container, limits=LIMITED))
    engine.start(SESSION)
    return engine


def told(engine: FakeEngine, status: ExecStatus) -> list[Event]:
    events: list[Event] = []
    tell_limits_reached(engine, SESSION, status, lambda key: Origin("file", f"/c.toml {key}"), events.append)
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
    running: FakeEngine, status: ExecStatus, kind: str, said: str, key: str
) -> None:
    (event,) = [event for event in told(running, status) if not event.kind.startswith("disk.")]
    assert (event.level, event.kind, event.message) == ("warning", kind, f"{said} ({key}, config file /c.toml {key})")


def test_an_agent_that_reached_no_limit_costs_no_question(running: FakeEngine) -> None:
    before = len(running.calls)
    assert told(running, ExecStatus(0)) == []
    assert told(running, ExecStatus(143, 15)) == []
    assert running.calls[before:] == []


def test_without_a_limit_of_processes_the_kernel_s_count_is_not_the_sandbox_s(engine: FakeEngine, place: Place) -> None:
    """A rootless engine with cgroup v1 applies none, and the count is that of other processes."""
    engine.create(replace(place.plan().sandbox.container, limits=Limits()))
    engine.start(SESSION)
    assert told(engine, ExecStatus(1, forks_refused=3)) == []
    (event,) = told(engine, ExecStatus(137, out_of_memory=True, memory_kills=3))
    assert "there is no limit (sandbox.memory, " in event.message


def test_a_container_that_is_gone_is_not_an_error(engine: FakeEngine) -> None:
    with pytest.raises(ContainerNotFound):
        engine.confinement(SESSION)
    assert told(engine, ExecStatus(1, memory_kills=1)) == []
    assert commanded(engine, ExecStatus(137, out_of_memory=True)) == [
        "out of memory: the kernel killed the command; there is no limit (sandbox.memory)"
    ]


def commanded(engine: FakeEngine, status: ExecStatus) -> list[str]:
    events: list[Event] = []
    tell_command_limits(engine, SESSION, status, events.append)
    return [event.message for event in events]


def test_a_command_that_memory_ended_names_the_limit(running: FakeEngine) -> None:
    assert commanded(running, ExecStatus(137, out_of_memory=True, memory_kills=1)) == [
        "out of memory: the kernel killed the command; the limit is 256 MiB (sandbox.memory)"
    ]
    assert commanded(running, ExecStatus(137, memory_kills=1)) == []


def test_a_full_disk_is_named() -> None:
    enough = FULL_MEGABYTES * 1_000_000
    workspace = Mount("/src/shop", "/src/shop")
    assert list(full_disks(workspace, "", look=lambda path: Disk(path, enough, 1))) == []
    (event,) = full_disks(workspace, "", look=lambda path: Disk(path, enough - 1, 1))
    assert (event.level, event.kind, event.fields["path"]) == ("warning", "disk.full", "/src/shop")
    assert event.message == "the disk is full: 15 MB are free on the file system of the workspace (/src/shop)"


@pytest.mark.parametrize(("code", "signal", "number"), [(1, None, 1), (0, None, 0), (127, None, 0), (143, 15, 0)])
def test_the_disks_are_looked_at_where_the_agent_failed(
    running: FakeEngine, code: int, signal: int | None, number: int
) -> None:
    before = len(running.calls)
    told(running, ExecStatus(code, signal))
    assert [call[0] for call in running.calls[before:]] == ["inspect"] * number

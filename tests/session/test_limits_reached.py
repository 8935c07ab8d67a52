"""What the operator is told about the limits that a sandbox reached, with the limits that the engine applied."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podbot.config.models import Origin
from podbot.container_spec import Limits, Mount
from podbot.engine.port import Engine
from podbot.errors import ContainerNotFound, EngineGone
from podbot.events import Event
from podbot.execution.runner import ExecStatus
from podbot.frozen import replace
from podbot.guest.messages import Cause
from podbot.launch.types import SandboxPlan
from podbot.machine import Disk
from podbot.session.disk_notice import FULL_MEGABYTES, Look, full_disks
from podbot.session.limits_reached import tell_command_limits, tell_limits_reached
from podbot.session.plan_json import public_part
from podbot.session.record import SessionRecord
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


@pytest.mark.parametrize(
    ("number", "cause", "said"),
    [
        (11, "fault", "SIGSEGV: usually a fault of the program"),
        (9, "sent", "SIGKILL: a process of the sandbox or of this machine sent it; the kernel does not say which"),
    ],
)
def test_the_signal_that_ended_an_agent_or_a_command_is_named(
    running: FakeEngine, place: Place, number: int, cause: Cause, said: str
) -> None:
    status = ExecStatus(128 + number, killed=number, cause=cause)
    events = told(running, planned(place), status)
    tell_command_limits(no_engine, SESSION, status, events.append)
    fields = {"session": SESSION, "signal": number, "cause": cause}
    assert [(event.level, event.kind, event.message, event.fields) for event in events] == [
        ("warning", "agent.killed", f"the agent was ended by {said}", fields),
        ("warning", "exec.killed", f"the command was ended by {said}", fields),
    ]


@pytest.mark.parametrize("cause", ["podbot", "terminal", ""])
def test_of_a_signal_that_podbot_or_a_key_sent_nothing_is_said(running: FakeEngine, place: Place, cause: Cause) -> None:
    status = ExecStatus(130, killed=2, cause=cause)
    assert told(running, planned(place), status) == []
    assert commanded(no_engine, status) == []


def test_memory_is_named_once(running: FakeEngine, place: Place) -> None:
    (event,) = told(running, planned(place), replace(ExecStatus(137, out_of_memory=True, memory_kills=1), killed=9))
    assert event.kind == "agent.out_of_memory"


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


def roomy(path: str) -> Disk:
    return Disk(path, 1 << 40, 1)


def full(path: str) -> Disk:
    return Disk(path, 0, 1)


def commanded(
    connect: Callable[[], Engine],
    status: ExecStatus,
    *,
    record: SessionRecord | None = None,
    by_engine: bool = False,
    look: Look = roomy,
) -> list[str]:
    events: list[Event] = []
    tell_command_limits(connect, SESSION, status, events.append, record=record, by_engine=by_engine, look=look)
    return [event.message for event in events]


def recorded(**plan: object) -> SessionRecord:
    return SessionRecord(SESSION, "unix:///e", "running", plan=plan)


SHOP = recorded(workspace={"source": "/src/shop", "target": "/w", "read_only": False})


def no_engine() -> Engine:
    raise EngineGone(endpoint="unix:///e", reason="connection refused")


def test_a_command_that_memory_ended_names_the_limit(running: FakeEngine) -> None:
    assert commanded(lambda: running, ExecStatus(137, out_of_memory=True, memory_kills=1)) == [
        "out of memory: the kernel killed the command; the limit is 256 MiB (sandbox.memory)"
    ]


def test_a_limit_that_a_command_reached_is_named_with_its_origin(running: FakeEngine, place: Place) -> None:
    plan = replace(planned(place), limit_origins={"memory": "flag --memory", "pids": "config file /c.toml"})
    record = recorded(**public_part(plan))
    assert commanded(lambda: running, ExecStatus(137, out_of_memory=True, memory_kills=1), record=record) == [
        "out of memory: the kernel killed the command; the limit is 256 MiB (sandbox.memory, flag --memory)"
    ]
    (said,) = commanded(lambda: running, ExecStatus(1, forks_refused=1), record=record)
    assert said.endswith("; the limit is 100 (sandbox.pids, config file /c.toml)")
    events: list[Event] = []
    tell_command_limits(lambda: running, SESSION, ExecStatus(137, out_of_memory=True), events.append, record=record)
    assert [event.fields for event in events] == [{"session": SESSION, "limit": 256 << 20, "origin": "flag --memory"}]


@pytest.mark.parametrize(
    "plan",
    [
        {},
        {"container": {"limits": {"memory": 1}}, "limit_origins": {"memory": "flag --memory"}},
        {"container": {"limits": {"memory": 256 << 20}}},
        {"container": {"limits": {"memory": 256 << 20}}, "limit_origins": {"memory": 7}},
        {"container": 1, "limit_origins": []},
    ],
    ids=["none", "another limit applies", "an older record", "not a text", "not a plan"],
)
def test_an_origin_that_is_not_known_is_not_named(running: FakeEngine, plan: dict[str, object]) -> None:
    (said,) = commanded(lambda: running, ExecStatus(137, out_of_memory=True), record=recorded(**plan))
    assert said.endswith("; the limit is 256 MiB (sandbox.memory)")


def test_that_memory_ended_a_command_is_said_without_an_engine(engine: FakeEngine) -> None:
    killed = ExecStatus(137, out_of_memory=True)
    assert commanded(no_engine, killed) == ["out of memory: the kernel killed the command"]
    assert commanded(lambda: engine, killed) == ["out of memory: the kernel killed the command"], "it is gone"
    assert commanded(no_engine, ExecStatus(137, memory_kills=1)) == []


def test_a_command_that_could_not_start_processes_names_the_limit(running: FakeEngine) -> None:
    said = "out of processes: the kernel refused 12 processes in the sandbox"
    refused = ExecStatus(254, forks_refused=12)
    assert commanded(lambda: running, refused) == [f"{said}; the limit is 100 (sandbox.pids)"]
    assert commanded(no_engine, refused) == [said]
    events: list[Event] = []
    tell_command_limits(lambda: running, SESSION, refused, events.append)
    fields = {"session": SESSION, "limit": 100, "origin": None, "refused": 12}
    assert [(event.level, event.kind, event.fields) for event in events] == [
        ("warning", "exec.out_of_processes", fields)
    ]


def test_a_command_that_is_itself_the_process_too_many_says_so(running: FakeEngine) -> None:
    """The guest could not start it, which is status 126."""
    (said,) = commanded(lambda: running, ExecStatus(126, forks_refused=1))
    assert said.startswith("out of processes: the kernel refused 1 process in the sandbox; the limit is 100")


def test_refused_processes_of_a_command_that_ended_well_are_not_its_cause(running: FakeEngine) -> None:
    assert commanded(no_engine, ExecStatus(0, forks_refused=12)) == []


def test_refused_processes_without_a_limit_are_not_the_sandbox_s(engine: FakeEngine, place: Place) -> None:
    started(engine, planned(place, Limits()))
    assert commanded(lambda: engine, ExecStatus(1, forks_refused=3)) == []


@pytest.mark.parametrize("engine_answers", [True, False])
def test_a_full_disk_of_the_workspace_is_looked_at_without_the_engine(
    running: FakeEngine, *, engine_answers: bool
) -> None:
    connect = (lambda: running) if engine_answers else no_engine
    before = len(running.calls)
    (said,) = commanded(connect, ExecStatus(1), record=SHOP, look=full)
    assert said == "the disk is full: 0 MB are free on the file system of the workspace (/src/shop)"
    assert running.calls[before:] == []
    assert commanded(connect, ExecStatus(0), record=SHOP, look=full) == []
    assert commanded(connect, ExecStatus(143, 15), record=SHOP, look=full) == []


@pytest.mark.parametrize(
    ("status", "by_engine", "asked"),
    [
        (ExecStatus(1), False, 0),
        (ExecStatus(1, disk_full=True), False, 1),
        (ExecStatus(1), True, 1),
        (ExecStatus(0), True, 0),
        (ExecStatus(127), True, 0),
    ],
)
def test_the_engine_is_asked_where_the_container_s_files_are_only_if_nothing_else_knows_of_room(
    *, running: FakeEngine, status: ExecStatus, by_engine: bool, asked: int
) -> None:
    before = len(running.calls)
    commanded(lambda: running, status, by_engine=by_engine)
    assert [call[0] for call in running.calls[before:]] == ["inspect"] * asked


@pytest.mark.parametrize(("look", "met"), [(full, True), (roomy, False)])
def test_a_full_disk_is_a_part_of_the_status(running: FakeEngine, place: Place, look: Look, *, met: bool) -> None:
    events: list[Event] = []
    plan = replace(planned(place), workspace=Mount("/src/shop", "/w"))
    for status in (
        tell_command_limits(no_engine, SESSION, ExecStatus(1), events.append, record=SHOP, look=look),
        tell_limits_reached(running, plan, ExecStatus(1), lambda _key: "", events.append, look=look),
    ):
        assert status == ExecStatus(1, disk_full=met)
    assert [event.kind for event in events] == ["disk.full"] * (2 * met)


def test_a_full_disk_is_named() -> None:
    enough = FULL_MEGABYTES * 1_000_000
    workspace = "/src/shop"
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

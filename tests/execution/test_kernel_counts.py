"""The counts of a container's control group, in files of the test's own; and what is said with them of a command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest

from podbot.engine.port import Engine, ExecState
from podbot.execution.engine_command import EngineCommand
from podbot.execution.kernel_counts import KernelCounts, counts_of
from podbot.execution.time_limits import TIME_LIMITS
from podbot.streams.sides import CommandSide

ID = "c0ffee" + "0" * 58


class Host:
    """A /proc with one process of the container, and what is mounted for control groups."""

    def __init__(self, place: Path) -> None:
        self.place, self.proc = place, place / "proc"
        (self.proc / "self").mkdir(parents=True)
        (self.proc / "7").mkdir()
        self.mounts: list[str] = []

    def mounted(self, name: str, kind: str, options: str, root: str = "/") -> None:
        self.mounts.append(f"35 31 0:32 {root} {self.place}/{name} rw,relatime shared:9 - {kind} {kind} {options}")
        (self.proc / "self" / "mountinfo").write_text("\n".join(["31 23 0:28 / /sys rw", *self.mounts, ""]))

    def groups(self, *lines: str) -> None:
        (self.proc / "7" / "cgroup").write_text("".join(f"{line}\n" for line in lines))

    def file(self, path: str, text: str) -> None:
        file = self.place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def counts(self, container: str = ID, pid: int = 7) -> KernelCounts:
        return counts_of(container, pid, proc=str(self.proc))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_the_counts_of_cgroup_v1(host: Host) -> None:
    host.mounted("cpu", "cgroup", "rw,cpu")
    host.mounted("memory", "cgroup", "rw,memory")
    host.mounted("pids", "cgroup", "rw,pids")
    host.mounted("unified", "cgroup2", "rw")
    host.groups(f"8:pids:/libpod_parent/libpod-{ID}", f"4:memory:/libpod_parent/libpod-{ID}", "0::/libpod_parent")
    host.file(f"memory/libpod_parent/libpod-{ID}/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    host.file(f"pids/libpod_parent/libpod-{ID}/pids.events", "max 12\n")
    assert host.counts().read() == (3, 12)


def test_the_counts_of_cgroup_v2_are_those_of_the_whole_container(host: Host) -> None:
    """Root in a sandbox can move its first process into a group of its own."""
    host.mounted("elsewhere", "cgroup2", "rw", root="/system.slice")
    host.mounted("all", "cgroup2", "rw,nsdelegate")
    group = f"user.slice/user@1000.service/libpod-{ID}.scope"
    host.groups(f"0::/{group}/container/hidden-{ID}")
    host.file(f"all/{group}/memory.events", "low 0\nhigh 0\nmax 40\noom 2\noom_kill 1\n")
    host.file(f"all/{group}/pids.events", "max 2\n")
    host.file(f"all/{group}/container/hidden-{ID}/memory.events", "oom_kill 0\n")
    assert host.counts().read() == (1, 2)
    # crun's group of the processes: before Linux 6.11 a refused fork is counted there alone.
    host.file(f"all/{group}/container/pids.events", "max 5\n")
    assert host.counts().read() == (1, 5)


@pytest.mark.parametrize(
    "groups", [["4:memory:/user.slice", "0::/user.slice"], [f"4:memory:/../libpod-{ID}"], [f"4:cpu:/libpod-{ID}"], []]
)
def test_the_counts_of_other_groups_are_not_read(host: Host, groups: list[str]) -> None:
    host.mounted("memory", "cgroup", "rw,memory")
    host.groups(*groups)
    host.file("memory/user.slice/memory.oom_control", "oom_kill 3\n")
    assert host.counts() == KernelCounts()


def test_what_cannot_be_read_counts_nothing(host: Host) -> None:
    assert host.counts() == host.counts(pid=0) == host.counts("c0ffee") == KernelCounts()
    host.mounted("memory", "cgroup", "rw,memory")
    host.groups(f"4:memory:/libpod-{ID}")
    assert host.counts().memory
    assert host.counts().read() == (0, 0)
    for text in ("oom_kill", "oom_kill x", "oom_kill -4"):
        host.file(f"memory/libpod-{ID}/memory.oom_control", text)
        assert host.counts().read() == (0, 0)


class Ended:
    """An engine that reports the end of one command, whose sandbox lives."""

    state = "running"
    restarts = 0

    def __init__(self, code: int) -> None:
        self.code = code

    def exec_inspect(self, _exec_id: str) -> ExecState:
        return ExecState(running=False, exit_code=self.code, pid=0)

    def inspect(self, _container: str) -> Ended:
        return self


class Side:
    broken = truncated = False


@pytest.mark.parametrize(
    ("code", "after", "killed", "kills"), [(137, 6, True, 2), (137, 4, False, 0), (1, 5, False, 1), (137, 0, False, 0)]
)
def test_a_command_of_the_engine_is_said_to_have_run_out_of_memory(
    tmp_path: Path, code: int, after: int, killed: bool, kills: int
) -> None:
    file = tmp_path / "memory.events"
    file.write_text("oom_kill 4\n")
    engine = cast("Engine", Ended(code))
    counts = KernelCounts(os.fspath(file))
    command = EngineCommand(engine, "shop", "e", "tail", TIME_LIMITS, counts=counts, before=counts.read())
    assert [command.ended, EngineCommand(engine, "shop", "e", "tail", TIME_LIMITS).ended] == [None, None]
    file.write_text(f"oom_kill {after}\n")
    assert command.code(cast("CommandSide", Side()), ending=False, sandbox_ends=False) == code
    found = command.ended
    assert found is not None
    assert (found.code, found.out_of_memory, found.memory_kills) == (code, killed, kills)

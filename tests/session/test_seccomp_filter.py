"""A container without the requested filter does not run an agent."""

from __future__ import annotations

import dataclasses
import os
import threading

import pytest

from podbot.errors import StartFailed
from podbot.launch.types import SandboxPlan
from podbot.session.seccomp_filter import check_filtered, seccomp_mode
from podbot.testing import FakeEngine
from tests.session.plans import Place


def status(proc: str, pid: int, mode: int, ids: str) -> None:
    os.makedirs(os.path.join(proc, str(pid)), exist_ok=True)
    with open(os.path.join(proc, str(pid), "status.new"), "w", encoding="utf-8") as file:
        file.write(f"Name:\tcatatonit: x\nNSpid:\t{ids}\nNoNewPrivs:\t1\nSeccomp:\t{mode}\nSeccomp_filters:\t1\n")
    os.replace(file.name, os.path.join(proc, str(pid), "status"))


@pytest.fixture
def proc(tmp_path: os.PathLike[str]) -> str:
    return os.path.join(tmp_path, "proc")


@pytest.mark.parametrize(
    ("mode", "ids", "expected"),
    [(2, "77\t1", 2), (0, "77\t1", 0), (2, "99\t77\t1", 2), (0, "77", None), (0, "77\t5", None), (0, "1", None)],
)
def test_only_a_containers_first_process_is_checked(proc: str, mode: int, ids: str, expected: int | None) -> None:
    status(proc, 77, mode, ids)
    assert seccomp_mode(77, proc) == expected


def test_a_process_that_cannot_be_seen_gives_no_answer(proc: str) -> None:
    assert seccomp_mode(77, proc) is None


@pytest.fixture
def started(tmp_path: os.PathLike[str]) -> tuple[FakeEngine, SandboxPlan, str, int]:
    plan = Place(os.fspath(tmp_path)).sandbox()
    security = dataclasses.replace(plan.container.security, seccomp="/home/ann/.local/state/podbot/seccomp/0a1b.json")
    plan = dataclasses.replace(plan, container=dataclasses.replace(plan.container, security=security))
    engine = FakeEngine(images=[plan.container.image])
    container = engine.create(plan.container)
    engine.start(container)
    return engine, plan, container, engine.inspect(container).pid


def test_a_runtime_without_seccomp_ends_the_start(started: tuple[FakeEngine, SandboxPlan, str, int], proc: str) -> None:
    engine, plan, container, pid = started
    status(proc, pid, 0, f"{pid}\t1")
    with pytest.raises(StartFailed, match="seccomp"):
        check_filtered(engine.inspect(container), plan, proc, seconds=0.01)


def test_the_filter_may_be_set_at_the_last_moment(started: tuple[FakeEngine, SandboxPlan, str, int], proc: str) -> None:
    engine, plan, container, pid = started
    status(proc, pid, 0, f"{pid}\t1")
    later = threading.Timer(0.02, status, (proc, pid, 2, f"{pid}\t1"))
    later.start()
    check_filtered(engine.inspect(container), plan, proc, seconds=60)  # however late the timer's thread runs
    later.join()
    assert seccomp_mode(pid, proc) == 2


def test_nothing_is_checked_without_a_profile(started: tuple[FakeEngine, SandboxPlan, str, int], proc: str) -> None:
    engine, plan, container, pid = started
    status(proc, pid, 0, f"{pid}\t1")
    security = dataclasses.replace(plan.container.security, seccomp=None)
    without = dataclasses.replace(plan, container=dataclasses.replace(plan.container, security=security))
    check_filtered(engine.inspect(container), without, proc)

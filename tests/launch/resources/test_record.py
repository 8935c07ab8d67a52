"""Which plans of resources, read from a session's record, podbot takes for its own on this host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from podbot.container_spec import Mount
from podbot.launch.plan import plan_session
from podbot.launch.resources.guest import GuestPlan
from podbot.launch.resources.history import HistoryPlan
from podbot.launch.types import LaunchPlan, ResourcePlan
from tests.launch.build import config, facts, resource, typed

ELSEWHERE = "/home/ann/.ssh"


def made() -> LaunchPlan:
    return plan_session(config(), typed(), facts())


def test_every_plan_agrees_with_the_host_that_it_was_made_for() -> None:
    plans = made().sandbox.resources
    assert {HistoryPlan, GuestPlan} <= {type(plan) for plan in plans.values()}
    assert all(plan.agrees_with(made().sandbox, facts()) for plan in plans.values())


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (HistoryPlan, {"directory": ELSEWHERE}),
        (HistoryPlan, {"directory": ELSEWHERE, "store": Mount(f"{ELSEWHERE}/claude", "/root/.claude/projects")}),
        (HistoryPlan, {"store": Mount(ELSEWHERE, "/root/.claude/projects")}),
        (GuestPlan, {"directory": ELSEWHERE}),
    ],
    ids=["history's directory", "history's directory and store", "history's store", "guest's directory"],
)
def test_a_plan_of_another_directory_does_not_agree(kind: Any, change: dict[str, Any]) -> None:
    plan: Any = resource(made(), kind)
    assert not replace(plan, **change).agrees_with(made().sandbox, facts())


def test_a_plan_of_another_state_directory_does_not_agree() -> None:
    assert not resource(made(), HistoryPlan).agrees_with(made().sandbox, facts(state_dir="/srv/podbot"))


def test_each_resource_describes_its_own_plan() -> None:
    with pytest.raises(NotImplementedError):
        ResourcePlan().described()

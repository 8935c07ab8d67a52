"""What events of progress say of time and of what comes next."""

from __future__ import annotations

from podbot.events import Event
from podbot.images.image_build import Step
from podbot.provisioning.stages import BEGINS, TITLES, Stages

STEPS = (Step("packages", ""), Step("base", ""), Step("build", ""), Step("config", ""))


def test_each_event_has_the_time_and_what_follows() -> None:
    now = [100.0]
    seen: list[Event] = []
    stages = Stages(seen.append, STEPS, clock=lambda: now[0])
    for at, event in (
        (100.04, Event("info", "repair.run", "installing")),
        (130.0, Event("info", "image.base", "making")),
        (131.0, Event("debug", "image.line", "x")),
        (170.0, Event("info", "image.build", "building")),
        (171.0, Event("info", "image.step", "step 1", {"title": "Node", "next": "claude"})),
        (172.0, Event("info", "image.step", "step 2", {"title": "user"})),
        (173.0, Event("notice", "image.wait", "waiting")),
        (180.26, Event("info", "setup.config", "wrote")),
    ):
        now[0] = at
        stages(event)
    found = [(event.kind, event.fields.get("elapsed"), event.fields.get("next")) for event in seen]
    assert found == [
        ("repair.run", 0.0, "base image"),
        ("image.base", 30.0, "sandbox image"),
        ("image.line", None, None),
        ("image.build", 70.0, "configuration"),
        ("image.step", 71.0, "claude"),
        ("image.step", 72.0, "configuration"),
        ("image.wait", None, None),
        ("setup.config", 80.3, None),
    ]
    assert seen[4].fields["title"] == "Node"


def test_a_step_that_was_not_planned_changes_nothing() -> None:
    """Another podbot removed the base between the plan and the build."""
    seen: list[Event] = []
    stages = Stages(seen.append, STEPS[2:])
    stages(Event("info", "image.build", "building"))
    stages(Event("info", "image.base", "making"))
    assert [event.fields.get("next") for event in seen] == ["configuration", "configuration"]


def test_every_kind_of_step_has_a_name() -> None:
    assert {*BEGINS.values()} == {*TITLES}

"""What all resources of a session have in common."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest

from podbot.events import ignore
from podbot.launch.resources.every import EVERY
from podbot.launch.resources.guard import GuardPlan
from podbot.session.directory import session_directory
from podbot.session.resources.every import opened_resources, resource_class, restore_resources
from podbot.session.resources.resource import Opening, SessionResource
from podbot.streams.wake import Wake
from podbot.testing import FakeEngine
from tests.session.plans import Place


@contextlib.contextmanager
def opening(place: Place) -> Iterator[Opening]:
    plan, engine = place.sandbox(guard=GuardPlan(place.workspace)), FakeEngine()
    with (
        contextlib.closing(Wake()) as wake,
        wake.listening(),
        session_directory(plan.runtime_dir, engine.endpoint) as directory,
    ):
        yield Opening(engine, plan, directory, wake, ignore)


@pytest.mark.parametrize("name", EVERY)
def test_each_that_is_planned_can_be_opened(name: str) -> None:
    assert issubclass(resource_class(name), SessionResource)


def test_a_session_has_those_of_its_plan_and_they_describe_themselves(place: Place) -> None:
    with opening(place) as session, opened_resources(session) as resources:
        described = [resource.describe() for resource in resources]
    assert described == [{"workspace": place.workspace, "git": None}]


def test_files_that_a_reboot_removed_are_made_again(place: Place) -> None:
    path = place.directory()
    os.makedirs(path, 0o700)
    restore_resources(path)
    assert sorted(os.listdir(path)) == ["secrets"]
    restore_resources(path)
    assert all(os.stat(os.path.join(path, name)).st_mode & 0o777 == 0o700 for name in os.listdir(path))

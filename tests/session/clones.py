"""Sessions that work on a clone, for tests of sessions: a fake engine with a real git."""

from __future__ import annotations

import dataclasses
import os

from podbot.launch.names import keep_label
from podbot.launch.resources.clone import ClonePlan
from podbot.launch.types import Keep, LaunchPlan
from podbot.testing import FakeEngine
from tests.session.plans import SESSION, Place, container, labels
from tests.session.real import git, server


def clone_labels(place: Place, session: str = SESSION, keep: Keep = "when_unsaved") -> dict[str, str]:
    """The output of commands in a clone's container."""
    path = os.path.join(place.base, "inside", "shop")
    return labels(
        session, workspace="github_clone", repo="octo/shop", access="octo/shop", path=path, keep=keep_label(keep)
    )


def clone_plan(place: Place, keep: Keep = "when_unsaved", session: str = SESSION) -> LaunchPlan:
    """A plan whose clone comes from a new local repository, without a token."""
    directory = os.path.join(place.base, "inside", "shop")
    clone = ClonePlan("octo/shop", "main", server(place.base, "main"), "https://github.com", directory)
    spec = dataclasses.replace(container(session, marks=clone_labels(place, session, keep)), workdir=directory)
    command = dataclasses.replace(place.plan().agent.command, workdir=directory)
    return place.plan(
        session, source="github_clone", workspace=None, container=spec, command=command, keep=keep, clone=clone
    )


def left_behind(engine: FakeEngine, place: Place, name: str = SESSION, keep: Keep = "when_unsaved") -> str:
    """A running clone's container and its clone; no process holds the session. Returns the clone's directory."""
    directory = os.path.join(place.base, "inside", "shop")
    os.makedirs(os.path.dirname(directory))
    git(place.base, "clone", "-q", server(place.base, "main"), directory)
    engine.start(engine.create(container(name, marks=clone_labels(place, name, keep))))
    return directory

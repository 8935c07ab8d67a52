"""A started container, one of a stranger, and the failures of an engine."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator

from podbot.container_spec import Mount
from podbot.errors import CreateFailed, EngineGone, PodbotError, StartFailed
from podbot.launch.repository import EMPTY
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.launch.types import CredentialSource, SandboxPlan
from podbot.session.container import started_container
from podbot.session.directory import session_directory
from podbot.session.resources.every import opened_resources
from podbot.session.resources.resource import Opening
from podbot.streams.wake import Wake
from podbot.testing import FakeEngine
from tests.session.plans import SESSION, Place, container

GONE = EngineGone(endpoint="unix:///fake/engine.sock", reason="connection refused")
FAILURES: dict[str, PodbotError] = {
    "create": CreateFailed(container=SESSION, image="i", reason="no"),
    "unmet": GONE,
    "start": StartFailed(container=SESSION, reason="no"),
}


@contextlib.contextmanager
def started(engine: FakeEngine, place: Place, plan: SandboxPlan, wake: Wake | None = None) -> Iterator[str]:
    """The container in its session's directory, as ``run`` has it."""
    with (
        contextlib.closing(wake or Wake()) as waker,
        waker.listening(),
        session_directory(plan.runtime_dir, engine.endpoint) as directory,
    ):
        session = Opening(engine, plan, directory, waker, place.events.append)
        with opened_resources(session) as resources, started_container(session, resources) as found:
            yield found


def somebody_s(engine: FakeEngine, **marks: str) -> str:
    """A running container of that name that this session did not make."""
    found = engine.create(container(SESSION, marks=marks))
    engine.start(found)
    return found


def logged_in(place: Place) -> SandboxPlan:
    home = os.path.join(place.base, "home")
    os.makedirs(os.path.join(home, ".codex"))
    with open(os.path.join(home, ".codex", "auth.json"), "w", encoding="utf-8") as file:
        file.write("login")
    given = os.path.join(home, ".codex")
    return place.sandbox(
        credentials=CredentialsPlan((CredentialSource("codex", given, os.path.realpath(given), "/root/.codex"),))
    )


def with_placeholders(place: Place, plan: SandboxPlan | None = None) -> SandboxPlan:
    """Of a repository with two worktrees elsewhere."""
    plan = plan or place.sandbox()
    source = os.path.join(place.base, "state", EMPTY, "0a1b")
    empty = tuple(Mount(source, f"/root/.bashrc/{name}/.git", read_only=True) for name in "ab")
    files = (*plan.container.files, *empty)
    return dataclasses.replace(plan, container=dataclasses.replace(plan.container, files=files))

"""Plans, directories and events for tests of sessions."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podbot.container_spec import ContainerSpec, Mount, Security
from podbot.events import Event
from podbot.exec_spec import ExecSpec
from podbot.launch.names import LABEL
from podbot.launch.resources.every import EVERY
from podbot.launch.types import AgentPlan, LaunchPlan, SandboxPlan
from podbot.session.directory import SessionDirectory, session_directory
from podbot.session.record import State
from podbot.testing import IMAGE, FakeEngine

SESSION = "podbot-proj-0a1b2c"
AGENT = {found.name for found in dataclasses.fields(AgentPlan)}


def labels(session: str = SESSION, **changes: str) -> dict[str, str]:
    values = {
        "managed": "true",
        "session": session,
        "agent": "claude",
        "mode": "podbot",
        "workspace": "host_mount",
        "path": "/home/ann/proj",
        "created": "2026-08-01T12:00:00Z",
    }
    return {f"{LABEL}.{name}": value for name, value in (values | changes).items()}


def container(session: str = SESSION, *mounts: Mount, marks: Mapping[str, str] | None = None) -> ContainerSpec:
    return ContainerSpec(
        name=session,
        image=IMAGE,
        image_origin="flag --image",
        labels=labels(session) if marks is None else marks,
        mounts=mounts,
        security=Security(),
    )


@dataclass
class Place:
    """A host: its runtime directory and a workspace, both real."""

    base: str
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        os.makedirs(self.workspace)
        os.makedirs(os.path.join(self.base, "run"), 0o700)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "XDG_RUNTIME_DIR": os.path.join(self.base, "run"),
            "XDG_STATE_HOME": os.path.join(self.base, ".local", "state"),
        }

    @property
    def runtime(self) -> str:
        return os.path.join(self.base, "run", "podbot")

    @property
    def workspace(self) -> str:
        return os.path.join(self.base, "work")

    def directory(self, session: str = SESSION) -> str:
        return os.path.join(self.runtime, session)

    def sandbox(self, session: str = SESSION, **changes: Any) -> SandboxPlan:
        """``changes``: of its fields, or resources by name; None removes one."""
        mount = Mount(self.workspace, "/workspace")
        values: dict[str, Any] = {
            "session": session,
            "source": "host_mount",
            "container": container(session, mount),
            "keep": "never",
            "runtime_dir": self.directory(session),
            "files_dir": os.path.join(self.directory(session), "files"),
            "workspace": mount,
            "image_agent": "claude",
        }
        given = {name: changes.pop(name) for name in EVERY if name in changes}
        values["resources"] = {name: given[name] for name in EVERY if given.get(name) is not None}
        return SandboxPlan(**(values | changes))

    def plan(self, session: str = SESSION, **changes: Any) -> LaunchPlan:
        """``changes``: of the sandbox, or of the agent; ``command`` is the agent's."""
        subcommand = changes.pop("subcommand", "run")
        agent = {name: changes.pop(name) for name in AGENT & changes.keys()}
        values: dict[str, Any] = {"kind": "claude", "mode": "podbot"}
        values["command"] = ExecSpec(("claude",), workdir="/workspace")
        if "kind" in agent:
            changes["image_agent"] = None if agent["kind"] == "custom" else agent["kind"]
        return LaunchPlan(subcommand, self.sandbox(session, **changes), AgentPlan(**(values | agent)))

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


WAY: tuple[State, ...] = ("creating", "running", "stopped", "starting", "detached")


def in_state(directory: SessionDirectory, state: State) -> None:
    """Bring a session that was just claimed there."""
    for step in WAY[: WAY.index(state) + 1]:
        directory.move(step)


def made(engine: FakeEngine, *names: str, started: bool = True) -> None:
    for name in names:
        found = engine.create(container(name))
        if started:
            engine.start(found)


def kept(engine: FakeEngine, place: Place, name: str) -> None:
    """A session that ended and was to be kept."""
    engine.start(engine.create(container(name, marks=labels(name, keep="true"))))
    with session_directory(place.directory(name), engine.endpoint) as directory:
        in_state(directory, "stopped")


def orphaned(engine: FakeEngine, place: Place, name: str) -> None:
    """A session whose podbot was killed."""
    made(engine, name)
    with session_directory(place.directory(name), engine.endpoint) as directory:
        in_state(directory, "running")


def changed(plan: LaunchPlan, **changes: Any) -> LaunchPlan:
    """``plan`` with another sandbox; ``changes`` as for :meth:`Place.sandbox`."""
    resources = {**plan.sandbox.resources, **{name: changes.pop(name) for name in EVERY if name in changes}}
    ordered = {name: resources[name] for name in EVERY if name in resources}
    return dataclasses.replace(plan, sandbox=dataclasses.replace(plan.sandbox, resources=ordered, **changes))


def nest(path: str, levels: int = 3000) -> None:
    """Directories in each other, deeper than Python's calls and than the descriptors of a process."""
    fd = os.open(path, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)

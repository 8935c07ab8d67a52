"""``history ls``: which projects' conversations are kept, with which agents, how much, and since when unused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from podbot.agents.registry import agents
from podbot.launch.resources.history import DIRECTORY
from podbot.places import is_own_directory, state_dir
from podbot.session.resources.history import PROJECT, USED, survey

_KEY = re.compile("[0-9a-f]{32}")
_MOST = 64 << 10  # bytes of podbot's own record


@dataclass(frozen=True)
class AgentHistory:
    """``bytes`` on the disk; a lower bound where ``complete`` is false. ``last_used``: seconds since the epoch."""

    agent: str
    bytes: int
    complete: bool
    last_used: float


@dataclass(frozen=True)
class ProjectHistory:
    """``project``: a host path, or server and repository. ``key``: the name of its directory."""

    project: str
    key: str
    agents: tuple[AgentHistory, ...]

    @property
    def last_used(self) -> float:
        """When a session of it started last, with any agent."""
        return max((agent.last_used for agent in self.agents), default=0.0)


def history_root(environ: Mapping[str, str]) -> str:
    """Where the stores of all projects lie."""
    return os.path.join(state_dir(environ), DIRECTORY)


def list_history(environ: Mapping[str, str]) -> list[ProjectHistory]:
    """Every project with a store, the one used last first. Asks no engine, and reads nothing that an agent wrote."""
    root = history_root(environ)
    if not is_own_directory(root):
        return []
    keys = sorted(name for name in os.listdir(root) if _KEY.fullmatch(name))
    found = [_project(root, key) for key in keys if is_own_directory(os.path.join(root, key))]
    return sorted(found, key=lambda project: (-project.last_used, project.project))


def _project(root: str, key: str) -> ProjectHistory:
    directory = os.path.join(root, key)
    kinds = [kind for kind, found in agents().items() if found.conversations is not None]
    kept = [_agent(directory, kind) for kind in kinds if os.path.lexists(os.path.join(directory, kind))]
    return ProjectHistory(_name(directory) or key, key, tuple(kept))


def _agent(directory: str, kind: str) -> AgentHistory:
    path = os.path.join(directory, kind)
    found = survey(path)
    try:
        used = os.lstat(path + USED).st_mtime
    except OSError:
        used = 0.0
    return AgentHistory(kind, found.bytes, found.complete, used)


def _name(directory: str) -> str:
    """What podbot's own record says; empty when it is missing, as after a kill at the very start."""
    try:
        with open(os.path.join(directory, PROJECT), encoding="utf-8") as file:
            record = json.loads(file.read(_MOST))
    except (OSError, ValueError):
        return ""
    project = record.get("project") if isinstance(record, dict) else None
    return project if isinstance(project, str) else ""

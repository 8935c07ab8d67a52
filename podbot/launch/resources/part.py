"""What one resource decides, and what it decides it from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from podbot.config.models import AppConfig
from podbot.launch.types import ExecSpec, HostFacts, Keep, LaunchRequest, Mount, OwnFile, ResourcePlan
from podbot.launch.workspace import WorkspacePlan


@dataclass(frozen=True)
class Context:
    """What is decided about a sandbox before its resources are.

    ``runtime_dir``: on the host, the session's own. ``command``: what starts the agent; None without one.
    """

    config: AppConfig
    request: LaunchRequest
    facts: HostFacts
    runtime_dir: str
    keep: Keep
    workspace: WorkspacePlan
    command: ExecSpec | None


@dataclass(frozen=True)
class Part:
    """What a resource adds to the plan of a sandbox.

    ``value``: what it works with while the sandbox is open; None: nothing is to be opened. ``mounts``, ``files``: what
    the container mounts for it. ``env``: what the operator's own variables replace; ``fixed_env``: what nothing
    replaces. ``labels``: also those that a sandbox without it must have, because it would inherit its image's.
    ``notes``: lines that the operator must see.
    """

    value: ResourcePlan | None = None
    mounts: tuple[Mount, ...] = ()
    files: tuple[OwnFile, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    fixed_env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

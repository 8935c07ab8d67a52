"""The input and the result of planning one resource."""

from __future__ import annotations

from collections.abc import Mapping

from podbot.config.models import AppConfig
from podbot.container_spec import Mount
from podbot.exec_spec import ExecSpec
from podbot.frozen import Frozen, field
from podbot.launch.types import HostFacts, Keep, LaunchRequest, OwnFile, ResourcePlan
from podbot.launch.workspace import WorkspacePlan


class Context(Frozen):
    """What is known about a sandbox before its resources are planned.

    ``runtime_dir``: the session's own directory on the host. ``command``: starts the agent; None without an agent.
    """

    config: AppConfig
    request: LaunchRequest
    facts: HostFacts
    runtime_dir: str
    keep: Keep
    workspace: WorkspacePlan
    command: ExecSpec | None


class Part(Frozen):
    """What a resource adds to the plan of a sandbox.

    ``value``: its own plan, used while the sandbox is open; None if there is nothing to open. ``mounts``, ``files``:
    additional mounts of the container. ``env``: variables that the operator's own override; ``fixed_env``: variables
    that nothing overrides. ``git_config``: configuration of git that counts more than that of any file. ``labels``:
    includes empty ones if the resource is absent, because the container would inherit its image's. ``notes``: lines
    that the operator must see.
    """

    value: ResourcePlan | None = None
    mounts: tuple[Mount, ...] = ()
    files: tuple[OwnFile, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    fixed_env: Mapping[str, str] = field(default_factory=dict)
    git_config: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

"""What a session's state says of a workspace that runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

Variables = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PodmanWorkspace:
    """A sandbox. ``workdir``: the workspace inside; ``overlay_path``: the same directory on this host.

    ``env``: the variables of the settings. ``last_used_at``: the end of the last call.
    """

    container_name: str
    image: str
    workdir: str
    overlay_path: str
    env: Variables
    started_at: datetime
    last_used_at: datetime


@dataclass(frozen=True, slots=True)
class UnsafeLocalWorkspace:
    """A directory of this host. ``workdir``: what tools call it. The other fields: see :class:`PodmanWorkspace`."""

    workspace_path: str
    workdir: str
    env: Variables
    started_at: datetime
    last_used_at: datetime


WorkspaceState = PodmanWorkspace | UnsafeLocalWorkspace

"""What a session's guard looks at. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podbot.launch.resources.part import Context, Part


@dataclass(frozen=True)
class GuardPlan:
    """What is recorded before the agent starts and looked at again behind it: host directories.

    ``git``: the common git directory of a workspace that is a linked worktree, or a submodule's; empty for none.
    """

    workspace: str
    git: str = ""

    def described(self) -> dict[str, Any]:
        """As plain values."""
        return {"workspace": self.workspace, "git": self.git or None}


def plan(context: Context) -> Part | None:
    """None where the agent can write no directory of the host's that a person works in, and with the guard off."""
    mount, linked = context.workspace.mount, context.workspace.linked
    if mount is None or mount.read_only or context.config.workspace.guard == "off":
        return None
    return Part(GuardPlan(mount.source, linked.directory if linked is not None else ""))

"""Plans what a session's guard scans. Pure."""

from __future__ import annotations

from typing import Any, ClassVar

from podbot.launch.resources.part import Context, Part
from podbot.launch.types import HostFacts, ResourcePlan, SandboxPlan


class GuardPlan(ResourcePlan):
    """The host directories that are scanned before the agent starts and again after its end.

    ``git``: the common git directory of a workspace that is a linked worktree, or a submodule's; empty if none.
    """

    slow_to_end: ClassVar[bool] = True

    workspace: str
    git: str = ""

    def described(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {"workspace": self.workspace, "git": self.git or None}

    def agrees_with(self, sandbox: SandboxPlan, facts: HostFacts) -> bool:
        """See ResourcePlan. Elsewhere it would not see what the agent leaves."""
        del facts
        own, mounted = sandbox.workspace, {mount.source for mount in sandbox.container.mounts}
        return (
            own is not None and own.source == self.workspace and {self.workspace, self.git or self.workspace} <= mounted
        )


def plan(context: Context) -> Part | None:
    """The guard's plan; None if the workspace is not a writable host directory, or the guard is off."""
    mount, linked = context.workspace.mount, context.workspace.linked
    if mount is None or mount.read_only or context.config.workspace.guard == "off":
        return None
    return Part(GuardPlan(mount.source, linked.directory if linked is not None else ""))

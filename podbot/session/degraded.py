"""What a session can start without, when the engine cannot do it, and how that is reported. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from podbot.engine.port import Unmet
from podbot.events import Event
from podbot.launch.repository import is_placeholder, not_placed
from podbot.launch.security import without_defaults
from podbot.launch.types import SandboxPlan

# What runtimes say of a limit that they cannot set, as without delegation on cgroup v2: the directory or file is named.
_CGROUP = ("cgroup", "memory.max", "pids.max")
_WORDS = {"memory": _CGROUP, "pids": _CGROUP, "nofile": ("rlimit",)}
USE_UP = "a session can use up this machine"


def with_less(plan: SandboxPlan, reason: str) -> tuple[SandboxPlan, Event] | None:
    """The plan to try after one that did not start for ``reason``, and what to report then; None: there is none.

    Places that a repository names are given up first: their paths are its word, and can be in ``reason``. Then the
    default limits, where the engine cannot set them: nobody asked for them, and without that no session would start.
    """
    spec = plan.container
    files = tuple(mount for mount in spec.files if not is_placeholder(mount))
    if number := len(spec.files) - len(files):
        less = dataclasses.replace(spec, files=files)
        event = _no_placeholders(plan, number)
    elif names := [name for name in spec.limits.by_default if any(word in reason.lower() for word in _WORDS[name])]:
        less = dataclasses.replace(spec, limits=without_defaults(spec.limits, names))
        event = unmet_limits(plan, [Unmet(f"sandbox.{name}", str(getattr(spec.limits, name)), "") for name in names])
    else:
        return None
    return dataclasses.replace(plan, container=less), event


def _no_placeholders(plan: SandboxPlan, number: int) -> Event:
    why = "the sandbox did not start with an empty directory in place of each linked worktree elsewhere, and has none"
    fields = {"session": plan.session, "worktrees": number}
    return Event("notice", "git.no_placeholders", f"{why}: {not_placed(number)}", fields)


def unmet_limits(plan: SandboxPlan, unmet: Sequence[Unmet]) -> Event:
    """One event for all limits that do not hold."""
    text = " and ".join(f"{limit.key} = {_shown(limit)}" for limit in unmet)
    fields = {"session": plan.session, "limits": [limit._asdict() for limit in unmet]}
    return Event("warning", "limit.unmet", f"this engine does not enforce {text}: {USE_UP}", fields)


def _shown(limit: Unmet) -> str:
    """Bytes as a size."""
    if limit.key == "sandbox.memory" and limit.wanted.isdigit():
        return f"{int(limit.wanted) >> 20}m"
    return limit.wanted

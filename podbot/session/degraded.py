"""What a session gives up to start on an engine that does not support it, and how that is reported. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from podbot.engine.port import Unmet
from podbot.events import Event
from podbot.frozen import replace
from podbot.launch.repository import is_placeholder, not_placed
from podbot.launch.security import without_defaults
from podbot.launch.types import SandboxPlan

# What a runtime's error message names when it cannot set a limit, e.g. without cgroup v2 delegation: a file of the
# controller, or the controller, which may be missing alone. runc's words: "cannot set cpu limit".
_NAMED = {
    limit: rf"\b{name}\.({files})|\b(controllers?|set) ['`\"]?{name}\b|\b{name}['`\"]? controller\b"
    for limit, name, files in (
        ("memory", "memory", r"max|swap\.max|limit|memsw"),
        ("cpus", "cpu", "max|cfs_"),
        ("pids", "pids", "max"),
    )
}
MAIN_ENDED = "its main process ended while it started"
MAIN_SILENT = "its main process did not answer"
USE_UP = "a session can use up this machine"


def with_less(plan: SandboxPlan, reason: str) -> tuple[SandboxPlan, Event] | None:
    """The plan to try after one failed to start for ``reason``, and the event to report; None when none is left.

    Placeholders for paths that a repository names are given up first, because the repository chose those paths and they
    may be part of ``reason``. Default limits that the engine cannot set come next: the operator did not ask for them,
    and no session could start on such an engine otherwise.
    """
    spec = plan.container
    files = tuple(mount for mount in spec.files if not is_placeholder(mount))
    if spec.guest is not None and reason in (MAIN_ENDED, MAIN_SILENT):
        return _without_guest(plan, reason)
    if number := len(spec.files) - len(files):
        less = replace(spec, files=files)
        event = _no_placeholders(plan, number)
    elif names := _not_settable(spec.limits.by_default, reason.lower()):
        less = replace(spec, limits=without_defaults(spec.limits, names))
        event = unmet_limits(plan, [Unmet(f"sandbox.{name}", str(getattr(spec.limits, name)), "") for name in names])
    else:
        return None
    return replace(plan, container=less), event


def _not_settable(limits: Sequence[str], reason: str) -> list[str]:
    """Those of ``limits`` that the engine could not set: all of the control group only if ``reason`` names none."""
    import re  # here: only a start that failed needs the patterns

    named = {name for name, pattern in _NAMED.items() if re.search(pattern, reason)}
    if not named and "cgroup" in reason:
        named = set(_NAMED)
    if "rlimit" in reason:
        named.add("nofile")
    return [name for name in limits if name in named]


def _without_guest(plan: SandboxPlan, reason: str) -> tuple[SandboxPlan, Event]:
    """The plan and the event for a sandbox whose main process, the guest, ended or did not answer.

    The usual cause is an image without a shell, or with a python3 that cannot run.
    """
    spec = plan.container
    files = tuple(mount for mount in spec.files if mount.target != spec.guest)
    why = reason.replace("its", "the sandbox's", 1)
    text = f"{why}: {plan.session} is started without podbot's guest, and its commands go over the engine"
    event = Event("notice", "guest.none", text, {"session": plan.session, "image": spec.image})
    less = replace(spec, files=files, guest=None)
    return replace(plan, container=less), event


def _no_placeholders(plan: SandboxPlan, number: int) -> Event:
    why = "the sandbox did not start with empty directories over linked worktrees elsewhere, so it was started without"
    fields = {"session": plan.session, "worktrees": number}
    return Event("notice", "git.no_placeholders", f"{why}: {not_placed(number)}", fields)


def unmet_limits(plan: SandboxPlan, unmet: Sequence[Unmet]) -> Event:
    """One event for all limits that the engine does not enforce."""
    text = " and ".join(f"{limit.key} = {_shown(limit)}" for limit in unmet)
    fields = {"session": plan.session, "limits": [dict(vars(limit)) for limit in unmet]}
    return Event("warning", "limit.unmet", f"this engine does not enforce {text}: {USE_UP}", fields)


def _shown(limit: Unmet) -> str:
    """The limit's value, with bytes as megabytes."""
    if limit.key in ("sandbox.memory", "sandbox.shm") and limit.wanted.isdigit():
        return f"{int(limit.wanted) >> 20}m"
    return limit.wanted

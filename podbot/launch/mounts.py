"""The mount policy: which host directories an agent may see, and where. Pure, on resolved paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from podbot.config.models import AppConfig
from podbot.errors import InvalidValue, MissingRequired, MountRefused
from podbot.launch.places import refusal, refused_sources, reserved_targets, within
from podbot.launch.types import HostFacts, LaunchRequest, Mount, PathFacts

SAME_PATH = "host"  # workspace.container_path: mount where the host has it
_DEFAULT_TARGET = "/workspace"
_EXTRA = "sandbox.extra_mounts"
# C0 and C1 controls, line separators, bidirectional overrides, and surrogates (bytes that are not UTF-8).
# The engine takes a newline in a path (measured); a terminal and a log line do not, and JSON takes no surrogate.
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class MountPlan(NamedTuple):
    """``mounts``: all, with parents before what lies below them. ``notes``: a place that was left out, and why.

    ``places``: where the workspace is inside, its own mount's target first.
    """

    workspace: Mount
    mounts: tuple[Mount, ...]
    places: tuple[str, ...]
    notes: tuple[str, ...] = ()


def plan_mounts(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> MountPlan:
    """The mounts of a sandbox that works on a host directory.

    Raises MissingRequired without a workspace, InvalidValue for a malformed mount, MountRefused for
    one that the policy refuses.
    """
    workspace, same_path = _workspace(config, request, facts)
    extra = _extra_mounts(config, facts)
    mounts = _ordered(config, [workspace, *extra])
    spelled = facts.workspace.spelled if facts.workspace is not None and same_path else None
    if spelled is None:
        return MountPlan(workspace, mounts, (workspace.target,))
    target, reason = _as_spelled(spelled, workspace, extra)
    if reason:
        note = f"inside, the workspace is not at {_shown(spelled)} as well: {reason}"
        return MountPlan(workspace, mounts, (workspace.target,), (note,))
    second = Mount(workspace.source, target, workspace.read_only)
    return MountPlan(workspace, _ordered(config, [*mounts, second]), (workspace.target, target))


def mount_notes(mounts: Sequence[Mount]) -> tuple[str, ...]:
    """What the operator is told: a line for each source and access."""
    targets: dict[tuple[str, bool], list[str]] = {}
    for mount in mounts:
        targets.setdefault((mount.source, mount.read_only), []).append(mount.target)
    return tuple(
        f"mounting {source} at {' and at '.join(found)} ({'read-only' if read_only else 'read-write'})"
        for (source, read_only), found in targets.items()
    )


def plan_clone_mounts(config: AppConfig, facts: HostFacts, directory: str) -> tuple[Mount, ...]:
    """All mounts of a sandbox that holds a clone in ``directory``. Raises InvalidValue, MountRefused."""
    mounts = _extra_mounts(config, facts)
    for mount in mounts:
        if within(mount.target, directory):
            raise MountRefused(
                path=mount.target,
                origin=str(config.origin(_EXTRA)),
                reason=f"the repository is cloned into {directory}",
                hint="Choose another target, or another workspace.base_dir.",
            )
    return _ordered(config, mounts)


def _ordered(config: AppConfig, mounts: list[Mount]) -> tuple[Mount, ...]:
    """Parents before what lies below them; no two on one target."""
    seen: set[str] = set()
    for mount in mounts:
        if mount.target in seen:
            raise MountRefused(
                path=mount.target,
                origin=str(config.origin(_EXTRA)),
                reason="two mounts have this target",
                hint="Give each its own.",
            )
        seen.add(mount.target)
    return tuple(sorted(mounts, key=lambda mount: mount.target.split("/")))


def extra_mount(config: AppConfig, text: str) -> tuple[str, str, bool]:
    """One of ``sandbox.extra_mounts``, ``SOURCE:TARGET[:ro]``, as (source, target, read-only). Raises InvalidValue."""
    source, _, target = text.removesuffix(":ro").partition(":")
    if not source or not target.startswith("/") or ":" in target:
        raise InvalidValue(
            field=_EXTRA,
            origin=str(config.origin(_EXTRA)),
            reason=f"{text[:80]!r} is not a mount",
            hint="Write it as SOURCE:TARGET or SOURCE:TARGET:ro, without other colons; TARGET begins with /.",
        )
    return source, target, text.endswith(":ro")


def normal_target(text: str, origin: str) -> str:
    """``text`` as an absolute path inside the sandbox without repeated slashes. Raises MountRefused."""
    reason = _unshowable(text)
    if reason is None and not text.startswith("/"):
        reason = "a target inside the sandbox is an absolute path"
    parts = [part for part in text.split("/") if part]
    if reason is None and (".." in parts or "." in parts):
        reason = "a target has no '.' or '..' in it"
    target = "/" + "/".join(parts)
    reason = reason or refusal(target, reserved_targets())
    if reason is not None:
        raise MountRefused(
            path=_shown(text),
            origin=origin,
            reason=reason,
            hint="Choose another target inside the sandbox, such as /workspace.",
        )
    return target


def _workspace(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> tuple[Mount, bool]:
    """The mount, and whether its target is the path that the host has."""
    found = facts.workspace
    if found is None:
        raise MissingRequired(
            field="workspace.host_path",
            hint=f"Name the code to work on: `podbot {request.subcommand} --workspace PATH`.",
        )
    origin = str(config.origin("workspace.host_path"))
    roots = list(facts.allowed_roots)
    if request.trusted_workspace:
        roots.append(found)
    source = _checked_source(found, origin, roots, facts)
    text, target_origin = config.workspace.container_path, config.origin("workspace.container_path")
    # An editor sends host paths, so they stay true inside unless somebody said otherwise.
    if request.subcommand == "host" and target_origin.kind == "default" and text == _DEFAULT_TARGET:
        text = SAME_PATH
    if text == SAME_PATH:
        target = normal_target(source, f"{target_origin}, the same path as on the host")
    else:
        target = normal_target(text, str(target_origin))
    return Mount(source, target, config.workspace.read_only), text == SAME_PATH


def _as_spelled(spelled: str, workspace: Mount, extra: Sequence[Mount]) -> tuple[str, str]:
    """Where a second mount of the workspace goes, so that paths through a link are true inside; or why it does not.

    It is a target and nothing else: what the link leads to now is nobody's source. A mount that covers a part of
    the workspace, to hide or to replace it, would leave that part open under the other name.
    """
    try:
        target = normal_target(spelled, "the workspace's path as it was spelled")
    except MountRefused as exc:
        return "", exc.reason
    if within(target, workspace.target) or within(workspace.target, target):
        return "", f"{workspace.target}, where it is, is in the way"
    for mount in extra:
        if within(mount.target, workspace.target) or within(mount.target, target) or within(target, mount.target):
            return "", f"the mount at {mount.target} is in the way ({_EXTRA})"
    return target, ""


def _extra_mounts(config: AppConfig, facts: HostFacts) -> list[Mount]:
    origin = str(config.origin(_EXTRA))
    mounts = []
    # No flag sets these, so nothing makes them their own allowed root.
    for text, found in zip(config.sandbox.extra_mounts, facts.extra_mounts, strict=True):
        _, target, read_only = extra_mount(config, text)
        source = _checked_source(found, origin, facts.allowed_roots, facts)
        mounts.append(Mount(source, normal_target(target, origin), read_only))
    return mounts


def _checked_source(
    found: PathFacts, origin: str, roots: list[PathFacts] | tuple[PathFacts, ...], facts: HostFacts
) -> str:
    path = found.resolved
    reason = _unshowable(found.given) or _unshowable(path) or _not_a_directory(found)
    reason = reason or refusal(path, refused_sources(facts, path))
    hint = "Choose a project directory instead."
    if reason is None and not any(root.kind == "directory" and within(path, root.resolved) for root in roots):
        reason = "it lies in none of workspace.allowed_roots"
        hint = "Type it on the command line (`--workspace PATH`), or add its parent to workspace.allowed_roots."
    if reason is not None:
        shown = _shown(path)
        if found.given not in (path, path + "/"):
            shown += f", from {_shown(found.given)}"
        raise MountRefused(path=shown, origin=origin, reason=reason, hint=hint)
    return path


def _not_a_directory(found: PathFacts) -> str | None:
    return {
        "directory": None,
        "missing": "there is no such directory",
        "other": "it is not a directory",
        "unreadable": "this user may not open it",
    }[found.kind]


def _unshowable(path: str) -> str | None:
    return "its name has a control character, or is not UTF-8" if _UNSHOWABLE.search(path) else None


def _shown(path: str) -> str:
    return ascii(path)[1:-1] if _UNSHOWABLE.search(path) else path

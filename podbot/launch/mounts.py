"""The mount policy: which host directories an agent may see, and where. Pure, on resolved paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from podbot.config.models import AppConfig
from podbot.errors import InvalidValue, MissingRequired, MountRefused
from podbot.launch.protected import plan_protected
from podbot.launch.refused_paths import within
from podbot.launch.repository import plan_linked, plan_placeholders
from podbot.launch.sources import checked_source
from podbot.launch.targets import normal_target, shown
from podbot.launch.types import HostFacts, LaunchRequest, LinkedGit, Mount, PathFacts

SAME_PATH = "host"  # workspace.container_path: mount where the host has it
SECOND_NAME = "/workspace"  # a link to the workspace, where that has the host's path
_EXTRA = "sandbox.extra_mounts"


class MountPlan(NamedTuple):
    """``mounts``: all, with parents before what lies below them. ``notes``: what the operator is told of them.

    ``places``: what git inside is to trust: where the workspace is, its own mount's target first, and the linked
    worktrees below it. ``link``: a symbolic link to be made inside, its path and where it leads. ``linked``: whose
    directory is mounted because the workspace's ``.git`` file leads there. ``empty``: directories that stand for
    linked worktrees which the sandbox does not see.
    """

    workspace: Mount
    mounts: tuple[Mount, ...]
    places: tuple[str, ...]
    notes: tuple[str, ...] = ()
    link: tuple[str, str] | None = None
    linked: LinkedGit | None = None
    empty: tuple[Mount, ...] = ()


def plan_mounts(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> MountPlan:
    """The mounts of a sandbox that works on a host directory.

    Raises MissingRequired without a workspace, InvalidValue for a malformed mount, MountRefused for
    one that the policy refuses.
    """
    workspace, same_path = _workspace(config, request, facts)
    extra = _extra_mounts(config, facts)
    mounts = _ordered(config, [workspace, *extra])
    names, notes = [workspace.target], []
    spelled = facts.workspace.spelled if facts.workspace is not None and same_path else None
    if spelled is not None:
        target, reason = _as_spelled(spelled, workspace, extra)
        if reason:
            notes.append(f"inside, the workspace is not at {shown(spelled)} as well: {reason}")
        else:
            names.append(target)
            mounts = _ordered(config, [*mounts, Mount(workspace.source, target, workspace.read_only)])
    link, why_not = _second_name(workspace, mounts) if same_path else (None, ())
    linked = plan_linked(
        facts.repository.linked,
        workspace,
        mounts,
        _refused_linked(request, facts),
    )
    told = mount_notes(mounts, link)
    if linked.mount is not None:
        mounts = _ordered(config, [*mounts, linked.mount])
    protected, protects = plan_protected(config, facts, workspace, mounts)
    mounts = _ordered(config, [*mounts, *protected])
    empty, not_placed = plan_placeholders(facts, workspace, mounts, SECOND_NAME if link else None)
    below = [path for path in facts.repository.worktrees if within(path, workspace.target)]
    return MountPlan(
        workspace,
        mounts,
        places=tuple(dict.fromkeys((*names, *((SECOND_NAME,) if link else ()), *below))),
        notes=(*told, *notes, *why_not, *linked.notes, *protects, *not_placed),
        link=link,
        linked=linked.linked,
        empty=empty,
    )


def mount_notes(mounts: Sequence[Mount], link: tuple[str, str] | None = None) -> tuple[str, ...]:
    """What the operator is told: a line for each source and access."""
    targets: dict[tuple[str, bool], list[str]] = {}
    for mount in mounts:
        found = targets.setdefault((mount.source, mount.read_only), [])
        found += [mount.target, link[0]] if link is not None and mount.target == link[1] else [mount.target]
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


def _workspace(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> tuple[Mount, bool]:
    """The mount, and whether its target is the path that the host has."""
    found = facts.workspace
    if found is None:
        raise MissingRequired(
            field="workspace.host_path",
            hint="Set workspace.host_path."
            if request.subcommand == "sandbox"
            else f"Name the code to work on: `podbot {request.subcommand} --workspace PATH`.",
        )
    origin = str(config.origin("workspace.host_path"))
    roots = list(facts.allowed_roots)
    if request.trusted_workspace:
        roots.append(found)
    source = checked_source(found, origin, roots, facts, follow_links=request.follow_links)
    text, target_origin = config.workspace.container_path, config.origin("workspace.container_path")
    if text == SAME_PATH:
        hint = f'Set workspace.container_path = "{SECOND_NAME}".'
        target = normal_target(source, f"{target_origin}, the same path as on the host", hint)
    else:
        target = normal_target(text, str(target_origin))
    return Mount(source, target, config.workspace.read_only), text == SAME_PATH


def _second_name(workspace: Mount, mounts: Sequence[Mount]) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
    """The link ``/workspace``, or a note that says why there is none.

    A link and not a second mount: git and other tools record where they really are, and a record of ``/workspace``
    would be wrong on the host. Nor does it go round a mount that covers a part of the workspace.
    """
    if SECOND_NAME in (workspace.target, *(mount.target for mount in mounts if mount.source == workspace.source)):
        return None, ()
    over = [mount.target for mount in mounts if within(mount.target, SECOND_NAME)]
    if over:
        return None, (f"inside, {SECOND_NAME} is not the workspace: the mount at {over[0]} is in the way",)
    return (SECOND_NAME, workspace.target), ()


def _refused_linked(request: LaunchRequest, facts: HostFacts) -> str | None:
    """What the mount policy says of the git directory that the workspace's ``.git`` file leads to."""
    linked = facts.repository.linked
    if linked is None or linked.reason is not None:
        return None
    found = PathFacts(linked.directory, linked.directory, "directory")
    # Who typed the workspace's path chose that worktree, and the directory points back to it.
    roots = [*facts.allowed_roots, *([found] if request.trusted_workspace else [])]
    try:
        normal_target(checked_source(found, "the workspace's .git file", roots, facts), "the workspace's .git file")
    except MountRefused as exc:
        return f"podbot will not mount {exc.path}: {exc.reason}"
    return None


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
        source = checked_source(found, origin, facts.allowed_roots, facts)
        mounts.append(Mount(source, normal_target(target, origin), read_only))
    return mounts

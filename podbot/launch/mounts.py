"""The mount policy: which host directories an agent may see, and at which paths. Pure, on resolved paths."""

from __future__ import annotations

from collections.abc import Sequence

from podbot.config.checks import is_anchored
from podbot.config.models import AppConfig
from podbot.container_spec import Mount
from podbot.errors import InvalidValue, MissingRequired, MountRefused
from podbot.frozen import Frozen
from podbot.launch.extra_mounts import origins_of, plan_extra
from podbot.launch.git_settings import setting_notes
from podbot.launch.mount_paths import checked_source, normal_target, shown
from podbot.launch.refused_paths import within
from podbot.launch.repository import plan_linked, plan_placeholders
from podbot.launch.types import HostFacts, LaunchRequest, LinkedGit, PathFacts

SAME_PATH = "host"  # workspace.container_path: mount at the same path as on the host
SECOND_NAME = "/workspace"  # a link to the workspace, when that is mounted at the host's path

_PROTECTED = (
    "inside, git's configuration and hooks are read-only (workspace.guard = protect): `git config`, `git push -u` and"
    " tools that install hooks fail there"
)
_OUTSIDE = (
    "Add it or a parent of it to workspace.allowed_roots; or, if you chose the path yourself, pass"
    " LaunchRequest(trusted_workspace=True)."
)
_NOTHING = "workspace.guard = protect has nothing to protect: the workspace has no git directory that podbot mounts"


class MountPlan(Frozen):
    """``mounts``: all mounts, with parents before the mounts below them. ``notes``: lines for the operator.

    ``places``: directories that git inside must trust: the workspace's paths, its own mount's target first, and the
    linked worktrees below it. ``link``: a symbolic link to create inside, as its path and target. ``linked``: the
    git directory that is mounted because the workspace's ``.git`` file leads there. ``empty``: empty directories
    that are mounted in place of linked worktrees outside the sandbox.
    """

    workspace: Mount
    mounts: tuple[Mount, ...]
    places: tuple[str, ...]
    notes: tuple[str, ...] = ()
    link: tuple[str, str] | None = None
    linked: LinkedGit | None = None
    empty: tuple[Mount, ...] = ()


def plan_mounts(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> MountPlan:
    """The mounts of a sandbox with a host directory as its workspace.

    Raises MissingRequired without a workspace, InvalidValue for a malformed mount, and MountRefused for one that the
    policy refuses.
    """
    workspace, same_path = _workspace(config, request, facts)
    extra = plan_extra(config, request, facts)
    origin = origins_of(config, request)
    mounts = _ordered([workspace, *extra], origin)
    names, notes = [workspace.target], []
    spelled = facts.workspace.spelled if facts.workspace is not None and same_path else None
    if spelled is not None:
        target, reason = _as_spelled(spelled, workspace, extra)
        if reason:
            notes.append(f"inside, the workspace is not also mounted at {shown(spelled)}: {reason}")
        else:
            names.append(target)
            mounts = _ordered([*mounts, Mount(workspace.source, target, workspace.read_only)], origin)
    link, why_not = _second_name(workspace, mounts) if same_path else (None, ())
    linked = plan_linked(
        facts.repository.linked,
        workspace,
        mounts,
        _refused_linked(request, facts),
    )
    described = mount_notes(mounts, link)
    if linked.mount is not None:
        mounts = _ordered([*mounts, linked.mount], origin)
    protected, protects = plan_protected(config, facts, workspace, mounts)
    mounts = _ordered([*mounts, *protected], origin)
    empty, not_placed = plan_placeholders(facts, workspace, mounts, SECOND_NAME if link else None)
    settings = setting_notes(facts.repository.settings, config.sandbox.env)
    below = [path for path in facts.repository.worktrees if within(path, workspace.target)]
    return MountPlan(
        workspace,
        mounts,
        places=tuple(dict.fromkeys((*names, *((SECOND_NAME,) if link else ()), *below))),
        notes=(*described, *notes, *why_not, *linked.notes, *settings, *protects, *not_placed),
        link=link,
        linked=linked.linked,
        empty=empty,
    )


def mount_notes(mounts: Sequence[Mount], link: tuple[str, str] | None = None) -> tuple[str, ...]:
    """Lines for the operator: one for each source and access."""
    targets: dict[tuple[str, bool], list[str]] = {}
    for mount in mounts:
        found = targets.setdefault((mount.source, mount.read_only), [])
        found += [mount.target, link[0]] if link is not None and mount.target == link[1] else [mount.target]
    return tuple(
        f"mounting {source} at {' and at '.join(found)} ({'read-only' if read_only else 'read-write'})"
        for (source, read_only), found in targets.items()
    )


def plan_clone_mounts(config: AppConfig, request: LaunchRequest, facts: HostFacts, directory: str) -> tuple[Mount, ...]:
    """All mounts of a sandbox with a clone in ``directory``. Raises InvalidValue, MountRefused."""
    mounts, origin = plan_extra(config, request, facts), origins_of(config, request)
    for mount in mounts:
        if within(mount.target, directory):
            raise MountRefused(
                path=mount.target,
                origin=origin,
                reason=f"the repository is cloned into {directory}",
                hint="Choose another target, or another workspace.base_dir.",
                operation=MountRefused.AT_TARGET,
            )
    return _ordered(mounts, origin)


def plan_extra_mounts(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> tuple[Mount, ...]:
    """All mounts of a sandbox without a workspace. Raises InvalidValue, MountRefused."""
    return _ordered(plan_extra(config, request, facts), origins_of(config, request))


def _ordered(mounts: list[Mount], origin: str) -> tuple[Mount, ...]:
    """Sort the mounts so that parents come first. ``origin``: of the added ones.

    Raises MountRefused when two have the same target.
    """
    seen: set[str] = set()
    for mount in mounts:
        if mount.target in seen:
            raise MountRefused(
                path=mount.target,
                origin=origin,
                reason="two mounts have this target",
                hint="Give each its own.",
                operation=MountRefused.AT_TARGET,
            )
        seen.add(mount.target)
    return tuple(sorted(mounts, key=lambda mount: mount.target.split("/")))


def _workspace(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> tuple[Mount, bool]:
    """The workspace's mount, and whether its target is the same path as on the host."""
    found = facts.workspace
    if found is None:
        raise MissingRequired(
            field="workspace.host_path",
            hint="Name the directory to work on: set workspace.host_path.",
        )
    origin = str(config.origin("workspace.host_path"))
    roots = list(facts.allowed_roots)
    if request.trusted_workspace:
        roots.append(found)
    source = checked_source(found, origin, roots, facts, follow_links=request.follow_links, outside=_OUTSIDE)
    mount = Mount(source, workspace_target(config, source), config.workspace.read_only)
    return mount, config.workspace.container_path == SAME_PATH


def check_configured_paths(config: AppConfig) -> None:
    """Refuse what no session on a mounted workspace accepts. Raises InvalidValue, MountRefused."""
    given = config.workspace.host_path or ""
    if given.strip() and not is_anchored(given):
        raise not_absolute(config, "workspace.host_path", given)
    if config.workspace.container_path != SAME_PATH:
        workspace_target(config, given)


def not_absolute(config: AppConfig, field: str, given: str) -> InvalidValue:
    """The error for a configured path that would lead to whatever a repository put into the working directory."""
    return InvalidValue(
        field=field,
        origin=str(config.origin(field)),
        reason=f"{given!r} is not an absolute path",
        hint="A path in the configuration begins with / or ~/; only one typed on the command line may be relative.",
    )


def workspace_target(config: AppConfig, source: str) -> str:
    """Where a workspace that the host has at ``source`` is mounted. Raises MountRefused."""
    text, origin = config.workspace.container_path, config.origin("workspace.container_path")
    if text != SAME_PATH:
        return normal_target(text, f"workspace.container_path, {origin}")
    hint = f'Set workspace.container_path = "{SECOND_NAME}".'
    return normal_target(source, f"{origin}, the same path as on the host", hint)


def _second_name(workspace: Mount, mounts: Sequence[Mount]) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
    """The link ``/workspace``, or a note that says why there is none.

    A link is used instead of a second mount: git and other tools record resolved paths, and a recorded ``/workspace``
    would be wrong on the host. A link also cannot bypass a mount that covers a part of the workspace.
    """
    if SECOND_NAME in (workspace.target, *(mount.target for mount in mounts if mount.source == workspace.source)):
        return None, ()
    over = [mount.target for mount in mounts if within(mount.target, SECOND_NAME)]
    if over:
        return None, (f"inside, {SECOND_NAME} is not the workspace: the mount at {over[0]} is in the way",)
    return (SECOND_NAME, workspace.target), ()


def _refused_linked(request: LaunchRequest, facts: HostFacts) -> str | None:
    """Why the mount policy refuses the git directory that the workspace's ``.git`` file leads to; None if allowed."""
    linked = facts.repository.linked
    if linked is None or linked.reason is not None:
        return None
    found = PathFacts(linked.directory, linked.directory, "directory")
    # An operator who typed the workspace's path chose that worktree, and the directory points back to it.
    roots = [*facts.allowed_roots, *([found] if request.trusted_workspace else [])]
    try:
        normal_target(checked_source(found, "the workspace's .git file", roots, facts), "the workspace's .git file")
    except MountRefused as exc:
        return f"{exc.path} may not be mounted: {exc.reason}"
    return None


def _as_spelled(spelled: str, workspace: Mount, extra: Sequence[Mount]) -> tuple[str, str]:
    """The target of a second mount of the workspace, so that paths through a link are valid inside; else the reason.

    The spelled path is used only as a target: the link's current target is never a source. There is no second mount
    if another mount hides or replaces a part of the workspace, because that part would be visible at the second path.
    """
    try:
        target = normal_target(spelled, "the workspace's path as given")
    except MountRefused as exc:
        return "", exc.reason
    if within(target, workspace.target) or within(workspace.target, target):
        return "", f"its mount at {workspace.target} is in the way"
    for mount in extra:
        if within(mount.target, workspace.target) or within(mount.target, target) or within(target, mount.target):
            return "", f"the mount at {mount.target} is in the way"
    return target, ""


def plan_protected(
    config: AppConfig, facts: HostFacts, workspace: Mount, mounts: Sequence[Mount]
) -> tuple[tuple[Mount, ...], tuple[str, ...]]:
    """Additional mounts, and a note. ``mounts``: all others, including those of one source at two targets.

    The git directory is also mounted over itself, because a mount point cannot be renamed and replaced. An agent can
    still bypass this with a file ``commondir`` in it, which makes git read another configuration.
    """
    if config.workspace.guard != "protect" or workspace.read_only:
        return (), ()
    made = []
    for number, found in enumerate(facts.git_files):
        read_only = number > 0 or found.is_file
        # For a worktree, the files are in the common directory, which may or may not be mounted.
        for mount in mounts:
            if within(found.path, mount.source) and mount.source != found.path and not mount.read_only:
                target = mount.target + found.path[len(mount.source) :]
                made.append(Mount(found.path, target, read_only, found.is_file))
    return tuple(made), (_PROTECTED if any(mount.read_only for mount in made) else _NOTHING,)

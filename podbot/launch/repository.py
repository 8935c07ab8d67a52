"""Mounts that make git work in a sandbox as on the host, and the small files of git that lead to them. Pure.

The mounts are the git directory of a workspace that is a linked worktree or a submodule's checkout, and an empty
directory in place of each linked worktree outside the sandbox, because `git worktree prune` deletes the records of
missing ones. See ADR 0017.

The files are ``.git`` of a linked worktree or a submodule (``gitdir: PATH``), which anyone who can write to the
workspace controls, and ``gitdir`` and ``commondir`` in ``.git/worktrees/<id>``, which contain only a path.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence

from podbot.container_spec import Mount
from podbot.errors import MountRefused
from podbot.frozen import Frozen
from podbot.launch.mount_paths import UNSHOWABLE, normal_target
from podbot.launch.refused_paths import within
from podbot.launch.types import HostFacts, LinkedGit

LONGEST = 4096  # bytes of such a file; also the limit for a path
_PREFIX = b"gitdir: "
# No repository can track a `.git`, and an ordinary checkout has no such name.
_SUBMODULE = re.compile(r"[^/]*\.git/(?:worktrees/[^/]+/)?modules/.")

_SHOWN = 200  # characters that are shown of a path that an agent may have written
EMPTY = "empty-git"  # in podbot's state directory: an empty directory for each workspace
_LONGEST_NAME = 255  # bytes; the kernel's limit. The next one leaves room for the path of the container's root
_LONGEST_TARGET = 4000


def pointed_to(data: bytes) -> str | None:
    """The path that a ``.git`` file names, as git reads it; None for anything else."""
    return one_path(data[len(_PREFIX) :]) if data.startswith(_PREFIX) else None


def one_path(data: bytes) -> str | None:
    """A file's content as one path, without line breaks at its end; None if it is not a path, or cannot be shown."""
    if len(data) > LONGEST:
        return None
    text = os.fsdecode(data.rstrip(b"\r\n"))
    return None if not text or UNSHOWABLE.search(text) else text


def joined(directory: str, path: str) -> str:
    """``path``, which may be relative to ``directory``, as an absolute and normal path. Links are not resolved."""
    return "/" + os.path.normpath(os.path.join(directory, path)).lstrip("/")


def is_submodules(path: str) -> bool:
    """Whether a git directory is where git puts those of submodules; a plain checkout never is."""
    return _SUBMODULE.search(path) is not None


def is_common(path: str) -> bool:
    """Whether a git directory's name allows it to have linked worktrees: ``.git``, ``shop.git``, or a submodule's."""
    return path.endswith(".git") or is_submodules(path)


class LinkedPlan(Frozen):
    """``linked``: the git directory that ``mount`` mounts; both are None when there is none, or it is refused."""

    linked: LinkedGit | None = None
    mount: Mount | None = None
    notes: tuple[str, ...] = ()


def plan_linked(linked: LinkedGit | None, workspace: Mount, mounts: Sequence[Mount], refused: str | None) -> LinkedPlan:
    """The mount of the workspace's git directory. ``refused``: why the mount policy refuses it, if it does.

    The policy has priority over git: if the directory cannot be mounted, git does not work inside, and a note says so.
    """
    if linked is None:
        return LinkedPlan()
    reason, remedy = linked.reason or refused, linked.remedy
    directory = linked.directory
    # A workspace at the host's own path is located relative to it as on the host.
    others = [mount for mount in mounts if (mount.source, mount.target) != (workspace.source, workspace.source)]
    needed = directory or linked.names
    moved = linked.relative and workspace.target != workspace.source
    there = (
        bool(needed)
        and not moved
        and any(within(needed, mount.target) and mount.source == mount.target for mount in others)
    )
    if reason is None and moved:
        reason, remedy = "it is a relative path", "Unset workspace.container_path."
    if reason is None and within(workspace.source, directory):
        reason, remedy = f"{directory} contains the workspace", f"Make {directory} the workspace, and work below it."
    if there and (reason is None or not directory):
        return LinkedPlan()  # the operator's own mount provides it, even if podbot would refuse it
    if reason is None:
        over = [mount.target for mount in others if within(mount.target, directory) or within(directory, mount.target)]
        if over:
            reason, remedy = f"the mount at {over[0]} is in the way", ""
    if reason is not None:
        leads = f", which leads to {linked.names[:_SHOWN]!r}" if linked.names else ""
        text = f"git will not work inside, because podbot does not follow {joined(workspace.source, '.git')}{leads}"
        return LinkedPlan(notes=(f"{text}: {reason}. {remedy}".strip(),))
    return LinkedPlan(linked, Mount(directory, directory, workspace.read_only), (_described(linked, workspace),))


def plan_placeholders(
    facts: HostFacts, workspace: Mount, mounts: Sequence[Mount], avoid: str | None
) -> tuple[tuple[Mount, ...], tuple[str, ...]]:
    """An empty, read-only ``.git`` for each linked worktree outside of ``mounts``; and notes.

    It is a directory, so that git neither works there nor removes or repairs the worktree. ``avoid``: a path that is
    a link inside.
    """
    # One for each workspace: an agent that may mount can make it writable, and could then affect other projects.
    digest = hashlib.sha256(os.fsencode(workspace.source)).hexdigest()[:32]
    source = os.path.join(facts.state_dir, EMPTY, digest)
    placed: list[Mount] = []
    without = facts.repository.more
    for worktree in facts.repository.worktrees:
        target = joined(worktree, ".git")
        if any(within(target, mount.target) for mount in mounts):
            continue  # it is visible through that mount, or missing on the host too
        # A mount point below another placeholder would be created in the directory that all of them share.
        over = [mount.target for mount in (*mounts, *placed) if within(mount.target, target)]
        below = [mount.target for mount in placed if within(target, mount.target)]
        if over or below or (avoid is not None and within(target, avoid)) or not _can_be_target(target):
            without += 1
        else:
            placed.append(Mount(source, target, read_only=True))
    return tuple(placed), (not_placed(without),) if without else ()


def is_placeholder(mount: Mount) -> bool:
    """Whether :func:`plan_placeholders` made the mount."""
    return os.path.basename(os.path.dirname(mount.source)) == EMPTY


def not_placed(number: int) -> str:
    """The note on worktrees that have no placeholder."""
    return (
        f"`git worktree prune` inside would delete the records of {number} of this repository's linked worktrees:"
        " `git worktree lock PATH` on the host prevents that"
    )


def _can_be_target(path: str) -> bool:
    """Whether ``path`` is a valid mount target; one that the kernel cannot create would prevent the start."""
    longest = max(len(os.fsencode(part)) for part in path.split("/"))
    if longest > _LONGEST_NAME or len(os.fsencode(path)) > _LONGEST_TARGET:
        return False
    try:
        normal_target(path, "a linked worktree")
    except MountRefused:
        return False
    return True


def _described(linked: LinkedGit, workspace: Mount) -> str:
    kind = {"worktree": "linked worktree", "submodule": "submodule's checkout"}[linked.kind]
    access = "read" if workspace.read_only else "change"
    return (
        f"also mounting {linked.directory}, because the workspace is a {kind} of it: the agent can {access}"
        " everything in that directory, including that repository's branches, configuration and hooks"
    )

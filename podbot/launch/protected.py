"""workspace.guard = protect: which parts of a workspace are mounted read-only. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from podbot.config.models import AppConfig
from podbot.launch.refused_paths import within
from podbot.launch.types import HostFacts, Mount

_PROTECTED = (
    "inside, git's configuration and hooks are read-only (workspace.guard = protect): `git config`, `git push -u` and"
    " tools that install hooks fail there"
)
_NOTHING = "workspace.guard = protect has nothing to protect: the workspace has no git directory that podbot mounts"


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

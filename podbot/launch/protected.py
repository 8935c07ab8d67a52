"""What of a workspace is mounted read-only for those who want more of the guard than a report. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from podbot.config.models import AppConfig
from podbot.launch.refused_paths import within
from podbot.launch.types import HostFacts, Mount

_TOLD = (
    "inside, git's configuration and hooks are read-only (workspace.guard = protect): `git config`, `git push -u` and"
    " what installs hooks fail there"
)
_NOTHING = "workspace.guard = protect has nothing to protect: the workspace has no git directory that podbot mounts"


def plan_protected(
    config: AppConfig, facts: HostFacts, workspace: Mount, mounts: Sequence[Mount]
) -> tuple[tuple[Mount, ...], tuple[str, ...]]:
    """More mounts, and a note. ``mounts``: all others, those of one source at two targets included.

    The git directory itself is mounted over itself as well: what is a mount cannot be renamed, and another put in its
    place. A file ``commondir`` in it goes round all this: git then reads another configuration.
    """
    if config.workspace.guard != "protect" or workspace.read_only:
        return (), ()
    made = []
    for number, found in enumerate(facts.git_files):
        read_only = number > 0 or found.is_file
        # Of a worktree, the files of the common directory are where that is mounted, if it is.
        for mount in mounts:
            if within(found.path, mount.source) and mount.source != found.path and not mount.read_only:
                target = mount.target + found.path[len(mount.source) :]
                made.append(Mount(found.path, target, read_only, found.is_file))
    return tuple(made), (_TOLD if any(mount.read_only for mount in made) else _NOTHING,)

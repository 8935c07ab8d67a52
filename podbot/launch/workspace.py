"""Plans a sandbox's workspace: a mounted directory of the host, a clone inside, or none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from podbot.config.models import AppConfig
from podbot.container_spec import Mount
from podbot.frozen import Frozen
from podbot.launch.mounts import mount_notes, plan_clone_mounts, plan_extra_mounts, plan_mounts
from podbot.launch.types import HostFacts, LaunchRequest, LinkedGit, PathFacts

if TYPE_CHECKING:
    from podbot.launch.resources.clone import ClonePlan


class WorkspacePlan(Frozen):
    """``directory``: its path inside. ``code``: its path on the host if it is mounted, inside if it is cloned. Both are
    empty for a sandbox without a workspace, whose commands start in the image's working directory.

    ``mounts``: all mounts for the operator. ``places``: directories that git inside must trust. ``trusted``: podbot
    declares the directory as trusted to the agent. See :class:`podbot.launch.mounts.MountPlan` for the rest.
    """

    directory: str
    code: str
    mounts: tuple[Mount, ...]
    places: tuple[str, ...]
    notes: tuple[str, ...]
    trusted: bool
    mount: Mount | None = None
    linked: LinkedGit | None = None
    link: tuple[str, str] | None = None
    empty: tuple[Mount, ...] = ()
    clone: ClonePlan | None = None


def plan_workspace(
    config: AppConfig, request: LaunchRequest, facts: HostFacts, clone: ClonePlan | None
) -> WorkspacePlan:
    """Plan the workspace. Raises MissingRequired without one, InvalidValue for a malformed mount, and MountRefused."""
    if clone is not None:
        mounts = plan_clone_mounts(config, request, facts, clone.directory)
        return WorkspacePlan(
            directory=clone.directory,
            code=clone.directory,
            mounts=mounts,
            places=(clone.directory,),
            notes=mount_notes(mounts),
            trusted=True,
            clone=clone,
        )
    if config.workspace.source == "none":
        mounts = plan_extra_mounts(config, request, facts)
        return WorkspacePlan(directory="", code="", mounts=mounts, places=(), notes=mount_notes(mounts), trusted=False)
    mounted = plan_mounts(config, request, facts)
    assert facts.workspace is not None  # noqa: S101 - there are no mounts without one
    return WorkspacePlan(
        directory=mounted.workspace.target,
        code=mounted.workspace.source,
        mounts=mounted.mounts,
        places=mounted.places,
        notes=(*_link_note(facts.workspace, facts), *mounted.notes),
        trusted=not facts.settings,
        mount=mounted.workspace,
        linked=mounted.linked,
        link=mounted.link,
        empty=mounted.empty,
    )


def _link_note(found: PathFacts, facts: HostFacts) -> tuple[str, ...]:
    """An agent that ran there before can have planted the link: the operator is to see where it leads."""
    given = facts.home + found.given[1:] if found.given.startswith("~/") else found.given
    if os.path.normpath(os.path.join(facts.cwd, given)) == found.resolved:
        return ()
    return (f"{found.given} leads through a link to {found.resolved}",)

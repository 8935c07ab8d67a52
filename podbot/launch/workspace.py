"""The code that a sandbox works on: a directory of the host, mounted, or a clone inside."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podbot.config.models import AppConfig
from podbot.launch.mounts import mount_notes, plan_clone_mounts, plan_mounts
from podbot.launch.types import HostFacts, LaunchRequest, LinkedGit, Mount

if TYPE_CHECKING:
    from podbot.launch.resources.clone import ClonePlan


@dataclass(frozen=True)
class WorkspacePlan:
    """``directory``: where it is inside. ``code``: where it is on the host when mounted, inside when cloned.

    ``mounts``: all that the operator asked for. ``places``: what git inside is to trust. ``trusted``: podbot answers
    for the operator that an agent may trust it. See :class:`podbot.launch.mounts.MountPlan` for the rest.
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
    """Raises MissingRequired without a workspace, InvalidValue for a malformed mount, MountRefused."""
    if clone is not None:
        mounts = plan_clone_mounts(config, facts, clone.directory)
        return WorkspacePlan(
            directory=clone.directory,
            code=clone.directory,
            mounts=mounts,
            places=(clone.directory,),
            notes=mount_notes(mounts),
            trusted=True,
            clone=clone,
        )
    mounted = plan_mounts(config, request, facts)
    return WorkspacePlan(
        directory=mounted.workspace.target,
        code=mounted.workspace.source,
        mounts=mounted.mounts,
        places=mounted.places,
        notes=(*_link_note(facts), *mounted.notes),
        trusted=not facts.settings,
        mount=mounted.workspace,
        linked=mounted.linked,
        link=mounted.link,
        empty=mounted.empty,
    )


def _link_note(facts: HostFacts) -> tuple[str, ...]:
    """An agent that ran there before can have planted the link: the operator is to see where it leads."""
    found = facts.workspace
    if found is None:
        return ()
    given = facts.home + found.given[1:] if found.given.startswith("~/") else found.given
    if os.path.normpath(os.path.join(facts.cwd, given)) == found.resolved:
        return ()
    return (f"{found.given} leads through a link to {found.resolved}",)

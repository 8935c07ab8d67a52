"""Whether a host directory may be mounted: by what it is, where it lies, and the links that led to it. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence

from podbot.errors import MountRefused
from podbot.launch.refused_paths import refusal, refused_sources, refused_unless_named, within
from podbot.launch.targets import shown, unshowable
from podbot.launch.types import HostFacts, LinkFacts, PathFacts

_ANOTHER = "Choose a project directory instead."
_ROOTS = "Type it on the command line (`--workspace PATH`), or add its parent to workspace.allowed_roots."


def checked_source(
    found: PathFacts, origin: str, roots: Sequence[PathFacts], facts: HostFacts, *, follow_links: bool | None = None
) -> str:
    """The path to mount. Raises MountRefused, with a remedy.

    ``roots``: in one of them it must lie. ``follow_links``: whether the operator asked for a link that leads out of
    its repository; None: no option asks for that here.
    """
    path = found.resolved
    reason = unshowable(found.given) or unshowable(path) or _not_a_directory(found)
    reason, hint = reason or refusal(path, refused_sources(facts, path)), _ANOTHER
    if reason is None and (reason := refused_unless_named(facts, path)):
        hint = f'If it is a project, name it in your configuration: workspace.allowed_roots = ["{path}"].'
    if reason is None and not follow_links and (link := leading_out(found, facts)):
        reason = f"the link {shown(link.path)} leads out of {shown(_scope(link, facts))}, to {shown(link.leads_to)}"
        option = "" if follow_links is None else ", or add --follow-links"
        hint = f"An agent can have made that link. If you mean what it leads to, write {path}{option}."
    if reason is None and not any(root.kind == "directory" and within(path, root.resolved) for root in roots):
        reason, hint = "it lies in none of workspace.allowed_roots", _ROOTS
    if reason is not None:
        text = shown(path)
        if found.given not in (path, path + "/"):
            text += f", from {shown(found.given)}"
        raise MountRefused(path=text, origin=origin, reason=reason, hint=hint)
    return path


def leading_out(found: PathFacts, facts: HostFacts) -> LinkFacts | None:
    """The first link that an agent can have made and that has led to what the agent was not given; None without one.

    What an agent made lies in what could once be a workspace: a link in a home directory itself, or in ``/``, does
    not. It was given the repository around the link at most, and the link's own directory where there is none.
    """
    for link in found.links:
        if not _never_given(os.path.dirname(link.path), facts) and not within(found.resolved, _scope(link, facts)):
            return link
    return None


def _scope(link: LinkFacts, facts: HostFacts) -> str:
    # A home that is a repository itself, as some keep their settings, is no project.
    if link.repository is not None and not _never_given(link.repository, facts):
        return link.repository
    return os.path.dirname(link.path)


def _never_given(directory: str, facts: HostFacts) -> bool:
    return refusal(directory, refused_sources(facts, directory)) is not None


def _not_a_directory(found: PathFacts) -> str | None:
    return {
        "directory": None,
        "missing": "there is no such directory",
        "other": "it is not a directory",
        "unreadable": "this user may not open it",
    }[found.kind]

"""Which paths may be mounted, and at which paths inside a sandbox. Pure.

A host directory is judged by its kind, its location, and the links that lead to it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from podbot.errors import MountRefused
from podbot.launch.refused_paths import refusal, refused_sources, refused_unless_named, reserved_targets, within
from podbot.launch.types import HostFacts, LinkFacts, PathFacts

_HINT = "Choose another target inside the sandbox, such as /srv/data."
# C0 and C1 controls, line separators, bidirectional overrides, and surrogates (bytes that are not UTF-8).
# The engine accepts a newline in a path (measured), but terminals and log lines do not, nor JSON a surrogate.
UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_ANOTHER = "Choose a project directory instead."
_REMEDIES = {
    "missing": "Check the path.",
    "other": "Name the directory that it lies in. A single file is copied into a session.",
    "circle": "Correct the links, or name the directory itself.",
}
_ENGINE_SOCKETS = ("docker.sock", "podman.sock", "containerd.sock")
_NESTED = "Podman runs inside a sandbox without it: see the page how-to/nested-containers of the documentation."
_ROOTS = "Add it or a parent of it to workspace.allowed_roots."


def normal_target(text: str, origin: str, hint: str = _HINT) -> str:
    """``text`` as an absolute path inside the sandbox without repeated slashes. Raises MountRefused with ``hint``."""
    reason = unshowable(text)
    if reason is None and not text.startswith("/"):
        reason = "a target inside the sandbox is an absolute path"
    parts = [part for part in text.split("/") if part]
    if reason is None and (".." in parts or "." in parts):
        reason = "a target must not contain '.' or '..'"
    target = "/" + "/".join(parts)
    reason = reason or refusal(target, reserved_targets())
    if reason is not None:
        raise MountRefused(
            path=shown(text),
            origin=origin,
            reason=reason,
            hint=hint,
            operation=MountRefused.AT_TARGET,
        )
    return target


def unshowable(path: str) -> str | None:
    return "its name has a control character, or is not UTF-8" if UNSHOWABLE.search(path) else None


def shown(path: str) -> str:
    return ascii(path)[1:-1] if UNSHOWABLE.search(path) else path


def checked_source(
    found: PathFacts,
    origin: str,
    roots: Sequence[PathFacts],
    facts: HostFacts,
    *,
    follow_links: bool | None = None,
    another: str = _ANOTHER,
    outside: str = _ROOTS,
) -> str:
    """The path to mount. Raises MountRefused, with a remedy.

    It must be inside one of ``roots``. ``follow_links``: whether the operator allows a link that leads out of its
    repository; None: there is no option for that here. ``another``: what to do about a directory that is refused;
    ``outside``: about one that is in none of ``roots``.
    """
    path = found.resolved
    reason = unshowable(found.given) or unshowable(path) or _not_a_directory(found)
    reason, hint = reason or refusal(path, refused_sources(facts, path)), _REMEDIES.get(found.kind, another)
    if found.kind in ("missing", "other") and os.path.basename(path) in _ENGINE_SOCKETS:
        reason, hint = "whoever reaches an engine's socket controls this host", _NESTED
    if reason is None and (reason := refused_unless_named(facts, path)):
        hint = f'If it is a project, name it in your configuration: workspace.allowed_roots = ["{path}"].'
    if reason is None and not follow_links and (link := leading_out(found, facts)):
        reason = _led_out(link, found, facts)
        option = "" if follow_links is None else ", or set follow_links"
        meant = "its target" if link.leads_to == path else "this directory"
        hint = f"An agent could have made that link. If you mean {meant}, write {path}{option}."
    if reason is None and not any(root.kind == "directory" and within(path, root.resolved) for root in roots):
        reason, hint = "it is not inside any of workspace.allowed_roots", outside
    if reason is not None:
        text = shown(path)
        if found.kind == "missing" and (plain := _without_secret(found.given)) != found.given:
            text = shown(plain)
        elif found.given not in (path, path + "/"):
            text += f", from {shown(found.given)}"
        raise MountRefused(path=text, origin=origin, reason=reason, hint=hint)
    return path


def leading_out(found: PathFacts, facts: HostFacts) -> LinkFacts | None:
    """The first link that an agent could have made and that leads out of what the agent could access, or None.

    An agent can only have made links inside a possible workspace, so not directly in a home directory or in ``/``. It
    had access to the repository around the link at most, or to the link's own directory where there is none.
    """
    for link in found.links:
        if not _never_given(os.path.dirname(link.path), facts) and not within(found.resolved, _scope(link, facts)):
            return link
    return None


def _led_out(link: LinkFacts, found: PathFacts, facts: HostFacts) -> str:
    scope = _scope(link, facts)
    if within(link.leads_to, scope):  # and ".." behind the link leads out
        return f"behind the link {shown(link.path)} the path leads out of {shown(scope)}, to {shown(found.resolved)}"
    return f"the link {shown(link.path)} leads out of {shown(scope)}, to {shown(link.leads_to)}"


def _scope(link: LinkFacts, facts: HostFacts) -> str:
    # A home that is a repository itself, as some people keep their settings, is not a project.
    if link.repository is not None and not _never_given(link.repository, facts):
        return link.repository
    return os.path.dirname(link.path)


def _never_given(directory: str, facts: HostFacts) -> bool:
    return refusal(directory, refused_sources(facts, directory)) is not None


def _without_secret(given: str) -> str:
    from podbot.config.secret_shapes import masked

    return masked(given)


def _not_a_directory(found: PathFacts) -> str | None:
    return {
        "directory": None,
        "missing": "there is no such directory",
        "other": "it is not a directory, and only directories are mounted",
        "circle": "its symbolic links lead in a circle",
        "unreadable": "this user may not open it",
    }[found.kind]

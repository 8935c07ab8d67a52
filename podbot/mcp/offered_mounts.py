"""What the command line offers to copy into sandboxes: ``--mount HOST[:PATH][:GLOB]``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from podbot.errors import ToolValidationError, UsageError
from podbot.sections.host_mounts import HostMount, MountPlan
from podbot.sections.host_tree import look_at
from podbot.sections.mount_plan import plan_mounts
from podbot.tools.paths import VfsPath, invalid, logical_path, parse_path

_COMMAND = "podbot mcp"


@dataclass(frozen=True, slots=True)
class OfferedMount:
    """A file or directory of this host that a client may have copied into a sandbox, and nothing else of the host.

    ``name``: what clients call it, which is where it is copied to: ``/workspace`` or below. ``root``: the only
    directory that anything is read from.
    """

    name: str
    mount: HostMount
    root: str


def offered_mounts(words: Iterable[str], home: str) -> tuple[OfferedMount, ...]:
    """The mounts of a command line. ``home``: for a leading ``~``, which an editor's settings do not expand.

    Raises UsageError for one that does not exist, for two in one place, and for what cannot be copied: a name that no
    tool accepts, a file of one mount where another mount has something.
    """
    offered: list[OfferedMount] = []
    for word in words:
        found = offered_mount(word, home)
        if any(found.name == other.name for other in offered):
            hint = "Give each its own place: --mount HOST:/PATH."
            raise _wrong(word, f"another one is already copied to {found.name}", hint)
        offered.append(found)
    try:
        planned(offered)
    except ToolValidationError as error:
        raise UsageError(command=_COMMAND, reason=f"--mount: {error.message}") from error
    return tuple(offered)


def planned(mounts: Sequence[OfferedMount]) -> MountPlan:
    """What is copied for them, as the files are now. Raises ToolValidationError."""
    roots = tuple(dict.fromkeys(mount.root for mount in mounts))
    return plan_mounts([mount.mount for mount in mounts], roots, look_at)


def offered_mount(word: str, home: str) -> OfferedMount:
    """One mount of a command line. A directory without a PATH is the workspace itself, a file has its own name there.

    Raises UsageError.
    """
    host, *rest = word.split(":")
    place = rest.pop(0) if rest and rest[0].startswith("/") else None
    globs = tuple(rest)
    if not host or len(globs) > 1 or "" in globs:
        raise _wrong(word, "a mount is HOST, HOST:/PATH, HOST:GLOB or HOST:/PATH:GLOB")
    path = os.path.realpath(home + host[1:] if host == "~" or host.startswith("~/") else host)
    if not os.path.exists(path):
        hint = "A path with a colon cannot be mounted: mount its directory." if ":" in word else "Check the path."
        raise _wrong(word, f"there is no file or directory {path}", hint)
    if path == "/":
        raise _wrong(word, "it is the whole file system of this host")
    is_directory = os.path.isdir(path)
    target = _target(word, place, () if is_directory else (os.path.basename(path),))
    if not target and not is_directory:
        raise _wrong(word, "a file cannot take the place of the workspace")
    root = path if is_directory else os.path.dirname(path)
    mount = HostMount(host_path=path, mount_path=target or "/", include_glob=globs)
    return OfferedMount(logical_path(target), mount, root)


def chosen(offered: Sequence[OfferedMount], names: Sequence[str] | None) -> tuple[OfferedMount, ...]:
    """The mounts of these names; all of them for None. Raises ToolValidationError."""
    if names is None:
        return tuple(offered)
    known = {mount.name: mount for mount in offered}
    for name in names:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise invalid("mounts", name, f"this server offers {listed}", "Only its command line can offer more.")
    return tuple(known[name] for name in dict.fromkeys(names))


def _target(word: str, place: str | None, default: VfsPath) -> VfsPath:
    try:
        return parse_path(logical_path(default) if place is None else place, "PATH")
    except ValueError as error:
        raise _wrong(word, str(error)) from error


def _wrong(word: str, reason: str, hint: str = "") -> UsageError:
    return UsageError(command=_COMMAND, reason=f"--mount {word}: {reason}", hint=hint)

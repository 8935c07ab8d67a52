"""Copies of host files in a workspace: what is asked for, what the host has, and what is copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from podbot.tools.paths import VfsPath

PATH_BYTES = 3000  # of a copied file's path below the workspace; the kernel takes 4,095 with the workspace's own
SEGMENTS = 64  # of a copied file's path below the workspace; the files worker takes no more


@dataclass(frozen=True, slots=True)
class HostMount:
    """A file or directory of the host that is copied into the workspace before its first use.

    ``host_path``: below one of the allowed roots, which are tried in turn. ``mount_path``: where it is put, by default
    the same path; as text or as segments, ``"/"`` for the workspace itself. ``include_glob``: the only files that are
    copied; ``exclude_glob``: files and directories that are not. A pattern without a ``/`` is for names in any
    directory, one with a ``/`` for paths below ``host_path``. ``max_bytes``: of all its files together.
    ``follow_symlinks``: copy what a link leads to, if that lies below the same allowed root. Links are never copied.
    """

    host_path: str
    mount_path: str | Sequence[str] | None = None
    include_glob: tuple[str, ...] = ()
    exclude_glob: tuple[str, ...] = ()
    max_bytes: int | None = None
    follow_symlinks: bool = False


def checked_mounts(mounts: object) -> tuple[HostMount, ...]:
    """``mounts`` as a tuple. Raises TypeError if it is another thing than a list of them."""
    if isinstance(mounts, Sequence):
        found = tuple(mount for mount in mounts if isinstance(mount, HostMount))
        if len(found) == len(mounts):
            return found
    raise TypeError('mounts is a list of podbot.tools.HostMount. Write [HostMount("/srv/data", "data")].')


@dataclass(frozen=True, slots=True)
class HostEntry:
    """Something below a mount's host path. ``path``: from there on, through links; ``source``: below the allowed root.

    ``kind``: "link" for one that is not followed, of which ``leads`` says where it leads; "other" for a FIFO, socket or
    device; "unreadable" for a directory that cannot be listed, "denied" for a file that may not be read, "deep" for a
    directory that is not looked into. ``mtime_ns``, ``ctime_ns``: of files, 0 for others.
    """

    path: VfsPath
    source: VfsPath
    kind: Literal["file", "directory", "link", "other", "unreadable", "denied", "deep"]
    size: int = 0
    mode: int = 0
    leads: Literal["", "inside", "outside", "nowhere", "up"] = ""
    mtime_ns: int = 0
    ctime_ns: int = 0


@dataclass(frozen=True, slots=True)
class HostTree:
    """What is at a mount's host path below ``root``. ``source``: its path without links.

    ``kind``: "outside" if links lead out of the root. ``entries``: of a directory, parents before what is in them; of a
    file, itself with an empty path.
    """

    root: str
    source: VfsPath
    kind: Literal["file", "directory", "other", "outside"]
    entries: tuple[HostEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class MountQuestion:
    """What planning asks of the host: the tree at ``path`` below ``root``, without directories that ``excluded`` names.

    ``follow``: list what links lead to, in their places.
    """

    root: str
    path: VfsPath
    follow: bool
    excluded: Callable[[VfsPath], bool]


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file to copy from ``source`` below ``root`` to ``target`` below the workspace.

    ``size``, ``mode``, ``mtime_ns``, ``ctime_ns``: when it was found, which is before it is copied.
    """

    root: str
    source: VfsPath
    target: VfsPath
    size: int
    mode: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class HostMountPreview:
    """A mount as a prompt shows it.

    ``mount_path``: below the workspace, empty for itself. ``entries``: the first 20 names in it, directories with a
    ``/``; ``more``: how many there are besides. ``notes``: what was skipped and why.
    """

    host_path: str
    resolved_host: str
    mount_path: str
    is_directory: bool
    entries: tuple[str, ...]
    more: int
    files: int
    bytes_copied: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MountPlan:
    """All that is to be copied. ``directories``: parents first; a file's own directory need not be among them."""

    files: tuple[PlannedFile, ...] = ()
    directories: tuple[VfsPath, ...] = ()
    previews: tuple[HostMountPreview, ...] = ()


def more_text(count: int) -> str:
    """What stands for the rest of a list that is shown in part."""
    return f"… (+{count:,} more)"

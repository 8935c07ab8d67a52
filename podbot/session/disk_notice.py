"""Notices for the operator: a session starts on a file system that is nearly full, or fails on one that is full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from podbot.events import Event
from podbot.machine import Disk, disk

if TYPE_CHECKING:  # `podbot exec` looks at disks without planning's modules
    from podbot.container_spec import Mount

LOW_MEGABYTES = 1000  # with less free space, sandboxes soon fail to write
FULL_MEGABYTES = 16  # programs fail before the last block: tools write caches and lock files of several megabytes
_MEGABYTE = 1_000_000

Look = Callable[[str], Disk | None]


def low_disks(
    workspace: Mount | None, storage: str, *, look: Look = disk, low_megabytes: int = LOW_MEGABYTES
) -> Iterator[Event]:
    """A notice for each file system that runs low. ``storage`` is the container's own directory, or empty.

    What an agent writes is not limited: the workspace cannot have a quota, nor can the engine's storage with most
    drivers and file systems.
    """
    for what, found in _with_less(written(workspace), storage, look, low_megabytes):
        place = f"the file system of {what} ({found.path})"
        if found.inodes == 0:
            text = f"no inode is free on {place}, so no file can be made there"
        else:
            text = f"{_free(found)} on {place}, and a session can fill it"
        yield Event("notice", "disk.low", text, _fields(found))


def full_disks(workspace: str, storage: str, *, look: Look = disk) -> Iterator[Event]:
    """A warning for each file system that is full when a session's agent, or a command, has failed.

    ``workspace``: see :func:`written`. ``storage``: see :func:`low_disks`.
    """
    for what, found in _with_less(workspace, storage, look, FULL_MEGABYTES):
        place = f"the file system of {what} ({found.path})"
        if found.inodes == 0 and found.free >= FULL_MEGABYTES * _MEGABYTE:
            text = f"out of inodes: no file can be made on {place}, although {_free(found)}"
        else:
            text = f"the disk is full: {_free(found)} on {place}"
        yield Event("warning", "disk.full", text, _fields(found))


def written(workspace: Mount | None) -> str:
    """The directory of this host that a session's commands can write to; empty without one."""
    return "" if workspace is None or workspace.read_only else workspace.source


def _free(found: Disk) -> str:
    return f"{found.free // _MEGABYTE} MB are free"


def _fields(found: Disk) -> dict[str, object]:
    return {"path": found.path, "free": found.free, "inodes": found.inodes}


def _with_less(workspace: str, storage: str, look: Look, megabytes: int) -> Iterator[tuple[str, Disk]]:
    """The file systems that a session writes to and that have less free space, or no inode, each once, and what is on
    them.
    """
    places = {storage: "the sandbox's own files"} if storage else {}
    if workspace:
        places[workspace] = "the workspace"
    reported: set[int] = set()
    for path, what in places.items():
        found = look(path)
        if found is None or found.device in reported:
            continue
        if found.free < megabytes * _MEGABYTE or found.inodes == 0:
            reported.add(found.device)
            yield what, found

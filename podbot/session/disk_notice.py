"""Notices for the operator: a session starts on a file system that is nearly full, or fails on one that is full."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from podbot.events import Event
from podbot.launch.types import Mount
from podbot.machine import Disk, disk

LOW_MEGABYTES = 1000  # with less free space, sandboxes soon fail to write
FULL_MEGABYTES = 16  # programs fail before the last block: tools write caches and lock files of several megabytes
_MEGABYTE = 1_000_000


def low_disks(
    workspace: Mount | None,
    storage: str,
    *,
    look: Callable[[str], Disk | None] = disk,
    low_megabytes: int = LOW_MEGABYTES,
) -> Iterator[Event]:
    """A notice for each file system that runs low. ``storage`` is the container's own directory, or empty.

    What an agent writes is not limited: the workspace cannot have a quota, nor can the engine's storage with most
    drivers and file systems.
    """
    for what, found in _with_less(workspace, storage, look, low_megabytes):
        text = f"{found.free // _MEGABYTE} MB are free on the file system of {what} ({found.path})"
        text += ", and a session can fill it"
        yield Event("notice", "disk.low", text, {"path": found.path, "free": found.free})


def full_disks(workspace: Mount | None, storage: str, *, look: Callable[[str], Disk | None] = disk) -> Iterator[Event]:
    """A warning for each file system that is full when a session's agent has failed. Arguments: see low_disks."""
    for what, found in _with_less(workspace, storage, look, FULL_MEGABYTES):
        text = f"the disk is full: {found.free // _MEGABYTE} MB are free on the file system of {what} ({found.path})"
        yield Event("warning", "disk.full", text, {"path": found.path, "free": found.free})


def _with_less(
    workspace: Mount | None, storage: str, look: Callable[[str], Disk | None], megabytes: int
) -> Iterator[tuple[str, Disk]]:
    """The file systems that a session writes to and that have less free space, each once, and what is on them."""
    places = {storage: "the sandbox's own files"} if storage else {}
    if workspace is not None and not workspace.read_only:
        places[workspace.source] = "the workspace"
    reported: set[int] = set()
    for path, what in places.items():
        found = look(path)
        if found is not None and found.device not in reported and found.free < megabytes * _MEGABYTE:
            reported.add(found.device)
            yield what, found

"""Notices for the operator when a session starts on a file system that is nearly full."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from podbot.events import Event
from podbot.launch.types import Mount
from podbot.machine import Disk, disk

LOW_MEGABYTES = 1000  # with less free space, sandboxes soon fail to write
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
    places = {storage: "the sandbox's own files"} if storage else {}
    if workspace is not None and not workspace.read_only:
        places[workspace.source] = "the workspace"
    reported: set[int] = set()
    for path, what in places.items():
        found = look(path)
        if found is None or found.device in reported or found.free >= low_megabytes * _MEGABYTE:
            continue
        reported.add(found.device)
        text = f"{found.free // _MEGABYTE} MB are free on the file system of {what} ({path}), and a session can fill it"
        yield Event("notice", "disk.low", text, {"path": path, "free": found.free})

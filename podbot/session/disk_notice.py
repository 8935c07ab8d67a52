"""What the operator is told when a session starts on a file system that is nearly full."""

from __future__ import annotations

from collections.abc import Iterator

from podbot.events import Event
from podbot.launch.types import Mount
from podbot.machine import disk

LOW_MEGABYTES = 1000  # below which sandboxes soon have no room
_MEGABYTE = 1_000_000


def low_disks(workspace: Mount | None, storage: str) -> Iterator[Event]:
    """A notice for each file system that runs low. ``storage``: the container's own directory, or empty.

    There is no limit on what an agent writes: neither the workspace nor, with most drivers and file systems, the
    engine's storage can have a quota.
    """
    places = {storage: "the sandbox's own files"} if storage else {}
    if workspace is not None and not workspace.read_only:
        places[workspace.source] = "the workspace"
    told: set[int] = set()
    for path, what in places.items():
        found = disk(path)
        if found is None or found.device in told or found.free >= LOW_MEGABYTES * _MEGABYTE:
            continue
        told.add(found.device)
        text = f"{found.free // _MEGABYTE} MB are free where {what} lies ({path}), and a session can fill them"
        yield Event("notice", "disk.low", text, {"path": path, "free": found.free})

"""Plans and copies of real directories."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from podbot.sections.host_mounts import HostMount, MountPlan
from podbot.sections.host_tree import look_at
from podbot.sections.mount_plan import plan_mounts

BINARY = b"\x00binary\xff"
SCRIPT = b"#!/bin/sh\n"


def plan(root: Path, host_path: str = "src", **options: Any) -> MountPlan:
    """What one mount copies, into the workspace itself."""
    return plan_mounts([HostMount(host_path, mount_path="/", **options)], [str(root)], look_at)


def content(directory: Path) -> dict[str, bytes | None]:
    """Each path below, with the bytes of a file; None for a directory. A link or anything else is an error."""
    found: dict[str, bytes | None] = {}
    for top, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = Path(top, name)
            assert not path.is_symlink()
            assert path.is_file() == (name in files)
            found[str(path.relative_to(directory))] = path.read_bytes() if name in files else None
    return found

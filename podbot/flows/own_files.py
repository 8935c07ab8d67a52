"""Writing the files of podbot's own that a sandbox mounts: git's configuration and the askpass helper."""

from __future__ import annotations

import os
from collections.abc import Mapping

from podbot.atomic import replace_file
from podbot.launch import askpass, gitconfig
from podbot.launch.types import LaunchPlan
from podbot.places import private_dir


def place_files(plan: LaunchPlan) -> None:
    """Put each text of the plan where ``plan.container.files`` mounts it from. Written only when it differs."""
    texts: Mapping[str, tuple[str, int]] = {
        gitconfig.TARGET: (plan.gitconfig, 0o644),
        askpass.TARGET: (plan.askpass, 0o755),
    }
    for mount in plan.container.files:
        if mount.target in texts:
            text, mode = texts[mount.target]
            data = text.encode("utf-8", "surrogateescape")  # git's own bytes, whatever they are
            if not _is_there(mount.source, data, mode):
                private_dir(os.path.dirname(mount.source))
                replace_file(mount.source, data, operation="write a file that the sandbox mounts", mode=mode)


def _is_there(path: str, data: bytes, mode: int) -> bool:
    try:
        with open(path, "rb") as file:
            right = os.fstat(file.fileno()).st_mode & 0o777 == mode and file.read(len(data) + 1) == data
    except OSError:
        return False
    return right and not os.path.islink(path)

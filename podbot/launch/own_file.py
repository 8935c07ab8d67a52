"""Files that podbot writes on the host and mounts read-only: each session has its own.

Who may read a file can hold a lease on it, and an open of that file then waits for up to 45 s: with one file for all
sessions, an agent stalled every other start, and git in every other sandbox (measured). So none is shared, and podbot
never opens one again.
"""

from __future__ import annotations

import os

from podbot.launch.types import HostFacts, Keep, Mount

DIRECTORY = "files"  # in the session's own directory
KEPT = "kept"  # in podbot's state directory


def files_directory(keep: Keep, session: str, runtime_dir: str, facts: HostFacts) -> str:
    """Where a session's files are. A container that may be kept is to find them after a reboot as well."""
    if keep == "never":
        return os.path.join(runtime_dir, DIRECTORY)
    return kept_directory(facts.state_dir, session, facts.created)


def kept_directory(state_dir: str, session: str, created: str) -> str:
    """``created``: as the container's label has it; another engine may have a container of the same name."""
    stamp = "".join(char for char in created if char.isascii() and char.isalnum())
    return os.path.join(state_dir, KEPT, f"{session}-{stamp}")


def own_file_mount(directory: str, target: str) -> Mount:
    """Where a text lies and where it goes; no two targets end alike."""
    return Mount(os.path.join(directory, os.path.basename(target)), target, read_only=True)

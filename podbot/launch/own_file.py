"""Files that podbot writes on the host and mounts read-only; each session has its own copies.

A process that may read a file can hold a lease on it, and then opening that file blocks for up to 45 s. With one file
for all sessions, an agent blocked every other start, and git in every other sandbox (measured). So no file is shared,
and podbot never opens one again.
"""

from __future__ import annotations

import os

from podbot.container_spec import Mount
from podbot.launch.types import HostFacts, Keep

DIRECTORY = "files"  # in the session's own directory
KEPT = "kept"  # in podbot's state directory
LOG = "log"  # beside the files


def files_directory(keep: Keep, session: str, runtime_dir: str, facts: HostFacts) -> str:
    """Where a session's files are. Those of a container that may be kept must survive a reboot."""
    if keep == "never":
        return os.path.join(runtime_dir, DIRECTORY)
    return kept_directory(facts.state_dir, session, facts.created)


def kept_directory(state_dir: str, session: str, created: str) -> str:
    """``created``: from the container's label, because another engine may have a container of the same name."""
    return os.path.join(state_dir, KEPT, stamped(session, created))


def stamped(session: str, created: str) -> str:
    """A directory's name that differs between sessions of one name."""
    return f"{session}-{''.join(char for char in created if char.isascii() and char.isalnum())}"


def log_directory(files_dir: str) -> str:
    """The directory of a session's log. ``files_dir``: that of its files, with which it is removed."""
    return os.path.join(files_dir, LOG)


def own_file_mount(directory: str, target: str) -> Mount:
    """The mount of one file, whose name is the target's last component; those must differ."""
    return Mount(os.path.join(directory, os.path.basename(target)), target, read_only=True)

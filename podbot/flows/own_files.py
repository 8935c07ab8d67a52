"""Writing the files that podbot makes for a sandbox: git's configuration, the askpass helper, settings, seccomp."""

from __future__ import annotations

import os
from collections.abc import Mapping

from podbot.atomic import replace_file
from podbot.errors import UnsafeDirectory
from podbot.events import Emit, Event
from podbot.flows.sessions import remove_directory
from podbot.launch import askpass, gitconfig
from podbot.launch.repository import is_placeholder
from podbot.launch.seccomp import profile
from podbot.launch.types import LaunchPlan
from podbot.places import is_own_directory, private_dir


def place_files(plan: LaunchPlan, emit: Emit) -> None:
    """Put each text of the plan where ``plan.container`` has the engine look for it. Written only when it differs."""
    for path in sorted({mount.source for mount in plan.container.files if is_placeholder(mount)}):
        _make_empty(path, emit)
    texts: Mapping[str, tuple[str, int]] = {
        gitconfig.TARGET: (plan.gitconfig, 0o644),
        askpass.TARGET: (plan.askpass, 0o755),
        **{target: (text, 0o644) for target, text in plan.agent_files.items()},
        **({mount.target: (text, 0o644) for mount, text in plan.history.texts.items()} if plan.history else {}),
    }
    for mount in plan.container.files:
        if mount.target in texts:
            text, mode = texts[mount.target]
            data = text.encode("utf-8", "surrogateescape")  # git's own bytes, whatever they are
            _place(mount.source, data, mode, "write a file that the sandbox mounts")
    if plan.container.security.seccomp is not None:
        place_seccomp(plan.container.security.seccomp)


def place_seccomp(path: str) -> None:
    """Put podbot's seccomp profile where the engine is to read it."""
    _place(path, profile().encode(), 0o644, "write the seccomp profile")


def _place(path: str, data: bytes, mode: int, operation: str) -> None:
    if not _is_there(path, data, mode):
        private_dir(os.path.dirname(path))
        replace_file(path, data, operation=operation, mode=mode)


def _make_empty(path: str, emit: Emit) -> None:
    """A directory with nothing in it, for nobody to write to.

    An agent that may mount can make its mount writable, and leave a repository there for the next session to find, or
    give the directory away.
    """
    changed = os.path.lexists(path) and not _is_empty(path)
    if changed:
        remove_directory(path)
    if not _is_empty(private_dir(path)):
        raise UnsafeDirectory(path=path, reason="it is not empty, and cannot be moved aside")
    os.chmod(path, 0o500)
    if changed:
        text = (
            f"{path}, which stands empty in sandboxes in place of linked worktrees, was changed, as an agent can with"
            ' sandbox.profile = "minimal": podbot made a new one'
        )
        emit(Event("warning", "git.placeholder_changed", text, {"path": path}))


def _is_empty(path: str) -> bool:
    """False also for what is not podbot's own directory."""
    return is_own_directory(path) and not os.listdir(private_dir(path))


def _is_there(path: str, data: bytes, mode: int) -> bool:
    try:
        with open(path, "rb") as file:
            right = os.fstat(file.fileno()).st_mode & 0o777 == mode and file.read(len(data) + 1) == data
    except OSError:
        return False
    return right and not os.path.islink(path)

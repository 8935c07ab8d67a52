"""Writing the files that podbot makes for a sandbox: git's configuration, the askpass helper, agents' settings."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from podbot.atomic import file_errors
from podbot.engine.port import ContainerInfo
from podbot.errors import UnsafeDirectory
from podbot.events import Emit, Event
from podbot.launch.labels import LABEL
from podbot.launch.own_file import kept_directory, own_file_mount
from podbot.launch.repository import is_placeholder
from podbot.launch.types import SandboxPlan
from podbot.places import is_own_directory, private_dir, state_dir
from podbot.session.confined import place_seccomp
from podbot.session.sessions import SessionDirectory, remove_directory


def place_files(plan: SandboxPlan, emit: Emit) -> None:
    """Put each text of the plan where ``plan.container`` has the engine look for it, those to mount in a new directory.

    Raises FilesystemError subclasses.
    """
    for path in sorted({mount.source for mount in plan.container.files if is_placeholder(mount)}):
        _make_empty(path, emit)
    remove_directory(plan.files_dir)
    private_dir(plan.files_dir)
    for file in plan.files:
        path = own_file_mount(plan.files_dir, file.target).source
        data = file.text.encode("utf-8", "surrogateescape")  # git's own bytes, whatever they are
        _write(path, data, 0o755 if file.executable else 0o644, lasting=plan.keep != "never")
    if plan.container.security.seccomp is not None:
        place_seccomp(plan.container.security.seccomp)


def _write(path: str, data: bytes, mode: int, *, lasting: bool) -> None:
    with file_errors(path, "write a file that the sandbox mounts"):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, 0o600), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            if lasting:  # a container that is kept starts again after a power cut
                os.fsync(file.fileno())


@contextlib.contextmanager
def kept_files(plan: SandboxPlan, directory: SessionDirectory) -> Iterator[None]:
    """For as long as the block runs, and as there is a container. Others lie in the session's directory."""
    try:
        yield
    finally:
        if plan.keep != "never" and not (directory.has_container or directory.handed_over):
            remove_directory(plan.files_dir)


def forget_files(environ: Mapping[str, str], container: ContainerInfo) -> None:
    """Remove what lies outside the session's directory for a container that is gone."""
    created = container.labels.get(f"{LABEL}.created", "")
    remove_directory(kept_directory(state_dir(environ), container.name, created))


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

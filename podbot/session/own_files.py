"""Writing the files that podbot makes for a sandbox: git's configuration, the askpass helper, agents' settings."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from podbot.atomic import file_errors
from podbot.errors import UnsafeDirectory
from podbot.events import Emit, Event
from podbot.launch.own_file import kept_directory, log_directory, own_file_mount
from podbot.launch.repository import is_placeholder
from podbot.launch.types import SandboxPlan
from podbot.places import is_own_directory, private_dir, state_dir
from podbot.session.directory import SessionDirectory, remove_directory
from podbot.session.login_copies import forget_copies
from podbot.session.seccomp_filter import place_seccomp


def place_files(plan: SandboxPlan, emit: Emit, *, again: bool = False) -> None:
    """Write each of the plan's files to the path from which the engine mounts or reads it, in a new directory.

    ``again``: for a session that is restarted, whose log stays. Raises FilesystemError subclasses.
    """
    for path in sorted({mount.source for mount in plan.container.files if is_placeholder(mount)}):
        _make_empty(path, emit)
    if not again:
        remove_directory(_aside(plan.files_dir))
    with _log_spared(plan.files_dir) if again else contextlib.nullcontext():
        remove_directory(plan.files_dir)
        private_dir(plan.files_dir)
    for path in _directories(plan):
        private_dir(path)
    for file in plan.files:
        path = own_file_mount(plan.files_dir, file.target).source
        data = file.text.encode("utf-8", "surrogateescape")  # git's bytes unchanged, in any encoding
        _write(path, data, 0o755 if file.executable else 0o644, lasting=plan.keep != "never")
    if plan.container.security.seccomp is not None:
        place_seccomp(plan.container.security.seccomp)


@contextlib.contextmanager
def _log_spared(files_dir: str) -> Iterator[None]:
    """Keep the log of a session that is restarted while its other files are made anew.

    If podbot was killed meanwhile, the log is where it was put aside, and the next restart brings it back.
    """
    log, aside = log_directory(files_dir), _aside(files_dir)
    if is_own_directory(log):
        remove_directory(aside)
        os.rename(log, aside)
    try:
        yield
    finally:
        if is_own_directory(aside) and is_own_directory(files_dir) and not os.path.lexists(log):
            os.rename(aside, log)


def _aside(files_dir: str) -> str:
    return f"{files_dir}.log"


def _remove_files(files_dir: str) -> None:
    """Also a log that a killed restart left aside."""
    remove_directory(files_dir)
    remove_directory(_aside(files_dir))


def _directories(plan: SandboxPlan) -> list[str]:
    """Those beside the files that the sandbox mounts; a resource fills them."""
    texts = {own_file_mount(plan.files_dir, file.target).source for file in plan.files}
    mounted = (mount.source for mount in plan.container.files if os.path.dirname(mount.source) == plan.files_dir)
    return [path for path in mounted if path not in texts]


def _write(path: str, data: bytes, mode: int, *, lasting: bool) -> None:
    with file_errors(path, "write a file that the sandbox mounts"):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, 0o600), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            if lasting:  # a kept container must be able to start after a power cut
                os.fsync(file.fileno())


@contextlib.contextmanager
def kept_files(plan: SandboxPlan, directory: SessionDirectory) -> Iterator[None]:
    """Remove a kept session's files when the block ends, unless its container exists; others go with its directory."""
    try:
        yield
    finally:
        if plan.keep != "never" and not (directory.has_container or directory.handed_over):
            _remove_files(plan.files_dir)


def forget_files(environ: Mapping[str, str], session: str, created: str) -> None:
    """Remove the files outside the session's directory that belong to a container that is gone.

    ``created``: from its label.
    """
    _remove_files(kept_directory(state_dir(environ), session, created))
    forget_copies(environ, session, created)


def _make_empty(path: str, emit: Emit) -> None:
    """Create an empty directory, or replace one that is not empty; no user may write to it.

    An agent that may mount file systems can make its mount writable and leave a repository there for the next session,
    or change the directory's owner.
    """
    changed = os.path.lexists(path) and not _is_empty(path)
    if changed:
        remove_directory(path)
    if not _is_empty(private_dir(path)):
        raise UnsafeDirectory(path=path, reason="it is not empty, and cannot be moved aside")
    os.chmod(path, 0o500)
    if changed:
        text = (
            f"{path} was replaced because its content had changed. It must be empty: sandboxes mount it over linked"
            ' worktrees. An agent can change it with sandbox.profile = "minimal"'
        )
        emit(Event("warning", "git.placeholder_changed", text, {"path": path}))


def _is_empty(path: str) -> bool:
    """Whether ``path`` is an empty directory of podbot's own."""
    return is_own_directory(path) and not os.listdir(private_dir(path))

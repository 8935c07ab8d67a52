"""Recreates the directory that a stopped container with a GitHub token mounts, which a reboot deletes.

The runtime directory is empty after a reboot, and an engine does not start a container with a missing mount source.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import PodbotError
from podbot.frozen import replace
from podbot.launch.names import LABEL, keep_of
from podbot.places import runtime_root, state_dir
from podbot.session.directory import left_session
from podbot.session.record import SessionRecord, read_record

_MOUNTED = "secrets"  # as in launch.token, which `podbot ps` avoids importing
_ENDED = ("exited", "stopped")


def restore_all(engine: Engine, environ: Mapping[str, str], containers: Iterable[ContainerInfo]) -> None:
    """Restore the missing directory of stopped sessions with a token. A session that cannot be restored is skipped.

    Nothing is done for a remote engine, which mounts directories of its own host.
    """
    if not engine.local:
        return
    root = runtime_root(environ)
    for container in containers:
        has_token = container.labels.get(f"{LABEL}.access") and keep_of(container.labels) != "never"
        there = os.path.isdir(os.path.join(root, container.name, _MOUNTED))
        if has_token and container.state in _ENDED and not there:
            with contextlib.suppress(PodbotError):  # the session is live, or another user owns the runtime directory
                restore_mounts(engine, environ, container)


def restore_mounts(engine: Engine, environ: Mapping[str, str], container: ContainerInfo) -> None:
    """Create the empty directory that such a container mounts, and its record.

    Raises SessionExists and FilesystemError subclasses.
    """
    from podbot.session.resources.every import restore_resources  # imported here: `podbot ps` rarely restores

    path = os.path.join(runtime_root(environ), container.name)
    with left_session(path, otherwise=lasting_record(engine, environ, container)) as directory:
        assert directory is not None  # noqa: S101 - there is a record by now
        if directory.record.state != "stopped":
            directory.move("stopped")
        restore_resources(directory.path)


def settle_stopped(environ: Mapping[str, str], path: str, *, runs: Callable[[], bool] = lambda: False) -> None:
    """Update a session's directory after its container was stopped and kept: state ``stopped``, no token, no login.

    Does nothing when a podbot holds the session, when its record cannot be read or written, or when the container
    ``runs``, because it was started again meanwhile.
    """
    from podbot.github.status import status_path

    with contextlib.suppress(PodbotError, OSError), left_session(path) as directory:
        if directory is None or runs():
            return
        if directory.record.state in ("orphaned", "detached"):
            directory.move("stopped")
        if os.path.lexists(status_path(path)):  # it had a token
            from podbot.github.keeper import remove_token

            remove_token(path)
            os.unlink(status_path(path))
        if directory.record.state == "stopped":
            from podbot.session.login_copies import withdraw_copies

            withdraw_copies(environ, directory.record.session, directory.record.created)


def lasting_record(engine: Engine, environ: Mapping[str, str], container: ContainerInfo) -> SessionRecord:
    """The copy of a kept container's record that survives a reboot, or a record without a plan when there is none.

    Raises SessionRecordUnknown, PathError.
    """
    from podbot.launch.own_file import kept_directory

    created = container.labels.get(f"{LABEL}.created", "")
    record = read_record(kept_directory(state_dir(environ), container.name, created), container.name)
    if record is None:
        record = SessionRecord(container.name, engine.endpoint, "stopped", container=container.id, created=created)
    return replace(record, endpoint=engine.endpoint, engine=engine.words.kind, state="stopped", untold=())

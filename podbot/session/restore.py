"""What a stopped container of a session with a GitHub token needs on the host to start again, and a reboot removes.

The runtime directory is empty after a reboot, and the engine starts no container whose mount has no source.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Mapping

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import PodbotError
from podbot.launch.labels import LABEL, keep_of
from podbot.places import runtime_root, state_dir
from podbot.session.record import SessionRecord, read_record
from podbot.session.sessions import left_session

_MOUNTED = ("secrets", "pipes")  # as in launch.token and launch.pipes, whose modules `podbot ps` does not need
_ENDED = ("exited", "stopped")


def restore_all(engine: Engine, environ: Mapping[str, str], containers: Iterable[ContainerInfo]) -> None:
    """Restore what stopped sessions with a token among ``containers`` lack. What cannot be restored is left as it is.

    An engine elsewhere mounts its own host's directories.
    """
    if not engine.local:
        return
    root = runtime_root(environ)
    for container in containers:
        has_token = container.labels.get(f"{LABEL}.access") and keep_of(container.labels) != "never"
        there = all(os.path.isdir(os.path.join(root, container.name, name)) for name in _MOUNTED)
        if has_token and container.state in _ENDED and not there:
            with contextlib.suppress(PodbotError):  # a live session's, or the runtime directory is not ours
                restore_mounts(engine, environ, container)


def restore_mounts(engine: Engine, environ: Mapping[str, str], container: ContainerInfo) -> None:
    """The empty directories that such a container mounts, and its record.

    Raises FilesystemError subclasses, SessionExists among them.
    """
    from podbot.session.resources.every import restore_resources  # here, for `podbot ps` restores nothing as a rule

    path = os.path.join(runtime_root(environ), container.name)
    with left_session(path, otherwise=lasting_record(engine, environ, container)) as directory:
        assert directory is not None  # noqa: S101 - there is a record by now
        if directory.record.state != "stopped":
            directory.move("stopped")
        restore_resources(directory.path)


def settle_stopped(path: str) -> None:
    """What a session's directory says once its container was stopped and is kept: no token, and no holder.

    Nothing when a podbot has the session, or its record cannot be read or written.
    """
    from podbot.github.status import status_path
    from podbot.github.token_file import SECRETS, TokenFile

    with contextlib.suppress(PodbotError, OSError), left_session(path) as directory:
        if directory is None:
            return
        if directory.record.state in ("orphaned", "detached"):
            directory.move("stopped")
        if os.path.lexists(status_path(path)):  # it had a token, which is good for an hour at most
            TokenFile(os.path.join(path, SECRETS)).remove()
            os.unlink(status_path(path))


def lasting_record(engine: Engine, environ: Mapping[str, str], container: ContainerInfo) -> SessionRecord:
    """The record of a kept container as it outlives a reboot; one without a plan when there is none.

    Raises SessionRecordUnknown, PathError.
    """
    from podbot.launch.own_file import kept_directory

    created = container.labels.get(f"{LABEL}.created", "")
    record = read_record(kept_directory(state_dir(environ), container.name, created), container.name)
    if record is None:
        return SessionRecord(container.name, engine.endpoint, "stopped", container=container.id, created=created)
    return dataclasses.replace(record, endpoint=engine.endpoint, state="stopped", untold=())

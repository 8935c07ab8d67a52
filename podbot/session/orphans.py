"""What a killed podbot left behind, and how to tell podbot's containers from others."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import ContainerError, ContainerNotFound, NotOurs, PodbotError, SessionExists
from podbot.events import Emit, Event
from podbot.launch.labels import LABEL, keep_of
from podbot.launch.names import is_name
from podbot.places import runtime_root
from podbot.session.flags import ENDING, flagged, is_in_use
from podbot.session.guarding import report_left
from podbot.session.network import remove_network
from podbot.session.sessions import left_session, sessions, sweep, take_untold

if TYPE_CHECKING:
    from podbot.launch.types import Keep

_END: Mapping[Keep, str] = {
    "never": "removes it",
    "when_unsaved": "removes it unless it holds unsaved work",
    "always": "stops it, with `--rm` it is removed",
}


def our_container(engine: Engine, name: str) -> ContainerInfo:
    """The container called ``name``. Raises ContainerNotFound, or NotOurs when podbot did not make it."""
    container = engine.inspect(name)
    if not is_ours(container):
        raise NotOurs(container=name)
    return container


def is_ours(container: ContainerInfo) -> bool:
    """podbot's own. A container inherits its image's labels, so "managed" alone could be an image's word for it.

    An engine may be elsewhere, and a name becomes a path here: what podbot would not have called one is not its own.
    """
    labels = container.labels
    return (
        is_name(container.name)
        and labels.get(f"{LABEL}.managed") == "true"
        and labels.get(f"{LABEL}.session") == container.name
    )


def _container_called(engine: Engine, name: str) -> ContainerInfo:
    """As :func:`our_container`, but for a container whose id begins with ``name``: an engine finds that as well."""
    container = our_container(engine, name)
    if container.name != name:
        raise ContainerNotFound(container=name)
    return container


def is_kept(engine: Engine, name: str) -> bool:
    """Whether the container called ``name`` is a session's that was kept, and does not run."""
    try:
        container = _container_called(engine, name)
    except ContainerError:
        return False
    return keep_of(container.labels) != "never" and container.state in ("exited", "stopped")


def report_orphans(engine: Engine, environ: Mapping[str, str], emit: Emit, *, spare: str = "") -> None:
    """Say once what a killed podbot left on this engine; forget directories whose container is gone.

    What a hosted session left is removed, unless the command is about it (``spare``: a container's name or id) or
    another `podbot exec` is at work in it. Costs one directory listing when nothing was left.
    """
    sweep(environ)
    for found in sessions(environ):
        path = os.path.join(runtime_root(environ), found.session)
        if found.untold and not found.live:
            for event in take_untold(path):
                emit(event)
        if found.state is None and not found.live:
            text = f"the record of the session {found.session} in {path} is none that this podbot can read"
            emit(Event("warning", "session.record_unknown", text, {"session": found.session, "path": path}))
        if found.live or found.endpoint != engine.endpoint:
            continue
        try:
            container = _container_called(engine, found.session)
        except (ContainerNotFound, NotOurs):
            _forget(engine, path, emit)
            continue
        needed = is_in_use(path) or (spare and (container.name == spare or container.id.startswith(spare)))
        if found.left_behind and (needed or not _removed(engine, environ, container, emit)):
            text = f"the session {found.session} ({container.state}) was left behind by a podbot that was killed"
            hint = f"`podbot stop {found.session}` {_END[keep_of(container.labels)]}"
            emit(Event("notice", "session.orphan", f"{text}; {hint}", {"session": found.session}))


def _forget(engine: Engine, path: str, emit: Emit) -> None:
    """Remove the directory of a session whose container is gone, unless another podbot has taken the name meanwhile."""
    with contextlib.suppress(SessionExists), flagged(path, ENDING), left_session(path) as left:
        if left is None:
            return  # another podbot has removed it
        try:
            _container_called(engine, os.path.basename(path))
        except (ContainerNotFound, NotOurs):
            remove_network(engine, os.path.basename(path))
            if left.has_container:
                left.move("gone")
            report_left(path, emit)


def _removed(engine: Engine, environ: Mapping[str, str], container: ContainerInfo, emit: Emit) -> bool:
    """Whether nothing is left to report: a hosted session's, which was removed, or kept, or is being removed."""
    from podbot.session.abandoned import is_hosted, remove_abandoned

    if not is_hosted(container):
        return False
    try:
        remove_abandoned(engine, environ, container, emit)
    except SessionExists:
        return True
    except PodbotError as exc:
        text = f"the sandbox {container.name} of a killed podbot could not be removed: {exc.message}"
        emit(Event("warning", "session.not_removed", text, {"session": container.name}))
        return False
    return True

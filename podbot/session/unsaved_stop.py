"""``podbot stop`` of a clone's session: its container is removed only if it has no unsaved work."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import ContainerError, ContainerNotFound, PodbotError
from podbot.events import Emit
from podbot.github.token_file import SECRETS, TokenFile
from podbot.launch.names import LABEL
from podbot.places import runtime_root
from podbot.session.disposal import STOP_SECONDS, kept_event
from podbot.session.flags import await_release
from podbot.session.restore import restore_mounts
from podbot.session.unsaved import Unsaved, examine, since_of


def is_kept(engine: Engine, environ: Mapping[str, str], container: ContainerInfo, *, wait: float, emit: Emit) -> bool:
    """Whether a container that was just stopped has unsaved work; if so, that is reported and it stays, stopped.

    ``wait``: how many seconds the session's own podbot has to release it.
    """
    path = os.path.join(runtime_root(environ), container.name)
    if await_release(path, wait):
        with contextlib.suppress(PodbotError):  # left by a killed podbot
            TokenFile(os.path.join(path, SECRETS)).remove()
    try:
        engine.inspect(container.id)
    except ContainerNotFound:  # its own podbot removed it first, because the clone was not made yet
        return False
    try:
        restore_mounts(engine, environ, container)
    except PodbotError as exc:
        unsaved = _not_started(exc)
    else:
        unsaved = look(engine, container)
    if unsaved:
        emit(kept_event(container.name, str(unsaved)))
    return bool(unsaved)


def look(engine: Engine, container: ContainerInfo) -> Unsaved:
    """Examine a stopped container: start it and stop it again. Before the stop, its agent could still change things."""
    try:
        engine.start(container.id)
    except PodbotError as exc:
        return _not_started(exc)
    directory = container.labels.get(f"{LABEL}.path", "")
    try:
        return examine(engine, container.id, directory, since_of(container.labels, container.created))
    finally:
        with contextlib.suppress(ContainerError):
            engine.stop(container.id, seconds=STOP_SECONDS)


def _not_started(exc: PodbotError) -> Unsaved:
    return Unsaved(doubt=f"its container could not be started for the search ({exc.message[:200]})")

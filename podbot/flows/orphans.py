"""What a killed podbot left behind, and how to tell podbot's containers from others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import ContainerNotFound, NotOurs
from podbot.events import Emit, Event
from podbot.flows.sessions import remove_directory, sessions, sweep
from podbot.launch.labels import LABEL, keep_of
from podbot.launch.names import is_name
from podbot.places import runtime_root

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


def report_orphans(engine: Engine, environ: Mapping[str, str], emit: Emit) -> None:
    """Say once what a killed podbot left on this engine; forget directories whose container is gone.

    Costs one directory listing when nothing was left.
    """
    sweep(environ)
    for record in sessions(environ):
        if record.live or record.endpoint != engine.endpoint:
            continue
        try:
            container = our_container(engine, record.session)
        except (ContainerNotFound, NotOurs):
            remove_directory(os.path.join(runtime_root(environ), record.session))
            continue
        if not record.kept:
            text = f"the session {record.session} ({container.state}) was left behind by a podbot that was killed"
            hint = f"`podbot stop {record.session}` {_END[keep_of(container.labels)]}"
            emit(Event("notice", "session.orphan", f"{text}; {hint}", {"session": record.session}))

"""``ps`` and ``stop``: podbot's own containers, found by label."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import ContainerNotFound, NotOurs
from podbot.events import Emit, Event
from podbot.flows.sessions import is_live, remove_directory, sessions
from podbot.launch.labels import LABEL, MANAGED
from podbot.places import runtime_root


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One of podbot's containers. ``created`` in seconds since the epoch.

    ``state`` is the engine's word; ``orphan``: the podbot that started it is gone and it was not to be kept.
    """

    session: str
    id: str
    agent: str
    mode: str
    workspace: str
    path: str
    image: str
    state: str
    created: float
    orphan: bool


def list_sessions(engine: Engine, environ: Mapping[str, str], *, include_stopped: bool) -> list[SessionInfo]:
    """podbot's containers on this engine, newest first."""
    found = [item for item in engine.containers(include_stopped=include_stopped, label=MANAGED) if _is_ours(item)]
    kept = {record.session for record in sessions(environ) if record.kept}
    root = runtime_root(environ)
    infos = [_info(item, orphan=item.name not in kept and not is_live(os.path.join(root, item.name))) for item in found]
    return sorted(infos, key=lambda info: (-info.created, info.session))


def _info(container: ContainerInfo, *, orphan: bool) -> SessionInfo:
    label = container.labels.get
    return SessionInfo(
        session=container.name,
        id=container.id,
        agent=label(f"{LABEL}.agent", ""),
        mode=label(f"{LABEL}.mode", ""),
        workspace=label(f"{LABEL}.workspace", ""),
        path=label(f"{LABEL}.path", ""),
        image=container.image,
        state=container.state,
        created=container.created,
        orphan=orphan,
    )


@dataclass(frozen=True, slots=True)
class StopResult:
    """What became of one session: it was stopped, and removed unless it is to be kept."""

    session: str
    removed: bool


def stop_sessions(
    engine: Engine, environ: Mapping[str, str], names: Sequence[str], *, seconds: int, remove_kept: bool
) -> Iterator[StopResult]:
    """Stop each named session; its live podbot, if any, ends with it.

    Raises ContainerNotFound or NotOurs before anything is stopped when one name is wrong.
    """
    ours = {name: _ours(engine, name) for name in dict.fromkeys(names)}
    kept = {record.session for record in sessions(environ) if record.kept}
    for container in ours.values():
        if container.state == "running":
            engine.stop(container.id, seconds=seconds)
        removed = remove_kept or container.name not in kept
        if removed:
            engine.remove(container.id)
            path = os.path.join(runtime_root(environ), container.name)
            if not is_live(path):
                remove_directory(path)
        yield StopResult(session=container.name, removed=removed)


def _ours(engine: Engine, name: str) -> ContainerInfo:
    container = engine.inspect(name)
    if not _is_ours(container):
        raise NotOurs(container=name)
    return container


def _is_ours(container: ContainerInfo) -> bool:
    """A container inherits its image's labels, so "managed" alone could be an image's word for it."""
    labels = container.labels
    return labels.get(f"{LABEL}.managed") == "true" and labels.get(f"{LABEL}.session") == container.name


def report_orphans(engine: Engine, environ: Mapping[str, str], emit: Emit) -> None:
    """Say once what a killed podbot left on this engine; forget directories whose container is gone.

    Costs one directory listing when nothing was left.
    """
    for record in sessions(environ):
        if record.live or record.endpoint != engine.endpoint:
            continue
        try:
            state = _ours(engine, record.session).state
        except (ContainerNotFound, NotOurs):
            remove_directory(os.path.join(runtime_root(environ), record.session))
            continue
        if not record.kept:
            text = f"the session {record.session} ({state}) was left behind by a podbot that was killed"
            hint = f"`podbot stop {record.session}` removes it"
            emit(Event("notice", "session.orphan", f"{text}; {hint}", {"session": record.session}))

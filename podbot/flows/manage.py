"""``ps`` and ``stop``: podbot's own containers, found by label."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import ContainerNotFound
from podbot.flows.orphans import is_ours, our_container
from podbot.flows.sessions import await_release, remove_directory, sessions
from podbot.launch.labels import KEEP, LABEL, MANAGED
from podbot.places import runtime_root

RELEASE_SECONDS = 3.0  # for the podbot of a stopped session to finish its own clean-up


@dataclass(frozen=True)
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
    found = _containers(engine, include_stopped=include_stopped)
    # Only a record here can say so: a session whose podbot has another runtime directory is not ours to call dead.
    killed = {record.session for record in sessions(environ) if not record.live and not record.kept}
    infos = [_info(item, orphan=item.name in killed) for item in found]
    return sorted(infos, key=lambda info: (-info.created, info.session))


def _containers(engine: Engine, *, include_stopped: bool) -> list[ContainerInfo]:
    return [item for item in engine.containers(include_stopped=include_stopped, label=MANAGED) if is_ours(item)]


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


@dataclass(frozen=True)
class StopResult:
    """What became of one session: it was stopped, and removed unless it is to be kept."""

    session: str
    removed: bool


def stop_sessions(
    engine: Engine,
    environ: Mapping[str, str],
    names: Sequence[str],
    *,
    seconds: int,
    remove_kept: bool = False,
    all_sessions: bool = False,
) -> Iterator[StopResult]:
    """Stop each named session, or all; its live podbot, if any, ends with it and is waited for.

    Raises ContainerNotFound or NotOurs before anything is stopped when one name is wrong.
    """
    found = _containers(engine, include_stopped=True) if all_sessions else []
    found += [our_container(engine, name) for name in dict.fromkeys(names)]
    ours = {container.id: container for container in found}  # a name and an id may be the same container's
    for container in ours.values():
        if container.state == "running":
            with contextlib.suppress(ContainerNotFound):  # its own podbot was quicker
                engine.stop(container.id, seconds=seconds)
        removed = remove_kept or container.labels.get(KEEP) != "true"
        if removed:
            engine.remove(container.id)
            path = os.path.join(runtime_root(environ), container.name)
            if await_release(path, RELEASE_SECONDS):
                remove_directory(path)
        yield StopResult(session=container.name, removed=removed)

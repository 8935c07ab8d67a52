"""``ps`` and ``stop``: podbot's own containers, found by label."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import ContainerNotFound
from podbot.events import Emit, ignore
from podbot.launch.labels import LABEL, MANAGED, keep_of
from podbot.places import runtime_root
from podbot.session.flags import await_release, stopping
from podbot.session.guarding import report_left
from podbot.session.orphans import is_ours, our_container
from podbot.session.restore import restore_all, settle_stopped
from podbot.session.sessions import remove_reported, sessions
from podbot.tokens.token_info import TokenInfo, token_info

RELEASE_SECONDS = 3.0  # for the podbot of a stopped session to finish its own clean-up


@dataclass(frozen=True)
class SessionInfo:
    """One of podbot's containers. ``created`` in seconds since the epoch.

    ``state`` is the engine's word; ``orphan``: the podbot that started it is gone and it was not to be kept.
    ``detached``: it was started again and runs without a podbot process. ``token``: of a session that has one.
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
    token: TokenInfo | None = None
    detached: bool = False


def list_sessions(engine: Engine, environ: Mapping[str, str], *, include_stopped: bool) -> list[SessionInfo]:
    """podbot's containers on this engine, newest first."""
    found = _containers(engine, include_stopped=include_stopped)
    restore_all(engine, environ, found)
    # Only a record here can say so: a session whose podbot has another runtime directory is not ours to call dead.
    here = sessions(environ)
    killed = {found.session for found in here if found.left_behind}
    root = runtime_root(environ)
    tokens = {record.session: token_info(os.path.join(root, record.session)) for record in here}
    detached = {entry.session for entry in here if entry.state == "detached"}
    infos = [
        replace(
            _info(item, orphan=item.name in killed, token=tokens.get(item.name)),
            detached=item.name in detached and item.state == "running",
        )
        for item in found
    ]
    return sorted(infos, key=lambda info: (-info.created, info.session))


def _containers(engine: Engine, *, include_stopped: bool) -> list[ContainerInfo]:
    return [item for item in engine.containers(include_stopped=include_stopped, label=MANAGED) if is_ours(item)]


def _info(container: ContainerInfo, *, orphan: bool, token: TokenInfo | None) -> SessionInfo:
    label = container.labels.get
    return SessionInfo(
        session=container.name,
        id=container.id,
        agent=label(f"{LABEL}.agent", ""),
        mode=label(f"{LABEL}.mode", ""),
        workspace=label(f"{LABEL}.workspace", ""),
        path=label(f"{LABEL}.repo") or label(f"{LABEL}.path", ""),
        image=container.image,
        state=container.state,
        created=container.created,
        orphan=orphan,
        token=token,
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
    emit: Emit = ignore,
) -> Iterator[StopResult]:
    """Stop each named session, or all; its live podbot, if any, ends with it and is waited for.

    A clone's session that nobody decided about is removed when it holds no unsaved work. Raises
    ContainerNotFound or NotOurs before anything is stopped when one name is wrong.
    """
    found = _containers(engine, include_stopped=True) if all_sessions else []
    found += [our_container(engine, name) for name in dict.fromkeys(names)]
    ours = {container.id: container for container in found}  # a name and an id may be the same container's
    for container in ours.values():
        with stopping(os.path.join(runtime_root(environ), container.name)):
            removed = _stopped(engine, environ, container, seconds=seconds, remove_kept=remove_kept, emit=emit)
        yield StopResult(session=container.name, removed=removed)


def _stopped(
    engine: Engine,
    environ: Mapping[str, str],
    container: ContainerInfo,
    *,
    seconds: int,
    remove_kept: bool,
    emit: Emit,
) -> bool:
    """Whether it was removed, too."""
    if container.state == "created":  # when it was listed; others may have been stopped since, for minutes
        with contextlib.suppress(ContainerNotFound):
            container = engine.inspect(container.id)
    if container.state == "running":
        with contextlib.suppress(ContainerNotFound):  # its own podbot was quicker
            engine.stop(container.id, seconds=seconds)
    path = os.path.join(runtime_root(environ), container.name)
    if not remove_kept and _is_kept(engine, environ, container, emit):
        if await_release(path, RELEASE_SECONDS):
            report_left(path, emit)
            settle_stopped(path)
        return False
    from podbot.session.network import remove_sandbox
    from podbot.session.own_files import forget_files  # here, for `podbot ps` needs none of it

    remove_sandbox(engine, container.id, container.name)
    forget_files(environ, container)
    if await_release(path, RELEASE_SECONDS):
        report_left(path, emit)
        remove_reported(path)
    return True


def _is_kept(engine: Engine, environ: Mapping[str, str], container: ContainerInfo, emit: Emit) -> bool:
    keep = keep_of(container.labels)
    if keep != "when_unsaved" or container.state == "created":  # no agent ever ran in it
        return keep == "always"
    from podbot.session import unsaved_stop

    return unsaved_stop.is_kept(engine, environ, container, wait=RELEASE_SECONDS, emit=emit)

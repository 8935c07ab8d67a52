"""``ps`` and ``stop``: podbot's own containers, found by label."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import (
    ContainerNotFound,
    PodbotError,
    RemoveFailed,
    SessionRecordUnknown,
    SessionRuns,
    StopFailed,
)
from podbot.events import Emit, Event, ignore
from podbot.frozen import Frozen, replace
from podbot.launch.names import LABEL, MANAGED, keep_of
from podbot.places import runtime_root, state_dir
from podbot.session.directory import left_session, record_of, remove_reported, sessions
from podbot.session.flags import ENDING, await_release, flagged, is_live, stopping
from podbot.session.guarding import SCANNER, Scanner, report_left
from podbot.session.orphans import is_ours
from podbot.session.record import SessionRecord
from podbot.session.restore import restore_all, settle_stopped
from podbot.session.session_names import session_meant
from podbot.session.stuck_servers import end_stuck
from podbot.tokens.token_info import TokenInfo, token_info

RELEASE_SECONDS = 3.0


class SessionInfo(Frozen):
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
            info_of(item, orphan=item.name in killed, token=tokens.get(item.name)),
            detached=item.name in detached and item.state == "running",
        )
        for item in found
    ]
    return sorted(infos, key=lambda info: (-info.created, info.session))


def _containers(engine: Engine, *, include_stopped: bool) -> list[ContainerInfo]:
    return [item for item in engine.containers(include_stopped=include_stopped, label=MANAGED) if is_ours(item)]


def info_of(container: ContainerInfo, *, orphan: bool, token: TokenInfo | None) -> SessionInfo:
    """A container of podbot's as `podbot ps` lists it."""
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


class StopResult(Frozen):
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
    only_ended: bool = False,
    emit: Emit = ignore,
    release_seconds: float = RELEASE_SECONDS,
    scanner: Scanner = SCANNER,
) -> Iterator[StopResult]:
    """Stop each named session, or all; its live podbot, if any, ends with it and is waited for.

    A clone's session without `--keep` or `--rm` is removed when it holds no unsaved work. Raises ContainerNotFound,
    AmbiguousName or NotOurs before anything is stopped when one name is wrong. ``release_seconds``: for the podbot of a
    stopped session to finish its own clean-up. ``scanner``: the guard's. ``only_ended``: only sessions whose container
    has ended. SessionRuns is raised for one that is named and runs: before anything is removed, unless it was restarted
    meanwhile.
    """
    root = runtime_root(environ)
    found = _containers(engine, include_stopped=True) if all_sessions else []
    if only_ended:
        found = [container for container in found if _is_ended(container, root)]
    named = [session_meant(engine, name) for name in dict.fromkeys(names)]
    if only_ended:
        for container in named:
            _check_ended(container, root)
    ours = {container.id: container for container in (*found, *named)}  # a name and an id may be the same container's
    for listed, following in zip_longest(ours.values(), list(ours.values())[1:]):
        text = f"{'removing' if only_ended else 'stopping'} {listed.name}"
        emit(Event("info", "session.stop", text, {"session": listed.name, "next": following.name if following else ""}))
        try:
            removed = end_session(
                engine, environ, listed, seconds=seconds, remove=remove_kept or None, only_ended=only_ended, emit=emit,
                release_seconds=release_seconds, scanner=scanner,
            )  # fmt: skip
        except SessionRuns:
            if listed.id in {container.id for container in named}:
                raise
            continue
        yield StopResult(session=listed.name, removed=removed)


def end_session(
    engine: Engine,
    environ: Mapping[str, str],
    listed: ContainerInfo,
    *,
    seconds: int,
    remove: bool | None,
    only_ended: bool,
    emit: Emit,
    release_seconds: float,
    scanner: Scanner,
) -> bool:
    """Stop one session; returns whether it was removed. ``remove``: None removes one that is not to be kept.

    Raises SessionRuns if only an ended one is to be removed.
    """
    root = runtime_root(environ)
    path = os.path.join(root, listed.name)
    record = record_of(environ, listed.name)

    def ended() -> bool:
        return record is not None and record.container == listed.id and end_stuck(record, emit)

    with stopping(path):
        if only_ended:  # others may have been removed since it was listed, for minutes
            container = _now(engine, listed)
            _check_ended(container, root)
        else:
            container = _stopped(engine, listed, seconds, ended)
        removed = remove
        if removed is None:
            never_ran = _never_ran(environ, record, container)
            removed = never_ran or not _is_kept(engine, environ, container, emit, release_seconds)
        if removed:
            _remove(engine, environ, container, kill=not only_ended, ended=ended)
        if await_release(path, release_seconds):
            if removed:
                _forget(path, emit, scanner)
            else:
                report_left(path, emit, scanner=scanner)
                settle_stopped(environ, path, runs=lambda: _now(engine, container).state == "running")
    return removed


def _forget(path: str, emit: Emit, scanner: Scanner) -> None:
    """Report and remove what is left of a session whose container was removed, unless another podbot took the name."""
    if not os.path.isdir(path):
        return
    try:
        with flagged(path, ENDING), left_session(path) as left:
            if left is not None and left.has_container:
                left.move("gone")
            report_left(path, emit, scanner=scanner)
    except SessionRecordUnknown:  # another version's
        report_left(path, emit, scanner=scanner)
        remove_reported(path)
    except PodbotError:
        return  # the name is taken; or the next command tries again


def _is_ended(container: ContainerInfo, root: str) -> bool:
    """Whether nothing runs in it. One that is only created is a live podbot's, or a killed one's."""
    if container.state == "created":
        return not is_live(os.path.join(root, container.name))
    return container.state in {"exited", "stopped"}


def _check_ended(container: ContainerInfo, root: str) -> None:
    if not _is_ended(container, root):
        state = "being started" if container.state == "created" else container.state
        raise SessionRuns(session=container.name, state=state)


def _now(engine: Engine, container: ContainerInfo) -> ContainerInfo:
    """The container as the engine has it now, or as it was if it is gone."""
    with contextlib.suppress(ContainerNotFound):
        return engine.inspect(container.id)
    return container


def _stopped(engine: Engine, container: ContainerInfo, seconds: int, ended: Callable[[], bool]) -> ContainerInfo:
    """The container as the engine has it now. ``ended``: see ``remove_sandbox``."""
    if container.state == "created":  # when it was listed; others may have been stopped since, for minutes
        container = _now(engine, container)
    if container.state != "created":  # also one that is said to have ended: the engine may be wrong
        with contextlib.suppress(ContainerNotFound):  # its own podbot was quicker
            try:
                engine.stop(container.id, seconds=seconds)
            except StopFailed:
                if not ended():
                    raise
                engine.stop(container.id, seconds=0)
    return container


def _remove(
    engine: Engine, environ: Mapping[str, str], container: ContainerInfo, *, kill: bool, ended: Callable[[], bool]
) -> None:
    """Raises SessionRuns unless ``kill``, for a container that was started again at this moment."""
    from podbot.session.network import remove_sandbox
    from podbot.session.own_files import forget_files  # here, for `podbot ps` needs none of it

    try:
        remove_sandbox(engine, container.id, container.name, kill=kill, ended=ended)
    except RemoveFailed as exc:
        if exc.reason == exc.UNKNOWN:
            raise SessionRuns(session=container.name, state="running") from exc
        if not kill:
            _check_ended(_now(engine, container), runtime_root(environ))
        raise
    forget_files(environ, container.name, container.labels.get(f"{LABEL}.created", ""))


def _never_ran(environ: Mapping[str, str], record: SessionRecord | None, container: ContainerInfo) -> bool:
    """Whether no command of its caller's ran in it, so that it is not kept.

    An engine may create a container after all else of a session whose podbot was killed has been removed: it has no
    record and none of the files that it mounts. Those of one that ran, and that the engine calls created, are there.
    """
    if record is not None:
        return record.never_ran and record.container in ("", container.id)
    from podbot.launch.own_file import kept_directory  # here, for `podbot ps` needs none of it

    created = container.labels.get(f"{LABEL}.created", "")
    files = kept_directory(state_dir(environ), container.name, created)
    return container.state == "created" and not os.path.lexists(files)


def _is_kept(
    engine: Engine, environ: Mapping[str, str], container: ContainerInfo, emit: Emit, release_seconds: float
) -> bool:
    keep = keep_of(container.labels)
    if keep != "when_unsaved" or container.state == "created":  # no agent ever ran in it
        return keep == "always"
    from podbot.session import unsaved_stop

    return unsaved_stop.is_kept(engine, environ, container, wait=release_seconds, emit=emit)

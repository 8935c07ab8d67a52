"""``history rm``: remove conversations permanently, unless a session mounts them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence

from podbot.engine.erasing import erased_by
from podbot.engine.port import Engine
from podbot.errors import HistoryInUse, HistoryNotFound, HistoryNotRemoved, InvalidValue
from podbot.launch.names import HISTORY, MANAGED
from podbot.management.history_list import ProjectHistory, history_root, list_history
from podbot.session.directory import GONE
from podbot.session.orphans import is_ours
from podbot.session.resources.history import USED, locked

_OWNER_NAME = re.compile(r"[^/]+/[^/]+")


def find_history(environ: Mapping[str, str], cwd: str, project: str) -> ProjectHistory:
    """The project that ``project`` names: a path, ``OWNER/NAME``, an address, or a key. Raises HistoryNotFound.

    A word without a slash is never the end of an address: what was meant is the directory of that name.
    """
    path = os.path.realpath(os.path.join(cwd, os.path.expanduser(project)))
    if not project.strip():  # what an unset variable leaves in a script; as a path it is the current directory
        raise InvalidValue(field="project", origin="argument PROJECT", reason="it is blank")
    there = list_history(environ)
    for wanted in (project, path):
        for found in there:
            if wanted in (found.project, found.key):
                return found
    if _OWNER_NAME.fullmatch(project) and not os.path.lexists(path):
        end = f"/{project.casefold()}"
        # An address has a scheme, so what a path ends with is not taken for a repository.
        clones = [found for found in there if "://" in found.project and found.project.casefold().endswith(end)]
        if len(clones) == 1:
            return clones[0]
    raise HistoryNotFound(project=project)


def remove_history(
    engine: Engine, environ: Mapping[str, str], projects: Sequence[ProjectHistory], agent: str | None = None
) -> Iterator[ProjectHistory]:
    """Remove the store of each of ``projects``, or its part of one ``agent``; yields each once it is gone.

    Raises HistoryNotFound and HistoryInUse before anything is removed; HistoryNotRemoved, ContainerError.
    """
    wanted = [found for found in projects if agent is None or agent in {part.agent for part in found.agents}]
    if projects and not wanted:
        raise HistoryNotFound(project=projects[0].project, agent=agent or "")
    root = history_root(environ)
    _refuse_mounted(engine, wanted)  # before the locks: a lock that is held does not say which session holds it
    with contextlib.ExitStack() as locks:
        for found in wanted:
            lock = locked(os.path.join(root, found.key), found.project, fcntl.LOCK_EX)
            locks.callback(os.close, lock)
        _refuse_mounted(engine, wanted)  # again: by now another session may have come and gone, and been kept
        unshare = engine.words.unshare
        _sweep(root, environ, unshare)
        for found in wanted:
            path = os.path.join(root, found.key)
            if agent is None:
                _remove(path, environ, unshare)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(path, agent + USED))
                _remove(os.path.join(path, agent), environ, unshare)
            yield found


def _refuse_mounted(engine: Engine, projects: Iterable[ProjectHistory]) -> None:
    """A kept session, and one whose podbot was killed, hold no lock: their containers show that they use it."""
    names = {found.key: found.project for found in projects}
    for container in engine.containers(include_stopped=True, label=MANAGED):
        project = names.get(container.labels.get(HISTORY, ""))
        if project is not None and is_ours(container):
            user = f"the session {container.name} ({container.state})"
            hint = f"Stop and remove the session {container.name} first."
            raise HistoryInUse(project=project, user=user, hint=hint)


def _sweep(root: str, environ: Mapping[str, str], unshare: Sequence[str]) -> None:
    """Finish removals that were broken off."""
    with os.scandir(root) as entries:
        below = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    for directory in (root, *below):
        with contextlib.suppress(OSError):
            for name in os.listdir(directory):
                if name.startswith(GONE):
                    _erase(os.path.join(directory, name), environ, unshare)


def _remove(path: str, environ: Mapping[str, str], unshare: Sequence[str]) -> None:
    """Renamed first, so that another process finds nothing instead of a part. Raises HistoryNotRemoved."""
    parent, name = os.path.split(path)
    aside = os.path.join(parent, f"{GONE}{name}-{os.urandom(4).hex()}")
    try:
        os.rename(path, aside)
    except OSError as exc:
        raise HistoryNotRemoved(path=path, reason=exc.strerror or str(exc)) from exc
    reason = _erase(aside, environ, unshare)
    if os.path.lexists(aside):
        raise HistoryNotRemoved(path=aside, reason=reason or "something of it is left")


def _erase(path: str, environ: Mapping[str, str], unshare: Sequence[str]) -> str:
    """Remove a tree that an agent wrote, following no link; returns what kept it from being removed, if anything."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)  # by descriptors, which follow no link
    if not os.path.lexists(path):
        return ""
    return erased_by(path, environ, os.getuid(), unshare)

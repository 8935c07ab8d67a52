"""The conversations that are kept on this host."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from podbot.api.engines import environment, open_engine
from podbot.config.models import AppConfig
from podbot.events import Emit, Event, ignore

if TYPE_CHECKING:
    from podbot.management.history_list import ProjectHistory

__all__ = ["find_history", "history", "remove_history"]


def history(*, environ: Mapping[str, str] | None = None) -> list[ProjectHistory]:
    """The projects with conversations on this host, most recently used first. Contacts no engine."""
    from podbot.management.history_list import list_history

    return list_history(environment(environ))


def find_history(project: str, *, environ: Mapping[str, str] | None = None) -> ProjectHistory:
    """The entry of :func:`history` for ``project``: a directory, ``owner/name``, or a key. Raises HistoryNotFound."""
    from podbot.management.history_remove import find_history as find

    return find(environment(environ), os.getcwd(), project)


def remove_history(
    config: AppConfig,
    projects: Sequence[ProjectHistory],
    *,
    agent: str | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> list[ProjectHistory]:
    """Remove conversations permanently, of one ``agent`` or of all; returns the projects that had any.

    Raises HistoryInUse before anything is removed if a session mounts them, HistoryNotFound and HistoryNotRemoved.
    """
    from podbot.management.history_remove import remove_history as remove

    environ = environment(environ)
    with open_engine(config, environ=environ, emit=emit) as engine:
        text = f"removing the conversations of {', '.join(project.project for project in projects)}"
        emit(Event("info", "history.remove", text, {"projects": [project.project for project in projects]}))
        return list(remove(engine, environ, projects, agent))

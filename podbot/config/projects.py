"""Settings of one project: tables ``[project."PATH"]`` of the operator's own configuration file (ADR 0043).

A table is matched by the real path of the workspace. Links in a table's own path are not followed: whoever could make
such a link, like an agent that works in the directory above, would choose the settings of another project.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from podbot.config.checks import Refusal, check_text
from podbot.config.coerce import type_name
from podbot.config.layers import PROJECT, Layer, Place, document_layer
from podbot.config.models import AppConfig, ProjectChoice
from podbot.errors import InvalidValue
from podbot.places import home_dir

_SECTIONS = ("sandbox", "agent", "creds", "session")
_KEYS = frozenset({"image", "workspace.container_path", "workspace.read_only", "workspace.guard"})
_OF_IMAGES = frozenset({"agent.install", "agent.versions", "sandbox.packages"})
_FOR_ALL = "images are built for all sessions"
_REASONS = {
    "engine": "the engine is chosen before the workspace is known",
    "engine_socket": "the engine is chosen before the workspace is known",
    "github": "the GitHub App and what its tokens may do are the same for all sessions",
    "workspace": "it decides which workspace a session has, and the workspace decides which table applies",
}


_LONGEST = 200  # characters of a path in a message


class ProjectTable(NamedTuple):
    """One table: its name as the file has it, the absolute path that this is, and its settings."""

    name: str
    path: str
    layer: Layer


def project_tables(value: object, place: Place, environ: Mapping[str, str]) -> tuple[ProjectTable, ...]:
    """The tables in the file's ``project``, which is at ``place``.

    Raises InvalidValue, UnknownKey, also for tables of other workspaces.
    """
    if not isinstance(value, dict):
        raise _invalid(PROJECT, place, f"expected tables, not {type_name(value)}", 'Write [project."~/src/shop"].')
    home = _home(environ)
    tables: dict[str, ProjectTable] = {}
    for name, table in value.items():
        path = _path(name, place.at(name), home)
        if path in tables:
            reason = f'[project."{tables[path].name}"] is for the same directory'
            raise _invalid(_title(name), place.at(name), reason, "Put the settings of both into one table.")
        tables[path] = ProjectTable(name, path, _layer(name, table, place.at(name)))
    return tuple(tables.values())


def chosen(
    tables: Sequence[ProjectTable], config: AppConfig, environ: Mapping[str, str]
) -> tuple[ProjectChoice | None, Layer]:
    """The choice for the workspace of ``config``, and the settings of the table in effect.

    Only the table of the nearest directory at or above the workspace is in effect.
    """
    workspace = _workspace(config, _home(environ))
    if workspace is None:
        return None, {}
    best = max((table for table in tables if _within(workspace, table.path)), key=_depth, default=None)
    linked = _linked(tables, workspace, _depth(best) if best is not None else 0)
    if best is None:
        return ProjectChoice(workspace, linked=linked), {}
    return ProjectChoice(workspace, best.name, linked), best.layer


def _depth(table: ProjectTable) -> int:
    return len(table.path)


def _linked(tables: Sequence[ProjectTable], workspace: str, least: int) -> tuple[str, str]:
    for table in tables:
        leads_to = os.path.realpath(table.path)
        if leads_to != table.path and _within(workspace, leads_to) and len(leads_to) >= least:
            return table.name, leads_to
    return "", ""


def _title(name: str) -> str:
    return f'{PROJECT}."{name}"' if name.isprintable() and len(name) <= _LONGEST else f"{PROJECT}.{name[:_LONGEST]!r}"


def _layer(name: str, table: object, place: Place) -> Layer:
    title = _title(name)
    if not isinstance(table, dict):
        raise _invalid(title, place, f"expected a table, not {type_name(table)}", f"Write [{title}].")
    layer = document_layer(table, place.of_project(name), title)
    for dotted in layer:
        section = dotted.partition(".")[0]
        if dotted in _OF_IMAGES or (section not in _SECTIONS and dotted not in _KEYS):
            reason = _FOR_ALL if dotted in _OF_IMAGES else _REASONS[section]
            hint = "Set it outside of the project's table."
            raise _invalid(
                f"{title}.{dotted}", place.at(*dotted.split(".")), f"it cannot differ by project: {reason}", hint
            )
    return layer


def _path(name: str, place: Place, home: str) -> str:
    """The absolute and normal path that ``name`` is. Raises InvalidValue."""
    reason = ""
    try:
        check_text(name)
    except Refusal as refusal:
        reason = refusal.reason
    if not (name == "~" or name.startswith(("/", "~/"))):
        reason = "it is not an absolute path"
    elif ".." in name.split("/"):
        reason = "its path contains '..'"
    if reason:
        hint = 'Name the project\'s directory by a path that begins with / or ~/: [project."~/src/shop"].'
        raise _invalid(_title(name), place, reason, hint)
    return "/" + os.path.normpath(_expanded(name, home)).lstrip("/")


def _workspace(config: AppConfig, home: str) -> str | None:
    """The real path of the workspace; None without one. A path that is refused later may give any path here."""
    given = config.workspace.host_path
    if given is None or not given.strip() or config.workspace.source != "host_mount":
        return None
    try:
        return os.path.realpath(_expanded(given, home))  # a relative path was typed
    except (OSError, ValueError):  # the working directory was removed; a NUL character
        return None


def _expanded(path: str, home: str) -> str:
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def _within(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def _home(environ: Mapping[str, str]) -> str:
    return os.path.realpath(home_dir(environ))


def _invalid(field: str, place: Place, reason: str, hint: str) -> InvalidValue:
    return InvalidValue(field=field, origin=str(place), reason=reason, hint=hint)

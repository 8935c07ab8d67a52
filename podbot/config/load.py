"""Finds the configuration file, and loads the configuration from all its layers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot import places
from podbot.config.layers import (
    CONFIG_PATH,
    PROJECT,
    Layer,
    Place,
    document_layer,
    environment_layer,
    override_layer,
    parse_file,
    read_file,
)
from podbot.config.merge import merge
from podbot.config.models import DEFAULT_ORIGIN, AppConfig, LoadOptions, Origin
from podbot.errors import InvalidValue
from podbot.frozen import Frozen, replace

if TYPE_CHECKING:
    from podbot.config.projects import ProjectTable


class FileLayers(Frozen):
    """The settings of a file: those of all sessions, and its project tables."""

    base: Layer
    projects: tuple[ProjectTable, ...] = ()


def load_config(options: LoadOptions) -> AppConfig:
    """The configuration: overrides, then environment, then the file's table for the workspace, then the rest of the
    file, then defaults, merged per key.

    Raises a ConfigError that names the key and the origin of the first error.
    """
    file, upper = _layers(options)
    config = merge([file.base, *upper])
    if file.projects:
        from podbot.config.projects import chosen

        choice, layer = chosen(file.projects, config, options.environ)
        config = replace(merge([file.base, layer, *upper]), project=choice)
    return config if options.file is None else replace(config, file=os.path.abspath(options.file))


def load_without_project(options: LoadOptions) -> AppConfig:
    """The configuration without a project's table: what is prepared for all sessions does not depend on a workspace.

    Raises as :func:`load_config`.
    """
    file, upper = _layers(options)
    config = merge([file.base, *upper])
    return config if options.file is None else replace(config, file=os.path.abspath(options.file))


def configured_images(options: LoadOptions) -> set[str]:
    """Every image that the configuration names, also for projects that are not the workspace. Raises as load_config."""
    file, upper = _layers(options)
    layers = [file.base, *(table.layer for table in file.projects), *upper]
    return {str(layer["image"].value) for layer in layers if "image" in layer}


def _layers(options: LoadOptions) -> tuple[FileLayers, tuple[Layer, Layer]]:
    """The file's layers, and those that override it."""
    path, named_by, exists = config_location(options)
    found = exists or named_by is not DEFAULT_ORIGIN
    file = file_layers(path, named_by, options.environ) if found else FileLayers({})
    return file, (environment_layer(options.environ), override_layer(options))


def file_layers(path: str, named_by: Origin, environ: Mapping[str, str]) -> FileLayers:
    """The settings of a TOML file. ``named_by``: who chose the path, for ConfigFileNotFound.

    Raises ConfigFileNotFound (missing, a directory, unreadable), MalformedFile, UnknownKey, InvalidValue.
    """
    data = read_file(path, named_by)
    document = parse_file(path, data)
    place = Place(Origin("file", path), data)
    projects: tuple[ProjectTable, ...] = ()
    if PROJECT in document:
        from podbot.config.projects import project_tables

        projects = project_tables(document.pop(PROJECT), place.at(PROJECT), environ)
    return FileLayers(document_layer(document, place), projects)


def config_location(options: LoadOptions) -> tuple[str, Origin, bool]:
    """(path, who named it, whether it exists) of the configuration file, without reading it.

    It is ``options.file``, else PODBOT_CONFIG_PATH, else the user's default path. The working directory is never used,
    because a repository could grant itself privileges. Only the operator's own ``--config`` may be relative.
    """
    path, origin = _chosen(options)
    return path, origin, _is_there(path)


def _is_there(path: str) -> bool:
    """Whether ``path`` exists. True also without permission to check, so that reading it reports the reason."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
    return True


def _chosen(options: LoadOptions) -> tuple[str, Origin]:
    if options.file is not None:
        origin = Origin("flag", options.flags.get("file", "LoadOptions.file"))
        if not options.file.strip():
            raise InvalidValue(field="configuration file", origin=str(origin), reason="its name is blank")
        return options.file, origin
    named = options.environ.get(CONFIG_PATH, "")
    path = named if named.strip() else places.config_file(options.environ)
    if not os.path.isabs(path):
        field = CONFIG_PATH if named.strip() else "XDG_CONFIG_HOME"
        raise InvalidValue(
            field=field,
            origin="environment",
            reason="a relative path would read configuration from the working directory",
            hint="Set it to an absolute path.",
        )
    return path, Origin("environment", CONFIG_PATH) if named.strip() else DEFAULT_ORIGIN

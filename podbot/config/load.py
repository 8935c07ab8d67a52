"""Where the configuration file lies, and the whole configuration from all its layers."""

from __future__ import annotations

import os
from dataclasses import replace

from podbot import places
from podbot.config.layers import CONFIG_PATH, environment_layer, file_layer, override_layer
from podbot.config.merge import merge
from podbot.config.models import DEFAULT_ORIGIN, AppConfig, LoadOptions, Origin
from podbot.errors import InvalidValue


def load_config(options: LoadOptions) -> AppConfig:
    """The configuration: overrides, then environment, then file, then defaults, merged per key.

    Raises a ConfigError that names the key and the origin of the first thing that is wrong.
    """
    path, named_by, exists = config_location(options)
    layers = [file_layer(path, named_by)] if exists or named_by is not DEFAULT_ORIGIN else []
    config = merge([*layers, environment_layer(options.environ), override_layer(options)])
    return config if options.file is None else replace(config, file=os.path.abspath(options.file))


def config_location(options: LoadOptions) -> tuple[str, Origin, bool]:
    """(path, who named it, whether it is there) of the configuration file; reads nothing.

    ``options.file``, else PODBOT_CONFIG_PATH, else the user's own place. Never the working directory:
    a repository could grant itself privileges. Only the operator's own ``--config`` may be relative.
    """
    path, origin = _chosen(options)
    return path, origin, _is_there(path)


def _is_there(path: str) -> bool:
    """Whether something lies at ``path``. What may not be looked at counts: reading it then says why."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
    return True


def _chosen(options: LoadOptions) -> tuple[str, Origin]:
    if options.file is not None:
        if not options.file.strip():
            raise InvalidValue(field="--config", origin="flag --config", reason="the file's name is blank")
        return options.file, Origin("flag", "--config")
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

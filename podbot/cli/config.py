"""``podbot config``: show the effective values, write a first file, print its path, check it."""

from __future__ import annotations

import json
import os
from typing import Any

import typer

from podbot.cli.globals import Globals
from podbot.config.load import config_location, load_config
from podbot.config.models import AppConfig
from podbot.config.schema import KEYS, value_of
from podbot.errors import PathError


def show(g: Globals, *, workspace: str | None, origin: bool, as_json: bool) -> int:
    """Print every effective value as TOML, for a session on ``workspace`` if there is one."""
    from podbot.config.write import render_effective

    values = {} if workspace is None else {"workspace.host_path": workspace, "workspace.source": "host_mount"}
    config = load_config(g.load_options(os.environ, values, dict.fromkeys(values, "--workspace")))
    if as_json:
        typer.echo(json.dumps(_for_programs(config), indent=2))
    else:
        typer.echo(render_effective(config, origins=origin), nl=False)
    return 0


def init(g: Globals, *, force: bool) -> int:
    """Write a documented file in which every key is commented out, and print its path."""
    from podbot.config.write import render_example, write_file

    path, _, exists = config_location(g.load_options(os.environ, {}, {}))
    if exists and not force:
        raise PathError(
            path=path,
            operation="write",
            reason="it exists already; --force replaces it, and all that is set in it is lost",
        )
    write_file(path, render_example().encode())
    typer.echo(os.fsencode(path))
    return 0


def path(g: Globals) -> int:
    """Print the path of the file that would be read."""
    found, origin, exists = config_location(g.load_options(os.environ, {}, {}))
    typer.echo(os.fsencode(found))
    if not exists:
        typer.echo(f"podbot: no such file ({origin}); `podbot config init` writes one", err=True)
    return 0


def check(g: Globals) -> int:
    """Load every layer of the configuration and report whether it is valid."""
    options = g.load_options(os.environ, {}, {})
    load_config(options)
    found, _, exists = config_location(options)
    note = b"" if exists else b" (no such file: variables and defaults only)"
    typer.echo(b"ok: " + os.fsencode(found) + note)
    return 0


def _for_programs(config: AppConfig) -> dict[str, Any]:
    report = {}
    for dotted, key in KEYS.items():
        value, origin = value_of(config, key), config.origin(dotted)
        plain = dict(value) if key.kind == "table" else value
        report[dotted] = {"value": plain, "origin": origin.kind, "detail": origin.detail}
        if origin.project:
            report[dotted]["project"] = origin.project
    return report

"""``podbot config``: show what is in force, write a first file, say where it lies, check it."""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

import typer

from podbot.cli.common import global_options, load_options
from podbot.cli.globals import Globals
from podbot.config.load import config_location, load_config
from podbot.config.models import AppConfig
from podbot.config.schema import KEYS, value_of
from podbot.errors import PathError

app = typer.Typer(help="Show, write, find or check the configuration.", no_args_is_help=True)


@app.command()
@global_options
def show(
    g: Globals,
    origin: Annotated[bool, typer.Option("--origin", help="Say where each value came from.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with origins.")] = False,
) -> None:
    """Print every value in force, as TOML."""
    from podbot.config.write import render_effective

    config = load_config(load_options(g))
    if as_json:
        typer.echo(json.dumps(_for_programs(config), indent=2))
    else:
        typer.echo(render_effective(config, origins=origin), nl=False)


@app.command()
@global_options
def init(
    g: Globals,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a documented file in which every key is commented out, and print where it is."""
    from podbot.config.write import render_example, write_file

    path, _, exists = config_location(load_options(g))
    if exists and not force:
        raise PathError(path=path, operation="write", reason="it exists already; --force replaces it")
    write_file(path, render_example().encode())
    typer.echo(os.fsencode(path))


@app.command()
@global_options
def path(g: Globals) -> None:
    """Print the path of the file that would be read."""
    found, origin, exists = config_location(load_options(g))
    typer.echo(os.fsencode(found))
    if not exists:
        typer.echo(f"podbot: no such file ({origin}); `podbot config init` writes one", err=True)


@app.command()
@global_options
def check(g: Globals) -> None:
    """Load the configuration, every layer of it, and say whether it is valid."""
    options = load_options(g)
    load_config(options)
    found, _, exists = config_location(options)
    note = b"" if exists else b" (no such file: variables and defaults only)"
    typer.echo(b"ok: " + os.fsencode(found) + note)


def _for_programs(config: AppConfig) -> dict[str, Any]:
    report = {}
    for dotted, key in KEYS.items():
        value, origin = value_of(config, key), config.origin(dotted)
        plain = dict(value) if key.kind == "table" else value
        report[dotted] = {"value": plain, "origin": origin.kind, "detail": origin.detail}
    return report

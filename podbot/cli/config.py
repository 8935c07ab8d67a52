"""``podbot config``: show the effective values, write and edit the file, print its path, check it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import typer

from podbot.cli.globals import Globals
from podbot.config.load import config_location, load_config
from podbot.config.models import AppConfig, Origin
from podbot.config.schema import KEYS, Key, nearest_key, value_of
from podbot.errors import PathError, UnknownKey, UsageError

_EDITORS = ("sensible-editor", "nano", "vi")


def show(g: Globals, *, workspace: str | None, origin: bool, as_json: bool) -> int:
    """Print every effective value as TOML, for a session on ``workspace`` if there is one."""
    from podbot.config.write import render_effective

    config = _loaded(g, workspace)
    if as_json:
        typer.echo(json.dumps(_for_programs(config), indent=2))
    else:
        typer.echo(render_effective(config, origins=origin), nl=False)
    return 0


def get(g: Globals, *, key: str, workspace: str | None, as_json: bool) -> int:
    """Print the value of one key; returns 1 if it has none. Raises UnknownKey."""
    from podbot.config.write import literal

    value = value_of(_loaded(g, workspace), _known(key))
    if as_json:
        typer.echo(json.dumps(dict(value) if isinstance(value, Mapping) else value))
    elif value is not None:
        typer.echo(value if isinstance(value, str) else literal(value))
    return int(value is None)


def set_value(g: Globals, *, key: str, value: str) -> int:
    """Set one key in the file, and say what the file has now. Raises UnknownKey, InvalidValue and PathError."""
    from podbot.config.coerce import from_text
    from podbot.config.write import literal, set_keys

    known = _known(key)
    options = g.load_options(os.environ, {}, {})
    typed = from_text(known, value, Origin("flag", "argument VALUE"))
    file, _, _ = config_location(options)
    set_keys(file, {key: typed})
    typer.echo(f"{key} = {literal(typed)}")
    origin = load_config(options).origin(key)
    if origin.kind != "file":
        typer.echo(f"podbot: {file} has it, but {origin} counts more", err=True)
    return 0


def edit(g: Globals) -> int:
    """Open the file in the operator's editor, then check it; returns the editor's status if that is not 0."""
    from podbot.config.write import render_example, write_file

    file, _, exists = config_location(g.load_options(os.environ, {}, {}))
    if not os.isatty(0):
        hint = f"Edit {file} by other means, or set one key: `podbot config set KEY VALUE`."
        raise UsageError(command="podbot config edit", reason="an editor needs a terminal", hint=hint)
    command = _editor()
    if not exists:
        write_file(file, render_example().encode())
    code = subprocess.run([*command, file], check=False).returncode
    return code if code > 0 else check(g)


def _editor() -> list[str]:
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    found = shlex.split(chosen) or [name for name in _EDITORS if shutil.which(name)][:1]
    if not found or shutil.which(found[0]) is None:
        reason = f"there is no program {found[0]!r}" if found else "there is no editor"
        hint = "Set EDITOR to the name of one that is installed."
        raise UsageError(command="podbot config edit", reason=reason, hint=hint)
    return found


def _known(key: str) -> Key:
    if key not in KEYS:
        raise UnknownKey(key=key, origin="argument KEY", suggestion=nearest_key(key))
    return KEYS[key]


def _loaded(g: Globals, workspace: str | None) -> AppConfig:
    values = {} if workspace is None else {"workspace.host_path": workspace, "workspace.source": "host_mount"}
    return load_config(g.load_options(os.environ, values, dict.fromkeys(values, "--workspace")))


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

"""``podbot config``: show the effective values, write and edit the file, print its path, check it."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from podbot.cli.globals import Globals
from podbot.cli.repeating import masked
from podbot.cli.report import say
from podbot.config.checks import shown
from podbot.config.coerce import from_text, from_value
from podbot.config.load import config_location, load_config
from podbot.config.models import AppConfig, Origin
from podbot.config.public_values import secret_notices, shown_config
from podbot.config.schema import KEYS, SECTIONS, Key, nearest_key, value_of
from podbot.errors import ConfigError, InvalidValue, PathError, UnknownKey, UsageError
from podbot.execution.codes import BY_SIGNAL
from podbot.visible_text import printable

_EDIT = "podbot config edit"
_EDITORS = ("sensible-editor", "nano", "vi")
_SET_EDITOR = "Set EDITOR to the name of one that is installed."
_ARGUMENT = Origin("flag", "argument VALUE")


def show(g: Globals, *, workspace: str | None, origin: bool, as_json: bool) -> int:
    """Print every effective value as TOML, for a session on ``workspace`` if there is one."""
    from podbot.config.write import render_effective

    config = shown_config(_loaded(g, workspace))
    if as_json:
        _print(json.dumps(_for_programs(config), indent=2))
    else:
        _print(render_effective(config, origins=origin).removesuffix("\n"))
    return 0


def get(g: Globals, *, key: str, workspace: str | None, as_json: bool) -> int:
    """Print the value of one key; returns 1 if it has none. Raises UnknownKey."""
    from podbot.config.write import literal

    value = value_of(_loaded(g, workspace), _known(key, "podbot config get"))
    if as_json:
        _print(json.dumps(dict(value) if isinstance(value, Mapping) else value))
    elif value is not None:
        _print(value if isinstance(value, str) else literal(value))
    return int(value is None)


def set_value(g: Globals, *, key: str, value: str) -> int:
    """Set one key in the file, and print what the file has now. Raises ConfigError and FilesystemError subclasses."""
    from podbot.config.write import literal, set_keys

    known = _known(key, "podbot config set")
    options = g.load_options(os.environ, {}, {})
    typed = _typed(known, value)
    file, named_by, _ = config_location(options)
    set_keys(file, {key: typed}, named_by)
    _print(f"{key} = {literal(typed)}")
    try:
        origin = load_config(options).origin(key)
    except ConfigError as exc:
        say(f"podbot: {file} has it; {printable(exc.message)}")
    else:
        if origin.kind != "file":
            say(f"podbot: {file} has it, but {origin} counts more")
    return 0


def _typed(key: Key, text: str) -> Any:
    """The value of ``text``: as in a variable, or a list or table in TOML, as `get` prints it. Raises InvalidValue."""
    import tomllib

    if key.kind in ("list", "table") and text.strip()[:1] in ("[", "{"):
        try:
            ((_, value),) = tomllib.loads(f"value = {text}").items()  # a ValueError, too, if it is more than one value
        except ValueError:
            reason, hint = "it is not one value in TOML", "Write it as TOML, or as a,b,c or name=value,name=value."
            raise InvalidValue(field=key.dotted, origin=str(_ARGUMENT), reason=reason, hint=hint) from None
        return from_value(key, value, _ARGUMENT)
    typed = from_text(key, text, _ARGUMENT)
    if typed is None:
        hint = "To unset the key, remove its line: `podbot config edit`."
        raise InvalidValue(field=key.dotted, origin=str(_ARGUMENT), reason="it is blank", hint=hint)
    return typed


def edit(g: Globals) -> int:
    """Open the file in the operator's editor, then check it; returns the editor's status if that is not 0."""
    import subprocess

    from podbot.config.write import edited, render_example, write_file

    file, named_by, exists = config_location(g.load_options(os.environ, {}, {}))
    if not os.isatty(0):
        hint = f"Edit {file} by other means, or set one key: `podbot config set KEY VALUE`."
        raise UsageError(command=_EDIT, reason="an editor needs a terminal", hint=hint)
    command = _editor()
    if not exists:
        edited(file, {}, named_by)  # raises for a link that leads nowhere
        write_file(file, render_example().encode())
    with _interrupts_for_the_editor():
        code = subprocess.run([*command, os.path.abspath(file)], check=False).returncode
    if code < 0:
        return BY_SIGNAL - code
    return code or check(g)


def _editor() -> list[str]:
    name = next((name for name in ("VISUAL", "EDITOR") if os.environ.get(name, "").strip()), None)
    try:
        found = shlex.split(os.environ[name]) if name else [one for one in _EDITORS if shutil.which(one)][:1]
    except ValueError as exc:
        raise UsageError(command=_EDIT, reason=f"${name} is not a command: {exc}", hint=_SET_EDITOR) from None
    if not found or shutil.which(found[0]) is None:
        reason = f"there is no program {found[0]!r}" if found else "there is no editor"
        raise UsageError(command=_EDIT, reason=reason, hint=_SET_EDITOR)
    return found


@contextlib.contextmanager
def _interrupts_for_the_editor() -> Iterator[None]:
    """Leave Ctrl-C in the terminal to the editor: `subprocess.run` would kill it, with what was not saved.

    The handlers do nothing. An ignored signal would stay ignored in the editor.
    """
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _known(key: str, command: str) -> Key:
    """The key that was typed. Raises UsageError for a table and for what is in one, and UnknownKey."""
    if key in KEYS:
        return KEYS[key]
    if key in SECTIONS:
        names = ", ".join(one.name for one in KEYS.values() if one.section == key)
        hint = f"Name one of its keys as {key}.KEY: {names}."
        raise UsageError(command=command, reason=f"{key} is a table of keys", hint=hint)
    key = masked(key)
    table, _, name = key.rpartition(".")
    if table in KEYS and KEYS[table].kind == "table":
        hint = f"`podbot config set {table} NAME=VALUE,…` sets all of it, and `podbot config edit` adds an entry."
        if command.endswith("get"):
            hint = f"`podbot config get {table}` prints it."
        raise UsageError(command=command, reason=f"{shown(name)} would be an entry of the table {table}", hint=hint)
    raise UnknownKey(key=key, origin="argument KEY", suggestion=nearest_key(key))


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
            reason="it exists already; `podbot config edit` changes it, and --force replaces all that is set in it",
        )
    write_file(path, render_example().encode())
    _print(path)
    return 0


def path(g: Globals) -> int:
    """Print the path of the file that would be read."""
    found, origin, exists = config_location(g.load_options(os.environ, {}, {}))
    _print(found)
    if not exists:
        say(f"podbot: no such file ({origin}); `podbot config init` writes one")
    return 0


def check(g: Globals) -> int:
    """Load every layer of the configuration and report whether it is valid."""
    from podbot.launch.mounts import check_configured_paths

    options = g.load_options(os.environ, {}, {})
    config = load_config(options)
    check_configured_paths(config)
    for notice in secret_notices(config):
        say(f"podbot: {printable(notice)}")
    found, _, exists = config_location(options)
    note = "" if exists else " (no such file: variables and defaults only)"
    _print(f"ok: {found}{note}")
    return 0


def _print(text: str) -> None:
    """Print a line. A path whose name is not UTF-8 keeps its bytes."""
    sys.stdout.flush()
    sys.stdout.buffer.write(os.fsencode(text) + b"\n")
    sys.stdout.buffer.flush()


def _for_programs(config: AppConfig) -> dict[str, Any]:
    report = {}
    for dotted, key in KEYS.items():
        value, origin = value_of(config, key), config.origin(dotted)
        plain = dict(value) if key.kind == "table" else value
        report[dotted] = {"value": plain, "origin": origin.kind, "detail": origin.detail}
        if origin.project:
            report[dotted]["project"] = origin.project
    return report

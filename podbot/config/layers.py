"""The layers of a configuration: a file, the environment, and the caller's overrides.

A layer maps dotted keys to validated values with their origin; it contains only keys that it sets.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from podbot.config.coerce import from_text, from_value, type_name
from podbot.config.models import LoadOptions, Origin
from podbot.config.schema import KEYS, SECTIONS, VARIABLES, nearest, nearest_key
from podbot.errors import ConfigFileNotFound, InvalidValue, MalformedFile, UnknownKey, UnsafeConfigFile
from podbot.frozen import Frozen, replace

LARGEST_FILE = 1 << 20  # bytes; a mistyped --config /dev/zero must end
PREFIX = "PODBOT_"
PROJECT = "project"  # the table of tables with settings of one project
CONFIG_PATH = "PODBOT_CONFIG_PATH"
RESERVED = frozenset({CONFIG_PATH, "PODBOT_CACHE"})
RESERVED_PREFIXES = ("PODBOT_E2E_", "PODBOT_BENCH_")


class Place:
    """Where a value of a file is, for an error: as text the file and the line, which is searched for only then."""

    def __init__(self, origin: Origin, data: bytes, path: tuple[str, ...] = ()) -> None:
        self.origin = origin
        self._data = data
        self._path = path

    def at(self, *names: str) -> Place:
        """The place of a key, or of a table, below this one."""
        return Place(self.origin, self._data, (*self._path, *names))

    def of_project(self, name: str) -> Place:
        """The same place, as the table of a project."""
        return Place(replace(self.origin, project=name), self._data, self._path)

    def __str__(self) -> str:
        from podbot.config.toml_lines import line_of

        return self.origin.on_line(line_of(self._data.decode(), self._path))


class Setting(Frozen):
    """A typed value and where it came from."""

    value: Any
    origin: Origin


Layer = Mapping[str, Setting]


def document_layer(document: Mapping[str, Any], place: Place, table: str = "") -> Layer:
    """The settings of a parsed TOML table with the sections of a configuration. Raises UnknownKey, InvalidValue.

    ``place``: of the table in its file. ``table``: its name, for messages; empty for the whole document.
    """
    layer = {}
    for dotted, given in _flat(document, place, table):
        value = from_value(KEYS[dotted], given, place.at(*dotted.split(".")))
        if value is not None:
            layer[dotted] = Setting(value, place.origin)
    return layer


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """The settings of ``PODBOT_*``. Raises UnknownKey for any such variable that is neither a key nor reserved."""
    layer = {}
    for name, text in environ.items():
        if not name.startswith(PREFIX) or name in RESERVED or name.startswith(RESERVED_PREFIXES):
            continue
        key, origin = VARIABLES.get(name), Origin("environment", _quoted(name))
        if key is None:
            raise UnknownKey(key=_quoted(name), origin="environment", suggestion=_nearest_variable(name))
        value = from_text(key, text, origin)
        if value is not None:
            layer[key.dotted] = Setting(value, origin)
    return layer


def override_layer(options: LoadOptions) -> Layer:
    """The caller's own settings, which have the highest priority. None means that a value was not given."""
    layer = {}
    for dotted, given in options.overrides.items():
        flag = options.flags.get(dotted)
        origin = Origin("flag", flag) if flag else Origin("override")
        if dotted in SECTIONS and isinstance(given, Mapping):
            name = next((name for name in map(str, given) if f"{dotted}.{name}" in KEYS), "KEY")
            reason = "a table is no value, and each of its keys is written by itself"
            hint = f'Write {{"{dotted}.{name}": …}}, with one dotted key for each value.'
            raise InvalidValue(field=dotted, origin=str(origin), reason=reason, hint=hint)
        if dotted not in KEYS:
            raise UnknownKey(key=_quoted(dotted), origin=str(origin), suggestion=nearest_key(dotted))
        value = None if given is None else from_value(KEYS[dotted], given, origin)
        if value is not None:
            layer[dotted] = Setting(value, origin)
    return layer


def read_file(path: str, named_by: Origin) -> bytes:
    """The bytes of a configuration file. Raises ConfigFileNotFound, UnsafeConfigFile, or MalformedFile if too large."""
    reasons: Mapping[type[Exception], str] = {
        FileNotFoundError: ConfigFileNotFound.MISSING,
        IsADirectoryError: ConfigFileNotFound.DIRECTORY,
    }
    try:
        with open(path, "rb") as file:
            _check_owner(os.fstat(file.fileno()), path, named_by)
            data = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as exc:
        is_circle = getattr(exc, "errno", None) == errno.ELOOP
        reason = (
            ConfigFileNotFound.CIRCLE
            if is_circle
            else reasons.get(type(exc)) or getattr(exc, "strerror", None) or str(exc)
        )
        raise ConfigFileNotFound(path=path, origin=str(named_by), reason=reason) from None
    if len(data) > LARGEST_FILE:
        raise MalformedFile(path=path, reason="it is larger than 1 MiB")
    return data


def _check_owner(found: os.stat_result, path: str, named_by: Origin) -> None:
    """Check the file's owner and mode, because a user who can write it can mount the operator's home.

    It must belong to this user or root and not be world-writable. A group may write to it, because many systems have
    umask 002 and a separate group for each user.
    """
    if found.st_uid not in (os.geteuid(), 0):
        raise UnsafeConfigFile(path=path, origin=str(named_by), reason=f"it belongs to user {found.st_uid}")
    if found.st_mode & stat.S_IWOTH:
        raise UnsafeConfigFile(path=path, origin=str(named_by), reason="every user can write to it")


def parse_file(path: str, data: bytes) -> dict[str, Any]:
    """``data`` as a TOML document; ``path`` is for the error. Raises MalformedFile."""
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as exc:
        from podbot.config.toml_words import undecodable

        reason, hint = undecodable(data, exc.start)
    except RecursionError:
        reason, hint = "it is nested too deeply", ""
    except ValueError as exc:  # TOMLDecodeError, and int()'s error for 5,000 digits
        from podbot.config.toml_words import explained

        reason, hint = explained(str(exc), data.decode())
    raise MalformedFile(path=path, reason=reason, hint=hint)


def _flat(document: Mapping[str, Any], place: Place, table: str) -> Iterator[tuple[str, Any]]:
    """(dotted key, value) for every known key; anything else in the document is an error."""
    for name, value in document.items():
        if name in SECTIONS:
            yield from _section(name, value, place, table)
        elif name in KEYS and "." not in name:
            yield name, value
        else:
            raise _unknown(name, value, place, table)


def _section(section: str, value: object, place: Place, table: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        hint = f"Write [{_in_table(table, section)}] on a line of its own and its keys below it."
        raise InvalidValue(
            field=_in_table(table, section),
            origin=str(place.at(section)),
            reason=f"expected a table, not {type_name(value)}",
            hint=hint,
        )
    for name, inner in value.items():
        dotted = f"{section}.{name}"
        if "." in name or dotted not in KEYS:
            near = nearest_key(dotted)
            key = _in_table(table, f"{section}.{_quoted(name)}")
            raise UnknownKey(key=key, origin=str(place.at(section, name)), suggestion=near)
        yield dotted, inner


def _unknown(name: str, value: object, place: Place, table: str) -> UnknownKey:
    near = nearest(name, (*SECTIONS, *([] if table else [PROJECT]))) if isinstance(value, dict) else ""
    key = _in_table(table, _quoted(name))
    return UnknownKey(key=key, origin=str(place.at(name)), suggestion=near or nearest_key(name))


def _in_table(table: str, name: str) -> str:
    return f"{table}.{name}" if table else name


def _nearest_variable(name: str) -> str:
    # Without the prefix, which would make all short names look similar.
    near = nearest(name.removeprefix(PREFIX), (known.removeprefix(PREFIX) for known in (*VARIABLES, *RESERVED)))
    return near and PREFIX + near


def _quoted(name: str) -> str:
    """A foreign name for a message: unquoted if it is one word, else quoted and limited in length."""
    bare = name.isascii() and name.replace("-", "_").isidentifier()
    return name if bare and len(name) <= 80 else repr(name[:80])

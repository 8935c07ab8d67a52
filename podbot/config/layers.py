"""The layers of a configuration: a file, the environment, and what the caller overrides.

A layer maps dotted keys to validated values with their origin; a key it does not set is not in it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from podbot.config.coerce import from_text, from_value, type_name
from podbot.config.models import LoadOptions, Origin
from podbot.config.schema import KEYS, SECTIONS, VARIABLES, nearest, nearest_key
from podbot.errors import ConfigFileNotFound, InvalidValue, MalformedFile, UnknownKey, UnsafeConfigFile

LARGEST_FILE = 1 << 20  # bytes; a mistyped --config /dev/zero must end
PREFIX = "PODBOT_"
CONFIG_PATH = "PODBOT_CONFIG_PATH"
RESERVED = frozenset({CONFIG_PATH, "PODBOT_CACHE"})
RESERVED_PREFIXES = ("PODBOT_E2E_", "PODBOT_BENCH_")


class Setting(NamedTuple):
    """A typed value and where it came from."""

    value: Any
    origin: Origin


Layer = Mapping[str, Setting]


def file_layer(path: str, named_by: Origin) -> Layer:
    """The settings of a TOML file. ``named_by`` says who chose the path, for ConfigFileNotFound.

    Raises ConfigFileNotFound (missing, a directory, unreadable), MalformedFile, UnknownKey, InvalidValue.
    """
    document = parse_file(path, read_file(path, named_by))
    origin = Origin("file", path)
    layer = {}
    for dotted, given in _flat(document, origin):
        value = from_value(KEYS[dotted], given, origin)
        if value is not None:
            layer[dotted] = Setting(value, origin)
    return layer


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """The settings of ``PODBOT_*``. Any such variable that is neither a key nor reserved is an UnknownKey."""
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
    """The caller's own settings, strongest of all. A value of None is one that was not given."""
    layer = {}
    for dotted, given in options.overrides.items():
        flag = options.flags.get(dotted)
        origin = Origin("flag", flag) if flag else Origin("override")
        if dotted not in KEYS:
            raise UnknownKey(key=_quoted(dotted), origin=str(origin), suggestion=nearest_key(dotted))
        value = None if given is None else from_value(KEYS[dotted], given, origin)
        if value is not None:
            layer[dotted] = Setting(value, origin)
    return layer


def read_file(path: str, named_by: Origin) -> bytes:
    """The bytes of a configuration file. Raises ConfigFileNotFound, UnsafeConfigFile, or MalformedFile when huge."""
    reasons: Mapping[type[Exception], str] = {FileNotFoundError: "no such file", IsADirectoryError: "it is a directory"}
    try:
        with open(path, "rb") as file:
            _check_owner(os.fstat(file.fileno()), path, named_by)
            data = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as exc:
        reason = reasons.get(type(exc)) or getattr(exc, "strerror", None) or str(exc)
        raise ConfigFileNotFound(path=path, origin=str(named_by), reason=reason) from None
    if len(data) > LARGEST_FILE:
        raise MalformedFile(path=path, reason="it is larger than 1 MiB")
    return data


def _check_owner(found: os.stat_result, path: str, named_by: Origin) -> None:
    """Whoever can write the file can mount the operator's home: it is ours or root's, and closed to the world.

    A group may write: many systems have umask 002 and a group of one.
    """
    if found.st_uid not in (os.geteuid(), 0):
        raise UnsafeConfigFile(path=path, origin=str(named_by), reason=f"it belongs to user {found.st_uid}")
    if found.st_mode & stat.S_IWOTH:
        raise UnsafeConfigFile(path=path, origin=str(named_by), reason="anybody can write to it")


def parse_file(path: str, data: bytes) -> dict[str, Any]:
    """``data`` as a TOML document; ``path`` is for the error. Raises MalformedFile."""
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as exc:
        reason = f"byte {exc.start} is not UTF-8"
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as exc:  # TOMLDecodeError, and what int() says of 5,000 digits
        reason = str(exc)
    raise MalformedFile(path=path, reason=reason)


def _flat(document: Mapping[str, Any], origin: Origin) -> Iterator[tuple[str, Any]]:
    """(dotted key, value) for every known key; anything else in the document is an error."""
    for name, value in document.items():
        if name in SECTIONS:
            yield from _section(name, value, origin)
        elif name in KEYS and "." not in name:
            yield name, value
        else:
            raise _unknown(name, value, origin)


def _section(section: str, value: object, origin: Origin) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        hint = f"Write [{section}] on a line of its own and its keys below it."
        raise InvalidValue(
            field=section, origin=str(origin), reason=f"expected a table, not {type_name(value)}", hint=hint
        )
    for name, inner in value.items():
        dotted = f"{section}.{name}"
        if "." in name or dotted not in KEYS:
            near = nearest_key(dotted)
            raise UnknownKey(key=f"{section}.{_quoted(name)}", origin=str(origin), suggestion=near)
        yield dotted, inner


def _unknown(name: str, value: object, origin: Origin) -> UnknownKey:
    near = nearest(name, SECTIONS) if isinstance(value, dict) else ""
    return UnknownKey(key=_quoted(name), origin=str(origin), suggestion=near or nearest_key(name))


def _nearest_variable(name: str) -> str:
    # Without the prefix, which would make every short name look like every other.
    near = nearest(name.removeprefix(PREFIX), (known.removeprefix(PREFIX) for known in (*VARIABLES, *RESERVED)))
    return near and PREFIX + near


def _quoted(name: str) -> str:
    """A name from outside as a message may show it: bare when it is one word, else quoted and bounded."""
    bare = name.isascii() and name.replace("-", "_").isidentifier()
    return name if bare and len(name) <= 80 else repr(name[:80])

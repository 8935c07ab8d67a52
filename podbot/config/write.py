"""Writing configuration: values as TOML, the documented example, one key set in an existing file."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from typing import Any

from podbot.config.coerce import from_value
from podbot.config.layers import parse_file, read_file
from podbot.config.models import DEFAULT_ORIGIN, AppConfig, Origin
from podbot.config.schema import KEYS, SECTIONS, Key, nearest_key, value_of
from podbot.errors import DiskFull, InvalidValue, PathError, UnknownKey
from podbot.places import make_dirs

_HEAD = """\
# podbot's configuration. Every key stands here commented out, at its default, or at an example when it
# has none; remove the # to set it. Flags win over PODBOT_* variables, those over this file, key by key.
# `podbot config show --origin` tells what is in force and where it came from.
"""
_WIDEST = 72  # columns: one long list must not push every origin off the screen


def literal(value: Any) -> str:
    """A configuration value as TOML, on one line."""
    import tomli_w

    match value:
        case Mapping():
            return "{ " + ", ".join(tomli_w.dumps({k: v}).strip() for k, v in value.items()) + " }" if value else "{}"
        case tuple() | list():
            return "[" + ", ".join(literal(item) for item in value) + "]"
        case _:
            return tomli_w.dumps({"v": value}).removeprefix("v = ").strip()


def render_example() -> str:
    """The whole documented example file; ``config.example.toml`` is this text."""
    lines = [_HEAD.rstrip()]
    for section in ("", *SECTIONS):
        if section:
            lines += ["", f"[{section}]"]
        for key in _keys(section):
            shown = key.example if key.default is None else key.default
            lines += ["", f"# {key.doc}", f"# {_facts(key)}", f"#{key.name} = {literal(shown)}"]
    return "\n".join(lines) + "\n"


def render_effective(config: AppConfig, *, origins: bool = False) -> str:
    """Every value in force as TOML; unset keys are comments. With ``origins`` each line ends in its own."""
    rows: list[tuple[str, str]] = []
    for section in ("", *SECTIONS):
        if section:
            rows += [("", ""), (f"[{section}]", "")]
        for key in _keys(section):
            value = value_of(config, key)
            line = f"# {key.name} is not set" if value is None else f"{key.name} = {literal(value)}"
            rows.append((line, _one_line(str(config.origin(key.dotted)))))
    width = max(len(line) for line, _ in rows if len(line) <= _WIDEST)
    texts = (f"{line:<{width}}  # {origin}" if origins and origin else line for line, origin in rows)
    return "\n".join(texts) + "\n"


def set_key(path: str, dotted: str, value: Any) -> None:
    """Set ``dotted`` in the file at ``path`` and keep every other byte; a missing file is made, 0600.

    The new text is parsed and compared before it replaces the old file in one rename. Raises
    UnknownKey, InvalidValue, MalformedFile, ConfigFileNotFound (unreadable), PathError, DiskFull.
    """
    from podbot.config.edit import CannotEdit, set_in_text

    origin = Origin("override")
    if dotted not in KEYS:
        raise UnknownKey(key=dotted, origin=str(origin), suggestion=nearest_key(dotted))
    checked = from_value(KEYS[dotted], value, origin)
    if checked is None:
        raise InvalidValue(field=dotted, origin=str(origin), reason="it is blank")
    data = read_file(path, DEFAULT_ORIGIN) if os.path.lexists(path) else b""
    parse_file(path, data)
    try:
        text = set_in_text(data.decode(), tuple(dotted.split(".")), literal(checked))
    except CannotEdit as exc:
        raise PathError(path=path, operation=f"set {dotted} in", reason=f"{exc}; write it by hand") from None
    write_file(path, text.encode())


def write_file(path: str, data: bytes) -> None:
    """Replace the file at ``path`` whole, or make it (0600, directories 0700). Raises PathError, DiskFull.

    A link is followed, so that a file kept elsewhere (a dotfiles repository) stays where it is.
    """
    target = os.path.realpath(path)
    try:
        make_dirs(os.path.dirname(target))
        _replace(target, data)
    except OSError as exc:
        if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise DiskFull(path=target, operation="write the configuration") from exc
        raise PathError(path=target, operation="write", reason=exc.strerror or str(exc)) from exc


def _replace(target: str, data: bytes) -> None:
    mode = os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o600
    temporary = f"{target}.{os.urandom(6).hex()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    directory = os.open(os.path.dirname(target), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _keys(section: str) -> Iterator[Key]:
    return (key for key in KEYS.values() if key.section == section)


def _facts(key: Key) -> str:
    facts = [key.type_name, key.variable]
    if key.default is None:
        facts.append("not set by default")
    elif key.example is not None:
        facts.append(f"for example {literal(key.example)}")
    return "; ".join(facts)


def _one_line(text: str) -> str:
    return text if text.isprintable() else repr(text)

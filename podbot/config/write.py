"""Writes configurations: values as TOML, the documented example, and one key in an existing file."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from podbot.atomic import NO_SPACE
from podbot.config.coerce import from_value
from podbot.config.layers import parse_file, read_file
from podbot.config.models import DEFAULT_ORIGIN, AppConfig, Origin
from podbot.config.schema import KEYS, SECTIONS, Key, nearest_key, value_of
from podbot.errors import DiskFull, InvalidValue, PathError, UnknownKey
from podbot.locks import wait_for_lock
from podbot.places import make_dirs

_HEAD = """\
# podbot's configuration. Every key is listed here, commented out, with its default, or with an example if it
# has none. Remove the # to set it. For each key, flags override PODBOT_* variables, and these override this file.
# `podbot config show --origin` prints the values in force and their origins.
"""
_PROJECTS = """
# Settings of one project, for sessions whose workspace is that directory or below it. They override those above; of
# several tables the one of the nearest directory applies, alone. The keys of [sandbox], [agent], [creds] and [session]
# are possible, and image, workspace.read_only, workspace.guard and workspace.container_path. The path is the real one:
# a link in it is not followed. Write each table below everything else.

#[project."~/src/shop"]
#agent.kind = "codex"
#agent.env_allowlist = ["OPENAI_API_KEY"]
#sandbox.memory = "4g"
#sandbox.publish = ["3000:3000"]
"""
_WIDEST = 72  # columns, so that one long list does not push every origin off the screen


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
    return "\n".join(lines) + "\n" + _PROJECTS


def render_effective(config: AppConfig, *, origins: bool = False) -> str:
    """Every effective value as TOML; unset keys are comments. With ``origins``, each line ends with its origin.

    The first line names the project whose settings are included, if there is one.
    """
    rows = [(f"# project {_one_line(config.project.table)}", "")] if config.project and config.project.table else []
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


def set_keys(path: str, values: Mapping[str, Any], named_by: Origin = DEFAULT_ORIGIN) -> None:
    """Set dotted keys in the file at ``path`` and keep every other byte; a missing file is created with mode 0600.

    ``named_by``: what named the file. The new text is parsed and compared before it replaces the old file in one
    rename, and another podbot that sets keys in that directory waits. Raises UnknownKey, InvalidValue, MalformedFile,
    ConfigFileNotFound (unreadable), PathError, DiskFull.
    """
    edited(path, values, named_by)  # so that nothing is made for what is refused
    with _alone_in(os.path.dirname(os.path.realpath(path))):
        write_file(path, edited(path, values, named_by))


@contextlib.contextmanager
def _alone_in(directory: str) -> Iterator[None]:
    """Hold the lock of the directory, which is made if it is missing. Raises PathError, DiskFull."""
    with _errors_about(directory):
        make_dirs(directory)
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system that has none for directories, as NFS
            wait_for_lock(handle, directory)
        yield
    finally:
        os.close(handle)


def edited(path: str, values: Mapping[str, Any], named_by: Origin = DEFAULT_ORIGIN) -> bytes:
    """What :func:`set_keys` would write. Raises what it raises before it writes."""
    data = read_file(path, named_by) if os.path.lexists(path) else b""
    parse_file(path, data)
    text = data.decode()
    for dotted, value in values.items():
        text = _with_key(path, text, dotted, value)
    return text.encode()


def _with_key(path: str, text: str, dotted: str, value: Any) -> str:
    from podbot.config.edit import CannotEdit, set_in_text, set_table_in_text

    origin = Origin("override")
    if dotted not in KEYS:
        raise UnknownKey(key=dotted, origin=str(origin), suggestion=nearest_key(dotted))
    checked = from_value(KEYS[dotted], value, origin)
    if checked is None:
        raise InvalidValue(field=dotted, origin=str(origin), reason="it is blank")
    place = tuple(dotted.split("."))
    try:
        if isinstance(checked, Mapping):
            literals = {name: literal(item) for name, item in checked.items()}
            return set_table_in_text(text, place, literals, literal(checked))
        return set_in_text(text, place, literal(checked))
    except CannotEdit as exc:
        raise PathError(path=path, operation=f"set {dotted} in", reason=f"{exc}; write it by hand") from None


def write_file(path: str, data: bytes) -> None:
    """Replace the file at ``path`` atomically, or create it (0600, directories 0700). Raises PathError, DiskFull.

    A link is followed, so that a file that is kept elsewhere (in a dotfiles repository) stays there.
    """
    target = os.path.realpath(path)
    with _errors_about(target):
        make_dirs(os.path.dirname(target))
        _replace(target, data)


@contextlib.contextmanager
def _errors_about(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        if exc.errno in NO_SPACE:
            raise DiskFull(path=path, operation="write the configuration") from exc
        raise PathError(path=path, operation="write", reason=exc.strerror or str(exc)) from exc


def _replace(target: str, data: bytes) -> None:
    mode = 0o600
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(target).st_mode
        if not stat.S_ISREG(found):  # as root, /dev/null would become a file
            raise PathError(path=target, operation="write", reason="it is not a regular file")
        mode = found & 0o777
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

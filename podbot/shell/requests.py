"""Validates the arguments of a shell's calls; an invalid one is a ValueError that names the value and the limit."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from podbot.errors import InvalidCommand, InvalidWorkingDirectory
from podbot.shell.shell_limits import ShellLimits

SHELL = "/bin/sh"  # runs a command that is a string
_LONG_WAIT = 1e6  # seconds; the kernel accepts no timeout above 2^31 ms
_PATH = 4096  # characters of a path
_SHOWN = 60  # characters of an invalid value that a message shows


def words_of(command: object, limits: ShellLimits) -> tuple[str, ...]:
    """``command`` as it appears in a result: ``(command,)`` for a string. Raises InvalidCommand."""
    if isinstance(command, str):
        words: tuple[object, ...] = (command,)
    elif isinstance(command, Sequence) and not isinstance(command, bytes | bytearray | memoryview):
        words = tuple(command)
    else:
        raise _invalid("command", command, "it is a string, or a sequence of strings")
    if not words or not words[0] or (isinstance(command, str) and not command.strip()):
        hint = 'Pass a program and its arguments, such as ["ls", "-l"], or a line for /bin/sh.'
        raise _invalid("command", command, "it must not be empty", hint)
    for word in words:
        _check_text("command", word)
    checked = tuple(str(word) for word in words)
    chars = sum(map(len, checked)) + len(checked) - 1
    if chars > limits.command_chars:
        hint = "Give long texts on stdin, or use execute_script."
        limit = f"it has {chars} characters, the limit is {limits.command_chars}"
        raise _invalid("command", " ".join(checked), limit, hint)
    return checked


def argv_of(command: str | Sequence[str], words: tuple[str, ...]) -> tuple[str, ...]:
    """The program and its arguments."""
    return (SHELL, "-c", words[0]) if isinstance(command, str) else words


def timeout_of(seconds: object, limits: ShellLimits) -> float:
    """A time limit in seconds. Raises InvalidCommand."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise _invalid("timeout_seconds", seconds, "it is a number of seconds")
    if not limits.min_timeout <= seconds <= limits.max_timeout:  # neither for NaN nor for an int too large for a float
        limit = f"it goes from {limits.min_timeout:g} to {limits.max_timeout:g} seconds"
        hint = "A command that takes longer can run in the background: start()."
        raise _invalid("timeout_seconds", seconds, limit, hint)
    return float(seconds)


def wait_of(seconds: object) -> float | None:
    """How long to wait, in seconds; None, also for more than 11 days, means no limit. Raises InvalidCommand."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds != seconds:  # noqa: PLR0124 - NaN
        raise _invalid("timeout_seconds", seconds, "it is a number of seconds, or None for no limit")
    if seconds <= 0:
        return 0.0
    return float(seconds) if seconds < _LONG_WAIT else None


def env_of(env: object, mode: object, limits: ShellLimits) -> Mapping[str, str]:
    """The variables of a command; the case of names is preserved. Raises InvalidCommand."""
    if mode not in ("extend", "replace"):
        raise _invalid("env_mode", mode, 'it is "extend" or "replace"')
    if env is None:
        return {}
    if not isinstance(env, Mapping):
        raise _invalid("env", env, "it maps names to values")
    if len(env) > limits.env_variables:
        raise _invalid("env", f"{len(env)} variables", f"the limit is {limits.env_variables}")
    size = 0
    for name, value in env.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise _invalid("env", name, "the name of a variable is a string, not empty, without = and NUL")
        _check_text("env", name)
        _check_text(f"env {shortened(name)}", value)
        size += len(name.encode()) + len(value.encode()) + 2
    if size > limits.env_bytes:
        raise _invalid("env", f"{size} bytes", f"the limit is {limits.env_bytes}", "Give long texts on stdin.")
    return dict(env)


def stdin_of(data: object, limits: ShellLimits) -> bytes:
    """The bytes of a command's stdin; empty for None. Raises InvalidCommand."""
    if data is None:
        return b""
    if isinstance(data, str):
        _check_encodable("stdin", data)
        raw = data.encode()
    elif isinstance(data, bytes | bytearray | memoryview):
        raw = bytes(data)
    else:
        raise _invalid("stdin", data, "it is text or bytes")
    if len(raw) > limits.stdin_bytes:
        hint = "Put more than that into a file that the command reads."
        raise _invalid("stdin", f"{len(raw)} bytes", f"the limit is {limits.stdin_bytes} bytes", hint)
    return raw


def script_of(script: object, limits: ShellLimits) -> bytes:
    """A script's text. Raises InvalidCommand."""
    if not isinstance(script, str) or not script.strip():
        raise _invalid("script", script, "it is a text that is not empty")
    _check_text("script", script)
    raw = script.encode()
    if len(raw) > limits.script_bytes:
        hint = "Put it into a file and run that."
        raise _invalid("script", f"{len(raw)} bytes", f"the limit is {limits.script_bytes} bytes", hint)
    return raw


def program_of(field: str, name: object) -> str:
    """The name or path of a program. Raises InvalidCommand."""
    _check_text(field, name)
    text = str(name)
    if not text.strip() or len(text) > 255 or "\n" in text:
        raise _invalid(field, name, "it is the name or the path of one program, of at most 255 characters")
    return text


def user_of(user: object) -> str:
    """The user of commands, ``USER`` or ``USER:GROUP``; empty is the backend's own. Raises InvalidCommand."""
    _check_text("user", user)
    text = str(user)
    if len(text) > 255 or not text.isprintable():
        raise _invalid("user", user, "it is USER or USER:GROUP, names or numbers, of at most 255 characters")
    return text


def root_of(root: object) -> str:
    """A shell's root, an absolute path, in its shortest form. Raises InvalidWorkingDirectory and InvalidCommand."""
    _check_text("root", root)
    path = str(root)
    if not path.startswith("/") or len(path) > _PATH:
        reason = f"a shell's root is an absolute path of at most {_PATH} characters"
        raise InvalidWorkingDirectory(path=shortened(path), root="/", reason=reason)
    return _normal(path)


def directory_of(cwd: object, root: str) -> str:
    """The absolute path of a command's directory. Raises InvalidWorkingDirectory and InvalidCommand.

    Only the path's text is compared here; a link that leads out is refused where the command is started.
    """
    if cwd is None:
        return root
    if not isinstance(cwd, str) or not cwd:
        raise _invalid("cwd", cwd, "it is the path of a directory")
    if "\0" in cwd or len(cwd) > _PATH:
        raise InvalidWorkingDirectory(
            path=shortened(cwd), root=root, reason=f"a path has at most {_PATH} characters, no NUL"
        )
    _check_encodable("cwd", cwd)
    path = _normal(posixpath.join(root, cwd))
    if not (root in ("/", path) or path.startswith(f"{root}/")):
        raise InvalidWorkingDirectory(path=shortened(cwd), root=root, reason=f"it lies outside {root}")
    return path


def size_of(columns: object, rows: object) -> tuple[int, int]:
    """A terminal's size. Raises InvalidCommand."""
    return number_of("columns", columns, 1, 4096), number_of("rows", rows, 1, 4096)


def signal_number(number: object) -> int:
    """The number of a signal. Raises InvalidCommand."""
    return number_of("number", number, 1, 64)


def number_of(field: str, value: object, lowest: int, highest: int, hint: str = "") -> int:
    """A whole number in a range. Raises InvalidCommand."""
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise _invalid(field, value, f"it goes from {lowest} to {highest}", hint)
    return value


def _normal(path: str) -> str:
    path = posixpath.normpath(path)
    return path[1:] if path.startswith("//") else path  # POSIX gives two leading slashes a meaning of their own


def _check_text(field: str, value: object) -> None:
    if not isinstance(value, str):
        raise _invalid(field, value, "it is a string")
    if "\0" in value:
        raise _invalid(field, value, "it must not hold a NUL character")
    _check_encodable(field, value)


def _check_encodable(field: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _invalid(field, value, "it holds a lone surrogate, which UTF-8 does not have") from None


def _invalid(field: str, value: object, limit: str, hint: str = "") -> InvalidCommand:
    shown = shortened(value)
    if field.startswith("env "):  # a variable's value may be a secret, and is never shown
        shown = "that value" if isinstance(value, str) else f"of type {type(value).__name__}"
    return InvalidCommand(field=field, value=shown, limit=limit, hint=hint)


def shortened(value: object) -> str:
    """An invalid value as a message shows it."""
    try:
        shown = ascii(value)
    except ValueError:  # an int of more than 4,300 digits
        shown = "a number with thousands of digits"
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"

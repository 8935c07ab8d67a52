"""The parameters of each tool. Values are checked when a tool is run, not when an object is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from podbot.tools import tool_limits as limits
from podbot.tools.constraints import (
    Choice,
    Empty,
    Flag,
    PathText,
    Seconds,
    Text,
    Variables,
    Whole,
    Words,
    param,
)

_FILE = PathText(root=False)
_CONTENT = Text(limits.CONTENT_CHARS, nul=True)
_GLOB = Text(limits.PATTERN_CHARS, ascii_only=True, blank=False)
_DIRECT = "the code reads and writes files of the workspace itself"


@dataclass(frozen=True, slots=True)
class ListDirectoryParams:
    """Of ``ls``."""

    path: str | None = param(
        PathText(), "The directory, from the workspace on; the workspace if missing.", default=None, nullable=True
    )


@dataclass(frozen=True, slots=True)
class ReadFileParams:
    """Of ``read_file``."""

    file_path: str = param(_FILE, "The file, from the workspace on.")
    offset: int = param(Whole(0), "How many lines to skip.", default=0)
    limit: int = param(
        Whole(1, limits.ENTRIES, clamped=True),
        f"The most lines to return; never more than {limits.ENTRIES:,}.",
        default=limits.ENTRIES,
    )


@dataclass(frozen=True, slots=True)
class WriteFileParams:
    """Of ``write_file``."""

    file_path: str = param(_FILE, "The new file, from the workspace on. It must not exist; its directories are made.")
    content: str = param(_CONTENT, "The whole content of the file.")


@dataclass(frozen=True, slots=True)
class EditFileParams:
    """Of ``edit_file``."""

    file_path: str = param(_FILE, "The file, from the workspace on.")
    old_string: str = param(
        Text(limits.CONTENT_CHARS, least=1, nul=True), "The text to replace, exactly as it is in the file."
    )
    new_string: str = param(_CONTENT, "The text to put in its place.")
    replace_all: bool = param(Flag(), "Replace every occurrence; otherwise there must be exactly one.", default=False)


@dataclass(frozen=True, slots=True)
class GlobParams:
    """Of ``glob``."""

    pattern: str = param(
        _GLOB, "A pattern for paths below path: * ? [...] match within a name, ** any number of directories."
    )
    path: str = param(PathText(), "The directory to search, from the workspace on.", default="/")


@dataclass(frozen=True, slots=True)
class GrepParams:
    """Of ``grep``."""

    pattern: str = param(Text(limits.PATTERN_CHARS, least=1), "A Python regular expression, searched in each line.")
    path: str | None = param(
        PathText(),
        "A directory or a file, from the workspace on; the workspace if missing.",
        default=None,
        nullable=True,
    )
    glob: str | None = param(
        _GLOB, "A pattern for the files to search: for names, or with a / for paths below path.",
        default=None, nullable=True,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RemoveParams:
    """Of ``rm``."""

    path: str = param(_FILE, "The file, link or directory, from the workspace on. A directory goes with all in it.")


@dataclass(frozen=True, slots=True)
class ShellExecuteParams:
    """Of ``shell_execute``."""

    command: tuple[str, ...] = param(
        Words(limits.COMMAND_CHARS), 'The program and its arguments; a line of a shell is ["sh", "-c", LINE].'
    )
    cwd: str | None = param(
        PathText(), "The working directory, relative to the workspace; the workspace if missing.",
        default=None, nullable=True,
    )  # fmt: skip
    env: Mapping[str, str] = param(
        Variables(limits.ENV_VARIABLES, limits.ENV_NAME_CHARS), "Additional variables.", default_factory=dict
    )
    stdin: str | None = param(
        Text(limits.CONTENT_CHARS, nul=True), "The text of its stdin; nothing if missing.", default=None, nullable=True
    )
    timeout_seconds: float = param(
        Seconds(*limits.SHELL_SECONDS),
        "Its time limit in seconds, from 1 to 120. A command that exceeds it is terminated and has exit code 124.",
        default=limits.SHELL_DEFAULT_SECONDS,
    )
    capture_output: bool = param(Flag(), "Whether to return what it prints, at most 32 KiB.", default=True)


@dataclass(frozen=True, slots=True)
class PodmanShellParams:
    """Of ``podman_shell``."""

    action: Literal["start", "exec", "stop"] = param(
        Choice(("start", "exec", "stop")),
        "start the container, exec a command in it (which also starts it), or stop and remove it.",
    )
    command: str | None = param(
        Text(limits.COMMAND_CHARS), "The line for /bin/sh; only for exec.", default=None, nullable=True
    )
    timeout_seconds: int | None = param(
        Whole(*limits.CONTAINER_SHELL_SECONDS),
        "The command's time limit in seconds; only for exec.",
        default=None,
        nullable=True,
    )


@dataclass(frozen=True, slots=True)
class EvalParams:
    """Of ``evaluate_python``. The last three exist for callers of similar tools, and must be empty."""

    code: str = param(
        Text(controls="\n\t\r", blank=False),
        "A Python program. It runs for at most 5 seconds in the workspace; print what you want to see.",
    )
    globals: Mapping[str, str] = param(Empty("object", _DIRECT), "Must be empty.", default_factory=dict)
    reads: tuple[object, ...] = param(Empty("array", _DIRECT), "Must be empty.", default=())
    writes: tuple[object, ...] = param(Empty("array", _DIRECT), "Must be empty.", default=())

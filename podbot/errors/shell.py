"""Errors of a shell. Each is also a ValueError, PermissionError or RuntimeError, which callers of a shell catch.

A failure of the engine, the container or the channel is a :class:`~podbot.errors.container.ContainerError`, which is a
RuntimeError.
"""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.base import PodbotError


class ShellError(PodbotError):
    """A shell did not run a command."""


class InvalidCommand(ShellError, ValueError):
    """An argument of a shell's call is not valid. ``field``: the argument's name; ``value``: its value, shortened."""

    field: str
    value: str
    limit: str
    hint: str = ""
    template: ClassVar[str] = "{field} cannot be {value}: {limit}"
    advice: ClassVar[str] = "{hint}"


class InvalidWorkingDirectory(ShellError, ValueError):
    """A command's working directory is outside the shell's root, is not a directory, or may not be entered."""

    path: str
    root: str
    reason: str
    template: ClassVar[str] = "a command cannot run in the directory {path}: {reason}"
    advice: ClassVar[str] = "Name a directory below {root}, for example by its absolute path."


class CommandBlocked(ShellError, PermissionError):
    """The validator refused a command. ``found``: the command, shortened."""

    pattern: str
    found: str
    reason: str
    template: ClassVar[str] = "the command {found} is blocked ({pattern}): {reason}"
    advice: ClassVar[str] = "Give the shell another CommandValidator if this is what you want to run."


class ShellUnavailable(ShellError, RuntimeError):
    """A shell cannot perform an operation: the image lacks a program, or podbot could not control the command."""

    shell: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "the {shell} shell cannot do this: {reason}"
    advice: ClassVar[str] = "{hint}"

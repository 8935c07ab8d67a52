"""Errors in the operator's flags, variables or files."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.base import PodbotError


class ConfigError(PodbotError):
    """A flag, a variable or a file is not valid."""

    exit_code: ClassVar[int] = 2


class UsageError(ConfigError):
    """An invalid command line. ``command``: as it is typed, such as ``podbot run``."""

    command: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "{command}: {reason}"

    @property
    def message(self) -> str:
        """One sentence that begins with the command."""
        return super().message.removeprefix("podbot").lstrip(": ")  # "podbot:" is printed in front of it

    advice: ClassVar[str] = "{hint}"


class MissingRequired(ConfigError):
    """A required value is missing or blank. ``field`` may name several, the last one after "and"."""

    field: str
    hint: str = ""
    template: ClassVar[str] = "{field} is required and not set"
    advice: ClassVar[str] = "{hint}"

    @property
    def message(self) -> str:
        """One sentence that names what is missing."""
        return super().message.replace(" is required", " are required") if " and " in self.field else super().message


class InvalidValue(ConfigError):
    """A value has the wrong type, is out of range, or is not one of the allowed values."""

    field: str
    origin: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "{field} ({origin}): {reason}"
    advice: ClassVar[str] = "{hint}"


class UnknownKey(ConfigError):
    """An unknown key; ``suggestion`` is the nearest known key, or empty."""

    key: str
    origin: str
    suggestion: str = ""
    template: ClassVar[str] = "unknown key {key} ({origin})"

    @property
    def remedy(self) -> str:
        if self.suggestion and self.key == f"{self.key.partition('.')[0]}.{self.suggestion}" and "file" in self.origin:
            return f"{self.suggestion} belongs to no section: write it above the first [section]."
        return f"Did you mean {self.suggestion}?" if self.suggestion else ""


class MalformedFile(ConfigError):
    """A configuration file is not valid TOML, or not UTF-8."""

    path: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "the configuration file {path} is not valid TOML: {reason}"

    @property
    def remedy(self) -> str:
        """What to write in the file."""
        return self.hint or "Correct the file."


class ConfigFileNotFound(ConfigError):
    """A configuration file that was named does not exist or cannot be read."""

    MISSING: ClassVar[str] = "no such file"
    DIRECTORY: ClassVar[str] = "it is a directory"
    CIRCLE: ClassVar[str] = "its symbolic links lead in a circle"
    path: str
    origin: str
    reason: str = MISSING
    template: ClassVar[str] = "the configuration file {path} ({origin}) cannot be read: {reason}"

    @property
    def remedy(self) -> str:
        """How to name a file that can be read."""
        known = {self.MISSING: "Correct the path.", self.DIRECTORY: "Name a file in that directory."}
        known[self.CIRCLE] = "Correct the links, or name the file itself."
        return known.get(self.reason, "Name another file, or make this one readable.")


class UnsafeConfigFile(ConfigError):
    """A configuration file that another user could have written."""

    path: str
    origin: str
    reason: str
    template: ClassVar[str] = "the configuration file {path} ({origin}) cannot be trusted: {reason}"
    advice: ClassVar[str] = (
        "It controls what a sandbox can access, and others could have changed it. Read it first; then put a copy in its"
        " place that is yours and that only you can write, or name that copy."
    )


class IllegalCombination(ConfigError):
    """A combination of subcommand, agent.kind, agent.mode and workspace.source that is not allowed."""

    field: str
    value: str
    origin: str
    reason: str
    hint: str
    template: ClassVar[str] = "{field} = {value} ({origin}): {reason}"
    advice: ClassVar[str] = "{hint}"


class MountRefused(ConfigError):
    """The mount policy refuses a host path, or a target inside the sandbox; ``operation`` is then AT_TARGET."""

    AT_TARGET: ClassVar[str] = "mount anything at"

    path: str
    origin: str
    reason: str
    hint: str = "Choose a project directory instead."
    operation: str = "mount"
    template: ClassVar[str] = "refused to {operation} {path} ({origin}): {reason}"
    advice: ClassVar[str] = "{hint}"


class TokenFileRefused(ConfigError):
    """A file of tokens cannot be used. ``origin``: who named it; empty for podbot's own."""

    path: str
    reason: str
    hint: str = ""
    origin: str = ""
    template: ClassVar[str] = "the token file {path} ({origin}) cannot be used: {reason}"
    advice: ClassVar[str] = "{hint}"

    @property
    def message(self) -> str:
        """One sentence that names the file, and its origin."""
        return super().message.replace(" ()", "", 1)


class AddressUnusable(ConfigError):
    """A server cannot listen at an address."""

    address: str
    reason: str
    template: ClassVar[str] = "cannot listen at {address}: {reason}"
    advice: ClassVar[str] = "Choose another address; port 0 is any free one."

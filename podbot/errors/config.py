"""What the operator asked for is not valid."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.base import PodbotError


class ConfigError(PodbotError):
    """What the operator asked for, by flag, variable or file, is not valid."""

    exit_code: ClassVar[int] = 2


class UsageError(ConfigError):
    """A command line that podbot cannot read. ``command``: as it is typed, such as ``podbot run``."""

    command: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "{command}: {reason}"

    @property
    def message(self) -> str:
        """One sentence that begins with the command."""
        return super().message.removeprefix("podbot ")  # who speaks is said in front of it

    @property
    def remedy(self) -> str:
        return self.hint or f"`{self.command} --help` shows what it takes."


class MissingRequired(ConfigError):
    """A value is needed and none was given (or it was blank). ``field`` may name several, the last after "and"."""

    field: str
    hint: str = ""
    template: ClassVar[str] = "{field} is required and not set"
    advice: ClassVar[str] = "{hint}"

    @property
    def message(self) -> str:
        """One sentence that names what is missing."""
        return super().message.replace(" is required", " are required") if " and " in self.field else super().message


class InvalidValue(ConfigError):
    """A value has the wrong type, is out of range, or is no member of its enumeration."""

    field: str
    origin: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "{field} ({origin}): {reason}"
    advice: ClassVar[str] = "{hint}"


class UnknownKey(ConfigError):
    """A key that podbot does not know; ``suggestion`` is the nearest known key, or empty."""

    key: str
    origin: str
    suggestion: str = ""
    template: ClassVar[str] = "unknown key {key} ({origin})"

    @property
    def remedy(self) -> str:
        near = f"Did you mean {self.suggestion}? " if self.suggestion else ""
        return f"{near}`podbot config show` lists every key."


class MalformedFile(ConfigError):
    """A configuration file is not valid TOML, or not UTF-8."""

    path: str
    reason: str
    template: ClassVar[str] = "the configuration file {path} is not valid TOML: {reason}"
    advice: ClassVar[str] = "Mend that line, or write a fresh file with `podbot config init --force`."


class ConfigFileNotFound(ConfigError):
    """A configuration file that was named does not exist or cannot be read."""

    path: str
    origin: str
    reason: str = "no such file"
    template: ClassVar[str] = "the configuration file {path} ({origin}) cannot be read: {reason}"
    advice: ClassVar[str] = "Name another file, or write one with `podbot config init`."


class UnsafeConfigFile(ConfigError):
    """A configuration file that somebody else could have written."""

    path: str
    origin: str
    reason: str
    template: ClassVar[str] = "the configuration file {path} ({origin}) cannot be trusted: {reason}"
    advice: ClassVar[str] = (
        "It decides what a sandbox may reach. Make it yours: `chown $(id -u) {path}; chmod o-w {path}`."
    )


class IllegalCombination(ConfigError):
    """(subcommand, agent.kind, agent.mode, workspace.source) do not go together."""

    field: str
    value: str
    origin: str
    reason: str
    hint: str
    template: ClassVar[str] = "{field} = {value} ({origin}): {reason}"
    advice: ClassVar[str] = "{hint}"


class MountRefused(ConfigError):
    """The mount policy refuses a host path or a target inside the sandbox."""

    path: str
    origin: str
    reason: str
    hint: str = "Choose a project directory instead."
    template: ClassVar[str] = "podbot will not mount {path} ({origin}): {reason}"
    advice: ClassVar[str] = "{hint}"

"""Every error that podbot raises on purpose.

::

    PodbotError
     +-- ConfigError       what the operator asked for is not valid       exit 2
     |    +-- MissingRequired, InvalidValue, UnknownKey, MalformedFile,
     |    |   ConfigFileNotFound, UnsafeConfigFile, IllegalCombination,
     |    |   MountRefused
     +-- ContainerError    the engine, or a container on it               exit 1
     |    +-- SocketNotFound, PermissionDenied, ConnectionFailed,
     |    |   HealthCheckFailed, EngineGone, UnsupportedEndpoint,
     |    |   ServiceStartFailed, CreateFailed, NameTaken, StartFailed,
     |    |   StopFailed, RemoveFailed, ExecFailed, UploadFailed,
     |    |   ImageNotFound, ImageBuildFailed, ContainerNotFound,
     |    |   NotOurs, SandboxDied, RequestFailed
     +-- FilesystemError   a host file or directory                       exit 1
     |    +-- PathError, UnsafeDirectory, SessionExists, DiskFull
     +-- StreamError       podbot's own stdin, stdout or terminal         exit 1
          +-- OutputClosed, TerminalTooSmall

An error carries fields, never a sentence alone: ``exc.path``, ``exc.origin``. ``str(exc)`` is the
message followed by the remedy. Fields never hold a secret.

The classes are built by a small base instead of ``@dataclass``: forty generated ``__init__`` cost
15 ms at import, which every ``podbot exec`` would pay.
"""

from __future__ import annotations

from typing import Any, ClassVar, dataclass_transform


@dataclass_transform(kw_only_default=True, eq_default=False)
class _Fields:
    """Keyword-only fields from annotations; a class attribute of the same name is the default."""

    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Not inspect.get_annotations: importing inspect costs 8 ms.
        annotations = cls.__dict__.get("__annotations__", {})  # noqa: RUF063
        own = (name for name, kind in annotations.items() if not str(kind).startswith("ClassVar"))
        cls._names = (*cls._names, *(n for n in own if n not in cls._names))

    def __init__(self, **fields: Any) -> None:
        unknown = fields.keys() - set(self._names)
        missing = [n for n in self._names if n not in fields and not hasattr(type(self), n)]
        if unknown or missing:
            raise TypeError(f"{type(self).__name__}: missing {missing}, unknown {sorted(unknown)}")
        for name, value in fields.items():
            setattr(self, name, value)


class PodbotError(_Fields, Exception):
    """Base of all. ``message`` says what happened and where it came from, ``remedy`` what to do."""

    template: ClassVar[str] = "podbot failed"
    advice: ClassVar[str] = ""
    exit_code: ClassVar[int] = 1

    def _render(self, text: str) -> str:
        return text.format_map({n: getattr(self, n) for n in self._names}).strip()

    @property
    def message(self) -> str:
        """One sentence naming the thing and its origin."""
        return self._render(self.template)

    @property
    def remedy(self) -> str:
        """What the operator can do; empty when nothing is known."""
        return self._render(self.advice)

    @property
    def fields(self) -> dict[str, Any]:
        """The error's fields by name, for programs (``--log-format json``)."""
        return {name: getattr(self, name) for name in self._names}

    def __str__(self) -> str:
        remedy = self.remedy
        return f"{self.message}. {remedy}" if remedy else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.fields))


def _rebuild(cls: type[PodbotError], fields: dict[str, Any]) -> PodbotError:
    return cls(**fields)


# --- configuration ---------------------------------------------------------------------------


class ConfigError(PodbotError):
    """What the operator asked for, by flag, variable or file, is not valid."""

    exit_code: ClassVar[int] = 2


class MissingRequired(ConfigError):
    """A value is needed and none was given (or it was blank)."""

    field: str
    hint: str = ""
    template: ClassVar[str] = "{field} is required and not set"
    advice: ClassVar[str] = "{hint}"


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


# --- engine and containers -------------------------------------------------------------------


class ContainerError(PodbotError):
    """The engine, or a container on it, failed."""


class SocketNotFound(ContainerError):
    """No engine socket: ``path`` is what was looked for, ``origin`` who named it."""

    path: str
    origin: str
    template: ClassVar[str] = "there is no engine socket at {path} ({origin})"
    advice: ClassVar[str] = (
        "Start one with `systemctl --user start podman.socket`, or unset it so that podbot starts its own;"
        " `podbot doctor` shows what is missing."
    )


class PermissionDenied(ContainerError):
    """The engine socket exists and this user may not use it."""

    path: str
    origin: str
    template: ClassVar[str] = "this user may not use the engine socket {path} ({origin})"
    advice: ClassVar[str] = "Use your own rootless socket (`podbot doctor` shows how), or ask for access to this one."


class UnsupportedEndpoint(ContainerError):
    """An endpoint whose form podbot cannot use on this system."""

    endpoint: str
    origin: str
    reason: str
    template: ClassVar[str] = "the engine endpoint {endpoint} ({origin}) cannot be used: {reason}"
    advice: ClassVar[str] = "Forms: unix:///path, /path, tcp://host:port, http(s)://host:port, ssh://user@host/path."
    exit_code: ClassVar[int] = 2


class ConnectionFailed(ContainerError):
    """The engine could not be reached."""

    endpoint: str
    origin: str
    reason: str
    template: ClassVar[str] = "cannot connect to the engine at {endpoint} ({origin}): {reason}"
    advice: ClassVar[str] = "Check that the engine runs there; `podbot doctor` tests it."


class HealthCheckFailed(ContainerError):
    """Something answers at the endpoint, but not like a healthy Podman engine, or not within 10 s."""

    endpoint: str
    reason: str
    template: ClassVar[str] = "the engine at {endpoint} failed its health check: {reason}"
    advice: ClassVar[str] = "podbot needs Podman 4 or later behind that endpoint; `podbot doctor` says more."


class EngineGone(ContainerError):
    """The engine went away in the middle of a request or a session."""

    endpoint: str
    reason: str
    template: ClassVar[str] = "the engine at {endpoint} went away: {reason}"
    advice: ClassVar[str] = "When it is back, `podbot ps -a` shows what is left and `podbot stop` removes it."


class ServiceStartFailed(ContainerError):
    """podbot's own private engine service did not come up."""

    reason: str
    log: str
    template: ClassVar[str] = "podbot could not start a private engine service: {reason}"
    advice: ClassVar[str] = "`podbot doctor` names the cause; the service's own words are in {log}."


class RequestFailed(ContainerError):
    """The engine refused a request that has no error class of its own."""

    operation: str
    status: int
    reason: str
    template: ClassVar[str] = "the engine refused to {operation} (HTTP {status}): {reason}"


class ContainerNotFound(ContainerError):
    """No container of that name or id."""

    container: str
    template: ClassVar[str] = "there is no container {container}"
    advice: ClassVar[str] = "`podbot ps -a` lists podbot's sessions."


class NotOurs(ContainerError):
    """A container that podbot did not create, and so does not touch."""

    container: str
    template: ClassVar[str] = "{container} is not one of podbot's containers"
    advice: ClassVar[str] = "podbot stops only what it started; `podbot ps -a` lists that. Use the engine's own tools."


class CreateFailed(ContainerError):
    """The engine refused to create the container."""

    container: str
    image: str
    reason: str
    template: ClassVar[str] = "the engine could not create {container} from {image}: {reason}"
    advice: ClassVar[str] = "`podbot run --dry-run` shows the request; `podbot doctor` checks the engine."


class NameTaken(ContainerError):
    """A container of that name exists already."""

    container: str
    template: ClassVar[str] = "the name {container} is taken by another container"
    advice: ClassVar[str] = "Choose another --name, or end that one with `podbot stop {container}`."


class StartFailed(ContainerError):
    """The container was created and did not start."""

    container: str
    reason: str
    template: ClassVar[str] = "the container {container} did not start: {reason}"
    advice: ClassVar[str] = "`podbot doctor` checks the engine for the usual causes."


class StopFailed(ContainerError):
    """The container did not stop."""

    container: str
    reason: str
    template: ClassVar[str] = "the container {container} did not stop: {reason}"
    advice: ClassVar[str] = "Try `podbot stop --time 0 {container}`."


class RemoveFailed(ContainerError):
    """The container could not be removed."""

    container: str
    reason: str
    template: ClassVar[str] = "the container {container} could not be removed: {reason}"
    advice: ClassVar[str] = "`podbot stop --all` tries again."


class ExecFailed(ContainerError):
    """A command could not be run in the container, or its end was never learned."""

    container: str
    command: str
    reason: str
    template: ClassVar[str] = "could not run {command} in {container}: {reason}"


class SandboxDied(ContainerError):
    """The container stopped while a command was running in it."""

    container: str
    reason: str
    template: ClassVar[str] = "the sandbox {container} ended while its command was running: {reason}"
    advice: ClassVar[str] = "It was stopped from outside or ran out of a limit; `podbot ps -a` shows what is left."


class UploadFailed(ContainerError):
    """Files could not be put into the container."""

    container: str
    path: str
    reason: str
    template: ClassVar[str] = "could not write {path} in {container}: {reason}"


class ImageNotFound(ContainerError):
    """The image is not on the engine and podbot does not pull by itself."""

    image: str
    origin: str
    template: ClassVar[str] = "the image {image} ({origin}) is not on this engine"
    advice: ClassVar[str] = "Build podbot's own with `podbot setup`, or fetch it with `podman pull {image}`."


class ImageBuildFailed(ContainerError):
    """A build of podbot's image failed; ``step`` is what was being done."""

    image: str
    step: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "building {image} failed at {step}: {reason}"
    advice: ClassVar[str] = "{hint}"


# --- host files ------------------------------------------------------------------------------


class FilesystemError(PodbotError):
    """A host file or directory failed podbot."""


class PathError(FilesystemError):
    """An operation on a path failed."""

    path: str
    operation: str
    reason: str
    template: ClassVar[str] = "cannot {operation} {path}: {reason}"


class UnsafeDirectory(FilesystemError):
    """A directory that podbot must own privately is a link, or somebody else's, or open to others."""

    path: str
    reason: str
    template: ClassVar[str] = "podbot's runtime directory {path} cannot be trusted: {reason}"
    advice: ClassVar[str] = "Remove it, or point XDG_RUNTIME_DIR at a directory that only you can write."


class SessionExists(FilesystemError):
    """Another live session holds that name."""

    session: str
    template: ClassVar[str] = "a session named {session} is already running"
    advice: ClassVar[str] = "Choose another --name, or end that one with `podbot stop {session}`."


class DiskFull(FilesystemError):
    """No space left where podbot, or the engine, writes."""

    path: str
    operation: str
    template: ClassVar[str] = "no space left on {path} while trying to {operation}"
    advice: ClassVar[str] = "Free some space (`podman system prune` removes unused images), then try again."


# --- podbot's own streams --------------------------------------------------------------------


class StreamError(PodbotError):
    """podbot's own stdin, stdout or terminal failed it."""


class OutputClosed(StreamError):
    """The reader of podbot's output went away (EPIPE), or there never was one. ``effect``: what became of the work."""

    stream: str
    effect: str = ""
    template: ClassVar[str] = "the reader of podbot's {stream} went away{effect}"


class TerminalTooSmall(StreamError):
    """The terminal has fewer columns or rows than an agent can draw in."""

    columns: int
    rows: int
    minimum_columns: int
    minimum_rows: int
    template: ClassVar[str] = (
        "the terminal is {columns}x{rows}; an agent's screen needs at least {minimum_columns}x{minimum_rows}"
    )
    advice: ClassVar[str] = "Enlarge it, or run the agent without a terminal (`podbot run … < prompt`)."

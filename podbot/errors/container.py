"""The engine, or a container on it, failed."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.base import PodbotError


class ContainerError(PodbotError):
    """The engine, or a container on it, failed."""


class SocketNotFound(ContainerError):
    """No engine socket: ``path`` is what was looked for, ``origin`` who named it.

    ``engine_hint``, here and below: what the engine's own program can do about it, one sentence.
    """

    path: str
    origin: str
    engine_hint: str = ""
    template: ClassVar[str] = "there is no engine socket at {path} ({origin})"
    advice: ClassVar[str] = "{engine_hint} `podbot doctor` shows what is missing."


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
    """Something answers at the endpoint, but not like a healthy engine of its kind, or not within 10 s."""

    endpoint: str
    reason: str
    engine_hint: str = ""
    template: ClassVar[str] = "the engine at {endpoint} failed its health check: {reason}"
    advice: ClassVar[str] = "{engine_hint} `podbot doctor` says more."


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


class EngineStorageFull(ContainerError):
    """No space left where the engine keeps images and containers; ``operation`` is what it could not do."""

    operation: str
    engine_hint: str = ""
    template: ClassVar[str] = "no space left in the engine's storage: cannot {operation}"
    advice: ClassVar[str] = (
        "Free some (`podbot stop --rm` removes sessions that `podbot ps -a` lists), then try again. {engine_hint}"
    )


class CommandSurvived(ContainerError):
    """A command that podbot was to end may still run: no signal reached it, or the kernel keeps it after KILL."""

    container: str
    command: str
    template: ClassVar[str] = "could not end {command} in {container}, so it may still run"
    advice: ClassVar[str] = "`podbot stop --time 0 {container}` ends everything in that session."


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
    advice: ClassVar[str] = (
        "The image may have no usable {path}. To go without your logins, set creds.copy_claude = false and"
        " creds.copy_codex = false."
    )


class ImageNotFound(ContainerError):
    """The image is not on the engine and podbot does not pull by itself."""

    image: str
    origin: str
    hint: str = ""
    engine_hint: str = ""
    template: ClassVar[str] = "the image {image} ({origin}) is not on this engine"
    advice: ClassVar[str] = "{hint} Build podbot's own with `podbot setup`. {engine_hint}"


class AgentNotInImage(ContainerError):
    """An image of podbot's was built without this agent; ``agents`` are those to build it with, with commas."""

    image: str
    agent: str
    agents: str
    template: ClassVar[str] = "{image} was built without {agent}"
    advice: ClassVar[str] = (
        "`podbot image build --agents {agents}` builds it in; an image that has it by other means says so with a label"
        " (docs/reference/images.md)."
    )


class MachineNotReady(ContainerError):
    """No session could start on this machine, or none with the configured network, or an image has no room.

    ``problems``: what `podbot doctor` found, in its words; ``fixes``: the commands that fix it.
    """

    problems: str
    fixes: str
    template: ClassVar[str] = "this machine is not ready for a session: {problems}"
    advice: ClassVar[str] = "{fixes}"


class NoImageBuilder(ContainerError):
    """An engine of a kind that makes no images was to make one. ``engine``: its name."""

    engine: str
    template: ClassVar[str] = "podbot cannot build images with {engine}"
    advice: ClassVar[str] = "Name an image that is on the engine already: `image` in the configuration, or --image."


class ImageBuildFailed(ContainerError):
    """A build of podbot's image failed; ``step`` is what was being done."""

    image: str
    step: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "building {image} failed at {step}: {reason}"
    advice: ClassVar[str] = "{hint}"

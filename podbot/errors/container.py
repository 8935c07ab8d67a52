"""The engine, or a container on it, failed."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.base import PodbotError


class ContainerError(PodbotError, RuntimeError):
    """The engine, or a container on it, failed."""


class SocketNotFound(ContainerError):
    """No engine socket at ``path``; ``origin``: where that path was named.

    ``engine_hint``, here and below: a sentence on what the engine's own program can do about it.
    """

    path: str
    origin: str
    engine_hint: str = ""
    template: ClassVar[str] = "there is no engine socket at {path} ({origin})"

    @property
    def remedy(self) -> str:
        """What the engine's own program can do about it, or what to look at."""
        return self.engine_hint or "Check that the path is right and that the engine runs."


class EngineNotInstalled(ContainerError):
    """No engine is named or found, and the program with which podbot would start one is not on this machine.

    ``engine``: its name. ``install``: what installs it, as a sentence without its end.
    """

    engine: str
    install: str
    template: ClassVar[str] = "{engine} is not installed"
    advice: ClassVar[str] = "{install}; or name an engine that runs elsewhere with the key engine_socket."


class PermissionDenied(ContainerError):
    """The engine socket exists and this user may not use it."""

    path: str
    origin: str
    template: ClassVar[str] = "this user may not use the engine socket {path} ({origin})"
    advice: ClassVar[str] = "Use your own rootless socket, or ask for access to this one."


class UnsupportedEndpoint(ContainerError):
    """An endpoint of a form that podbot does not support on this system."""

    endpoint: str
    origin: str
    reason: str
    template: ClassVar[str] = "the engine endpoint {endpoint} ({origin}) cannot be used: {reason}"
    advice: ClassVar[str] = "Forms: unix:///path, /path, tcp://host:port, http(s)://host:port, ssh://user@host/path."
    exit_code: ClassVar[int] = 2


class ConnectionFailed(ContainerError):
    """The engine is not reachable."""

    endpoint: str
    origin: str
    reason: str
    template: ClassVar[str] = "cannot connect to the engine at {endpoint} ({origin}): {reason}"
    advice: ClassVar[str] = "Check that the engine runs there."


class HealthCheckFailed(ContainerError):
    """The server at the endpoint is not a healthy engine of its kind, or gave no answer in time."""

    endpoint: str
    reason: str
    origin: str = "in use"
    engine_hint: str = ""
    template: ClassVar[str] = "the engine at {endpoint} ({origin}) failed its health check: {reason}"
    advice: ClassVar[str] = "{engine_hint}"


class EngineGone(ContainerError):
    """The connection to the engine was lost during a request or a session."""

    endpoint: str
    reason: str
    template: ClassVar[str] = "the engine at {endpoint} went away: {reason}"
    advice: ClassVar[str] = "Sessions that it ran may still exist when it is back."


class ServiceStartFailed(ContainerError):
    """podbot's private engine service did not start."""

    reason: str
    log: str
    template: ClassVar[str] = "podbot could not start a private engine service: {reason}"
    advice: ClassVar[str] = "The service's output is in {log}."


class RequestFailed(ContainerError):
    """The engine refused a request that has no error class of its own."""

    operation: str
    status: int
    reason: str
    template: ClassVar[str] = "the engine refused to {operation} (HTTP {status}): {reason}"


class EngineStorageFull(ContainerError):
    """No space left in the engine's storage; ``operation`` is what failed."""

    operation: str
    engine_hint: str = ""
    template: ClassVar[str] = "no space left in the engine's storage: cannot {operation}"
    advice: ClassVar[str] = "Free some, for example by removing kept sessions, then try again. {engine_hint}"


class KernelLimitReached(ContainerError):
    """A limit of the kernel is used up, whose error sounds like that of a full disk. ``limit``: what it counts."""

    operation: str
    limit: str
    hint: str
    template: ClassVar[str] = "the kernel allows no more {limit}: cannot {operation}"
    advice: ClassVar[str] = "{hint}"


class CommandSurvived(ContainerError):
    """A command may still run although podbot tried to terminate it: no signal reached it, or it survived KILL.

    ``hint``: instead of the remedy for a command in a session.
    """

    container: str
    command: str
    hint: str = ""
    template: ClassVar[str] = "could not terminate {command} in {container}, so it may still be running"
    advice: ClassVar[str] = "Stopping that container ends everything in it."

    @property
    def remedy(self) -> str:
        """See PodbotError."""
        return self.hint or super().remedy


class ContainerNotFound(ContainerError):
    """No container of that name or id."""

    container: str
    template: ClassVar[str] = "there is no container {container}"
    advice: ClassVar[str] = (
        "Check the name: it is that of a session, or the container's id. podbot.ps(config) lists the sessions."
    )


class SandboxClosed(ContainerNotFound):
    """A sandbox was used after its block."""

    template: ClassVar[str] = "the sandbox {container} is closed, because its with block has ended"
    advice: ClassVar[str] = "Use it inside the block."


class NotOurs(ContainerError):
    """A container that podbot did not create, and therefore does not touch."""

    container: str
    template: ClassVar[str] = "{container} is not one of podbot's containers"
    advice: ClassVar[str] = "Use the engine's own tools for containers that podbot did not create."


class CreateFailed(ContainerError):
    """The engine refused to create the container. ``hint``: instead of the remedy for any cause."""

    container: str
    image: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "the engine could not create {container} from {image}: {reason}"
    advice: ClassVar[str] = "Check the image, the mounts and the limits that the reason names."

    @property
    def remedy(self) -> str:
        """See PodbotError."""
        return self.hint or super().remedy


class NetworkNotFound(ContainerError):
    """The engine has no network of this name. ``origin``: where it was named; empty if that is not known."""

    network: str
    origin: str = ""
    engine_hint: str = ""
    template: ClassVar[str] = "the engine has no network {network} (sandbox.network, {origin})"
    advice: ClassVar[str] = (
        "Set sandbox.network to default, filtered, none, host, or a network that the engine has. {engine_hint}"
    )

    @property
    def message(self) -> str:
        """One sentence that names the network, and its origin."""
        return super().message.replace("(sandbox.network, )", "(sandbox.network)")


class NameTaken(ContainerError):
    """A container of that name exists already."""

    container: str
    template: ClassVar[str] = "a container named {container} exists already"
    advice: ClassVar[str] = "Choose another name."


class StartFailed(ContainerError):
    """The container was created but did not start. ``detail``, here and below: the engine's own words.

    ``hint``: instead of the remedy for any cause.
    """

    UNKNOWN: ClassVar[str] = "the engine could not start it"  # the reason for what only the engine's words say
    RUNS: ClassVar[str] = "it runs, is paused or is stopping"

    container: str
    reason: str
    hint: str = ""
    detail: str = ""
    template: ClassVar[str] = "the container {container} did not start: {reason}"
    advice: ClassVar[str] = "Check the cause on the engine's machine, then try again."

    @property
    def remedy(self) -> str:
        """See PodbotError."""
        return self.hint or super().remedy


class PortUnusable(ContainerError):
    """A port of the engine's machine could not be published, so the container did not start; it was removed, or is
    stopped if it was kept. ``at``: the port, with its address where the engine names it.
    """

    at: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "cannot publish {at}: {reason}"
    advice: ClassVar[str] = "{hint}"


class StopFailed(ContainerError):
    """The container did not stop."""

    container: str
    reason: str
    detail: str = ""
    template: ClassVar[str] = "the container {container} did not stop: {reason}"
    advice: ClassVar[str] = "Try again without a grace period."


class RemoveFailed(ContainerError):
    """The container could not be removed."""

    UNKNOWN: ClassVar[str] = "it still runs, although the engine records that it does not"
    OTHERS: ClassVar[str] = (
        "the engine would kill process {pid} of this machine, which has the process id of a command that has ended;"
        " it can be removed when that process has ended"
    )
    CHANGING: ClassVar[str] = "the engine's record of its state does not allow that"

    container: str
    reason: str
    detail: str = ""
    template: ClassVar[str] = "the container {container} could not be removed: {reason}"
    advice: ClassVar[str] = "Try again."


class ExecFailed(ContainerError):
    """A command could not be run in the container, or its status is unknown. ``detail``: the engine's own words."""

    NOT_RUNNING: ClassVar[str] = "it is not running"  # the reason when the container is stopped
    LOST: ClassVar[str] = "the sandbox's processes run, but the engine records it as stopped and runs no command in it"
    NO_ACCOUNT: ClassVar[str] = "the sandbox has no"  # the beginning of the reason for a user or group
    NO_DIRECTORY: ClassVar[str] = "its working directory"  # the beginning of the reason for a working directory
    NOT_STARTED: ClassVar[str] = "the engine could not start it"

    container: str
    command: str
    reason: str
    detail: str = ""
    template: ClassVar[str] = "could not run {command} in {container}: {reason}"

    @property
    def remedy(self) -> str:
        """See PodbotError."""
        return next((text for beginning, text in _OF_EXEC.items() if self.reason.startswith(beginning)), "")


# The remedies of ExecFailed, by the beginning of its reason.
_OF_EXEC = {
    ExecFailed.NOT_RUNNING: "A session that is kept can be started again.",
    ExecFailed.LOST: "Stop the session, which ends them. One that is kept can then be started again.",
    ExecFailed.NO_ACCOUNT: "Name one of the sandbox's own /etc/passwd or /etc/group, or a number.",
    ExecFailed.NO_DIRECTORY: "Name a directory that the sandbox has, as an absolute path.",
    ExecFailed.NOT_STARTED: "The error's field detail has the engine's own words.",
}


class UploadFailed(ContainerError):
    """Files could not be copied into the container."""

    container: str
    path: str
    reason: str
    template: ClassVar[str] = "could not write {path} in {container}: {reason}"
    advice: ClassVar[str] = (
        "The image may have no usable {path}. To start without your logins, set creds.copy_claude = false and"
        " creds.copy_codex = false."
    )


class ImageNotFound(ContainerError):
    """The image is not on the engine, and podbot does not pull images by itself."""

    image: str
    origin: str
    hint: str = ""
    engine_hint: str = ""
    template: ClassVar[str] = "the image {image} ({origin}) is not on this engine"
    advice: ClassVar[str] = "{hint} Build podbot's own image, or name one that is there. {engine_hint}"


class AgentNotInImage(ContainerError):
    """An image of podbot's was built without this agent; ``agents``: the agents to build it with, comma-separated."""

    image: str
    origin: str
    agent: str
    agents: str
    template: ClassVar[str] = "the image {image} ({origin}) was built without {agent}"
    advice: ClassVar[str] = (
        "Build podbot's image with the agents {agents}. An image that already has the agent must say so with the label"
        " io.podbot.agents."
    )


class MachineNotReady(ContainerError):
    """No session can start on this machine, or none with the configured network, or there is no room for an image.

    `podbot setup` raises it before it builds anything; a session that did not start raises it in place of StartFailed.

    ``problems``: the findings of `podbot doctor`; ``fixes``: the commands that fix them.
    """

    problems: str
    fixes: str
    template: ClassVar[str] = "this machine is not ready for a session: {problems}"
    advice: ClassVar[str] = "{fixes}"


class RepairFailed(ContainerError):
    """A command that prepares this machine, to which the operator agreed, failed. ``reason``: its last lines."""

    command: str
    reason: str
    template: ClassVar[str] = "`{command}` failed: {reason}"
    advice: ClassVar[str] = "Run it by hand to see all of its output."


class NoImageBuilder(ContainerError):
    """This kind of engine cannot make images. ``engine``: its name."""

    engine: str
    template: ClassVar[str] = "podbot cannot build or remove images with {engine}"
    advice: ClassVar[str] = "Name an image that exists on the engine, with the key `image`."


class ImageNotRemoved(ContainerError):
    """An image stays on the engine."""

    MISSING: ClassVar[str] = "it is not on this engine"
    image: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "the image {image} was not removed: {reason}"
    advice: ClassVar[str] = "{hint}"


class ImageBuildFailed(ContainerError):
    """A build of podbot's image failed at ``step``."""

    image: str
    step: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "building {image} failed at {step}: {reason}"
    advice: ClassVar[str] = "{hint}"

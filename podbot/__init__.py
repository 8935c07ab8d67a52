"""podbot: run any AI coding agent inside a Podman sandbox.

``import podbot`` is cheap: names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podbot._version import __version__
from podbot.deferred import loader

if TYPE_CHECKING:
    from podbot.api.agent_logins import login, logins, logout
    from podbot.api.conversations import find_history, history, remove_history
    from podbot.api.diagnosis import doctor
    from podbot.api.engines import open_engine
    from podbot.api.hosting import host
    from podbot.api.images import build_image, list_images
    from podbot.api.preparing import setup
    from podbot.api.sandboxes import async_sandbox, sandbox
    from podbot.api.sessions import exec_, load_config, plan, ps, run, start, stop
    from podbot.api.shells import open_shell
    from podbot.api.tokens import token_daemon
    from podbot.config.models import AppConfig, LoadOptions
    from podbot.engine.check import Check
    from podbot.errors import (
        CloneError,
        ConfigError,
        ContainerError,
        FilesystemError,
        GitHubError,
        PodbotError,
        SessionError,
        ShellError,
        StreamError,
    )
    from podbot.events import Emit, Event
    from podbot.exec_spec import ExecSpec
    from podbot.execution.result import BytesResult, ExecutionResult
    from podbot.execution.runner import ExecIO, ExecStatus
    from podbot.guard.marks import Finding, GuardReport
    from podbot.hosting.host import HostResult
    from podbot.hosting.hosted_session import HostedSession
    from podbot.images.image_build import BuildRequest, BuildResult, Step
    from podbot.images.images_list import SandboxImage
    from podbot.launch.describe import describe
    from podbot.launch.types import AgentPlan, LaunchPlan, LaunchRequest, SandboxPlan
    from podbot.management.history_list import AgentHistory, ProjectHistory
    from podbot.management.login_list import AgentLogin
    from podbot.management.manage import SessionInfo, StopResult
    from podbot.provisioning.setup import SetupPlan, SetupResult
    from podbot.session.async_sandbox import AsyncSandbox
    from podbot.session.run import SessionResult
    from podbot.session.sandbox import Sandbox
    from podbot.session.starting import StartResult
    from podbot.shell.aio import AsyncShell
    from podbot.shell.host_shell import HostShell
    from podbot.shell.mock_shell import MockShell
    from podbot.shell.podman_shell import PodmanShell
    from podbot.shell.shell_limits import ShellLimits
    from podbot.shell.types import (
        Chunk,
        EnvironmentSnapshot,
        JobOutput,
        JobShell,
        JobState,
        Shell,
        WhichResult,
    )
    from podbot.shell.validator import DEFAULT_BLOCKED_PATTERNS, CommandValidator
    from podbot.streams.protocol_channel import Counts
    from podbot.streams.wake import Signal, Wake
    from podbot.tokens.token_info import TokenHolder, TokenInfo
    from podbot.tokens.token_once import TokenRenewal

__all__ = [
    "DEFAULT_BLOCKED_PATTERNS",
    "AgentHistory",
    "AgentLogin",
    "AgentPlan",
    "AppConfig",
    "AsyncSandbox",
    "AsyncShell",
    "BuildRequest",
    "BuildResult",
    "BytesResult",
    "Check",
    "Chunk",
    "CloneError",
    "CommandValidator",
    "ConfigError",
    "ContainerError",
    "Counts",
    "Emit",
    "EnvironmentSnapshot",
    "Event",
    "ExecIO",
    "ExecSpec",
    "ExecStatus",
    "ExecutionResult",
    "FilesystemError",
    "Finding",
    "GitHubError",
    "GuardReport",
    "HostResult",
    "HostShell",
    "HostedSession",
    "JobOutput",
    "JobShell",
    "JobState",
    "LaunchPlan",
    "LaunchRequest",
    "LoadOptions",
    "MockShell",
    "PodbotError",
    "PodmanShell",
    "ProjectHistory",
    "Sandbox",
    "SandboxImage",
    "SandboxPlan",
    "SessionError",
    "SessionInfo",
    "SessionResult",
    "SetupPlan",
    "SetupResult",
    "Shell",
    "ShellError",
    "ShellLimits",
    "Signal",
    "StartResult",
    "Step",
    "StopResult",
    "StreamError",
    "TokenHolder",
    "TokenInfo",
    "TokenRenewal",
    "Wake",
    "WhichResult",
    "__version__",
    "async_sandbox",
    "build_image",
    "describe",
    "doctor",
    "exec_",
    "find_history",
    "history",
    "host",
    "list_images",
    "load_config",
    "login",
    "logins",
    "logout",
    "open_engine",
    "open_shell",
    "plan",
    "ps",
    "remove_history",
    "run",
    "sandbox",
    "setup",
    "start",
    "stop",
    "token_daemon",
]

_HOME = {
    "podbot.api.agent_logins": ("login", "logins", "logout"),
    "podbot.api.conversations": ("find_history", "history", "remove_history"),
    "podbot.api.diagnosis": ("doctor",),
    "podbot.api.engines": ("open_engine",),
    "podbot.api.hosting": ("host",),
    "podbot.api.images": ("build_image", "list_images"),
    "podbot.api.preparing": ("setup",),
    "podbot.api.sandboxes": ("async_sandbox", "sandbox"),
    "podbot.api.sessions": ("exec_", "load_config", "plan", "ps", "run", "start", "stop"),
    "podbot.api.shells": ("open_shell",),
    "podbot.api.tokens": ("token_daemon",),
    "podbot.config.models": ("AppConfig", "LoadOptions"),
    "podbot.engine.check": ("Check",),
    "podbot.errors": (
        "CloneError",
        "ConfigError",
        "ContainerError",
        "FilesystemError",
        "SessionError",
        "GitHubError",
        "PodbotError",
        "ShellError",
        "StreamError",
    ),
    "podbot.events": ("Emit", "Event"),
    "podbot.execution.result": ("BytesResult", "ExecutionResult"),
    "podbot.execution.runner": ("ExecIO", "ExecStatus"),
    "podbot.management.history_list": ("AgentHistory", "ProjectHistory"),
    "podbot.management.login_list": ("AgentLogin",),
    "podbot.hosting.host": ("HostResult",),
    "podbot.hosting.hosted_session": ("HostedSession",),
    "podbot.management.manage": ("SessionInfo", "StopResult"),
    "podbot.provisioning.setup": ("SetupPlan", "SetupResult"),
    "podbot.session.async_sandbox": ("AsyncSandbox",),
    "podbot.session.run": ("SessionResult",),
    "podbot.session.sandbox": ("Sandbox",),
    "podbot.session.starting": ("StartResult",),
    "podbot.tokens.token_info": ("TokenHolder", "TokenInfo"),
    "podbot.tokens.token_once": ("TokenRenewal",),
    "podbot.guard.marks": ("Finding", "GuardReport"),
    "podbot.images.image_build": ("BuildRequest", "BuildResult", "Step"),
    "podbot.images.images_list": ("SandboxImage",),
    "podbot.exec_spec": ("ExecSpec",),
    "podbot.launch.describe": ("describe",),
    "podbot.launch.types": ("AgentPlan", "LaunchPlan", "LaunchRequest", "SandboxPlan"),
    "podbot.shell.aio": ("AsyncShell",),
    "podbot.shell.host_shell": ("HostShell",),
    "podbot.shell.shell_limits": ("ShellLimits",),
    "podbot.shell.mock_shell": ("MockShell",),
    "podbot.shell.podman_shell": ("PodmanShell",),
    "podbot.shell.types": (
        "Chunk",
        "EnvironmentSnapshot",
        "JobOutput",
        "JobShell",
        "JobState",
        "Shell",
        "WhichResult",
    ),
    "podbot.shell.validator": ("DEFAULT_BLOCKED_PATTERNS", "CommandValidator"),
    "podbot.streams.protocol_channel": ("Counts",),
    "podbot.streams.wake": ("Signal", "Wake"),
}
__getattr__ = loader(__name__, _HOME, checks=True)


def __dir__() -> list[str]:
    return sorted(__all__)

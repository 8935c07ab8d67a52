"""podbot: run any AI coding agent inside a Podman sandbox.

``import podbot`` is cheap: names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podbot._version import __version__

if TYPE_CHECKING:
    from podbot.api.conversations import find_history, history, remove_history
    from podbot.api.diagnosis import doctor
    from podbot.api.engines import open_engine
    from podbot.api.hosting import host
    from podbot.api.images import build_image, list_images, setup
    from podbot.api.sessions import exec_, load_config, plan, ps, run, sandbox, start, stop
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
        StreamError,
    )
    from podbot.events import Emit, Event
    from podbot.execution.result import ExecutionResult
    from podbot.execution.runner import ExecIO, ExecStatus
    from podbot.guard.marks import Finding, GuardReport
    from podbot.hosting.host import HostResult
    from podbot.hosting.hosted import HostedSession
    from podbot.images.image_build import BuildRequest, BuildResult, Step
    from podbot.images.images_list import SandboxImage
    from podbot.launch.describe import describe
    from podbot.launch.types import AgentPlan, ExecSpec, LaunchPlan, LaunchRequest, SandboxPlan
    from podbot.management.history_list import AgentHistory, ProjectHistory
    from podbot.management.manage import SessionInfo, StopResult
    from podbot.provisioning.setup import SetupPlan, SetupResult
    from podbot.session.run import SessionResult
    from podbot.session.sandbox import Sandbox
    from podbot.session.starting import StartResult
    from podbot.streams.channel import Counts
    from podbot.streams.wake import Signal, Wake
    from podbot.tokens.token_info import TokenHolder, TokenInfo
    from podbot.tokens.token_once import TokenRenewal

__all__ = [
    "AgentHistory",
    "AgentPlan",
    "AppConfig",
    "BuildRequest",
    "BuildResult",
    "Check",
    "CloneError",
    "ConfigError",
    "ContainerError",
    "Counts",
    "Emit",
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
    "HostedSession",
    "LaunchPlan",
    "LaunchRequest",
    "LoadOptions",
    "PodbotError",
    "ProjectHistory",
    "Sandbox",
    "SandboxImage",
    "SandboxPlan",
    "SessionInfo",
    "SessionResult",
    "SetupPlan",
    "SetupResult",
    "Signal",
    "StartResult",
    "Step",
    "StopResult",
    "StreamError",
    "TokenHolder",
    "TokenInfo",
    "TokenRenewal",
    "Wake",
    "__version__",
    "build_image",
    "describe",
    "doctor",
    "exec_",
    "find_history",
    "history",
    "host",
    "list_images",
    "load_config",
    "open_engine",
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
    "podbot.api.conversations": ("find_history", "history", "remove_history"),
    "podbot.api.diagnosis": ("doctor",),
    "podbot.api.engines": ("open_engine",),
    "podbot.api.hosting": ("host",),
    "podbot.api.images": ("build_image", "list_images", "setup"),
    "podbot.api.sessions": ("exec_", "load_config", "plan", "ps", "run", "sandbox", "start", "stop"),
    "podbot.api.tokens": ("token_daemon",),
    "podbot.config.models": ("AppConfig", "LoadOptions"),
    "podbot.engine.check": ("Check",),
    "podbot.errors": (
        "CloneError",
        "ConfigError",
        "ContainerError",
        "FilesystemError",
        "GitHubError",
        "PodbotError",
        "StreamError",
    ),
    "podbot.events": ("Emit", "Event"),
    "podbot.execution.result": ("ExecutionResult",),
    "podbot.execution.runner": ("ExecIO", "ExecStatus"),
    "podbot.management.history_list": ("AgentHistory", "ProjectHistory"),
    "podbot.hosting.host": ("HostResult",),
    "podbot.hosting.hosted": ("HostedSession",),
    "podbot.management.manage": ("SessionInfo", "StopResult"),
    "podbot.provisioning.setup": ("SetupPlan", "SetupResult"),
    "podbot.session.run": ("SessionResult",),
    "podbot.session.sandbox": ("Sandbox",),
    "podbot.session.starting": ("StartResult",),
    "podbot.tokens.token_info": ("TokenHolder", "TokenInfo"),
    "podbot.tokens.token_once": ("TokenRenewal",),
    "podbot.guard.marks": ("Finding", "GuardReport"),
    "podbot.images.image_build": ("BuildRequest", "BuildResult", "Step"),
    "podbot.images.images_list": ("SandboxImage",),
    "podbot.launch.describe": ("describe",),
    "podbot.launch.types": ("AgentPlan", "ExecSpec", "LaunchPlan", "LaunchRequest", "SandboxPlan"),
    "podbot.streams.channel": ("Counts",),
    "podbot.streams.wake": ("Signal", "Wake"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'podbot' has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

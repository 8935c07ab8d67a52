"""podbot: run any AI coding agent inside a Podman sandbox.

``import podbot`` is cheap: names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podbot._version import __version__

if TYPE_CHECKING:
    from podbot.api.sessions import (
        exec_,
        find_history,
        history,
        host,
        load_config,
        open_engine,
        plan,
        ps,
        remove_history,
        run,
        sandbox,
        stop,
        token_daemon,
    )
    from podbot.config.models import AppConfig, LoadOptions
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
    from podbot.launch.describe import describe
    from podbot.launch.types import AgentPlan, ExecSpec, LaunchPlan, LaunchRequest, SandboxPlan
    from podbot.management.history_list import AgentHistory, ProjectHistory
    from podbot.management.manage import SessionInfo, StopResult
    from podbot.session.run import SessionResult
    from podbot.session.sandbox import Sandbox
    from podbot.streams.channel import Counts
    from podbot.streams.wake import Signal, Wake
    from podbot.tokens.token_info import TokenHolder, TokenInfo
    from podbot.tokens.token_once import TokenRenewal

__all__ = [
    "AgentHistory",
    "AgentPlan",
    "AppConfig",
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
    "SandboxPlan",
    "SessionInfo",
    "SessionResult",
    "Signal",
    "StopResult",
    "StreamError",
    "TokenHolder",
    "TokenInfo",
    "TokenRenewal",
    "Wake",
    "__version__",
    "describe",
    "exec_",
    "find_history",
    "history",
    "host",
    "load_config",
    "open_engine",
    "plan",
    "ps",
    "remove_history",
    "run",
    "sandbox",
    "stop",
    "token_daemon",
]

_HOME = {
    "podbot.api.sessions": (
        "exec_",
        "find_history",
        "history",
        "host",
        "load_config",
        "open_engine",
        "plan",
        "ps",
        "remove_history",
        "run",
        "sandbox",
        "stop",
        "token_daemon",
    ),
    "podbot.config.models": ("AppConfig", "LoadOptions"),
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
    "podbot.session.run": ("SessionResult",),
    "podbot.session.sandbox": ("Sandbox",),
    "podbot.tokens.token_info": ("TokenHolder", "TokenInfo"),
    "podbot.tokens.token_once": ("TokenRenewal",),
    "podbot.guard.marks": ("Finding", "GuardReport"),
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

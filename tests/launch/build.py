"""Small builders: a host, a configuration with origins, a request."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from podbot.config.models import AppConfig, Origin
from podbot.launch.plan import plan_session
from podbot.launch.types import CredentialSource, HostFacts, LaunchPlan, LaunchRequest, PathFacts

ValueT = TypeVar("ValueT")
FILE = Origin("file", "/home/ann/.config/podbot/config.toml")
FLAG = Origin("flag", "--workspace")
CUSTOM = {"agent.kind": "custom"}
CLAUDE = CredentialSource("claude", "/home/ann/.claude", "/home/ann/.claude", "/root/.claude")
LOGIN = {".credentials.json": b'{"claudeAiOauth": {"accessToken": "a", "scopes": ["user:inference"]}}'}
CODEX = CredentialSource("codex", "/home/ann/.codex", "/home/ann/.codex", "/root/.codex")


def directory(path: str, given: str | None = None) -> PathFacts:
    return PathFacts(given or path, path, "directory")


def facts(**changes: Any) -> HostFacts:
    base = HostFacts(
        home="/home/ann",
        cwd="/home/ann/src/proj",
        uid=1000,
        env={},
        nonce="0a1b2c",
        created="2026-08-01T12:00:00Z",
        runtime_dir="/run/user/1000/podbot",
        state_dir="/home/ann/.local/state/podbot",
        engine_socket_dir="/run/user/1000/podman",
        workspace=directory("/home/ann/src/proj"),
        git_name="Ann",
        git_email="ann@example.org",
    )
    return dataclasses.replace(base, **changes)


def config(values: dict[str, Any] | None = None, origins: dict[str, Origin] | None = None) -> AppConfig:
    """An AppConfig with dotted ``values``; each has the origin file unless ``origins`` has another."""
    made = AppConfig(image="localhost/podbot:latest")
    values = {"workspace.source": "host_mount", "workspace.host_path": "/home/ann/src/proj"} | (values or {})
    for dotted, value in values.items():
        section, _, key = dotted.rpartition(".")
        if section:
            inner = dataclasses.replace(getattr(made, section), **{key: value})
            made = dataclasses.replace(made, **{section: inner})
        else:
            made = dataclasses.replace(made, **{key: value})
    return dataclasses.replace(made, origins=dict.fromkeys(values, FILE) | (origins or {}))


def typed(**changes: Any) -> LaunchRequest:
    """A request whose workspace was typed on the command line."""
    return dataclasses.replace(LaunchRequest(trusted_workspace=True), **changes)


def resource(plan: LaunchPlan, kind: type[ValueT]) -> ValueT:
    """The plan of the resource that the sandbox has."""
    value = plan.sandbox.find(kind)
    assert value is not None
    return value


def text_of(plan: LaunchPlan, target: str) -> str:
    """The one file that podbot writes for ``target``."""
    (text,) = (file.text for file in plan.sandbox.files if file.target == target)
    return text


def plan(values: dict[str, Any] | None = None, *, request: Any = None, **changes: Any) -> LaunchPlan:
    return plan_session(config(values), request or typed(), facts(**changes))


def hosted(values: dict[str, Any] | None = None, *, request: Any = None, **changes: Any) -> LaunchPlan:
    return plan_session(config(values), request or typed(), facts(**changes), "host")

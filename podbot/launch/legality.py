"""What goes together: (subcommand, agent.kind, agent.mode, workspace.source), in one place, as data."""

from __future__ import annotations

from collections.abc import Mapping

from podbot.config.models import AgentMode, AppConfig, WorkspaceSource
from podbot.errors import IllegalCombination, MissingRequired
from podbot.launch.agents import AGENTS
from podbot.launch.types import Subcommand

SUBCOMMAND_MODES: Mapping[Subcommand, tuple[AgentMode, ...]] = {
    "run": ("podbot",),
    "host": ("codex_app_server", "acp"),
}
SUBCOMMAND_SOURCES: Mapping[Subcommand, tuple[WorkspaceSource, ...]] = {
    "run": ("host_mount",),
    "host": ("host_mount",),
}
# kind x mode stands in launch.agents.AGENTS: a kind has the modes that it has a command for.


def check(config: AppConfig, subcommand: Subcommand) -> None:
    """Raise IllegalCombination (or MissingRequired, when nothing names the code) unless all four go together."""
    _check_subcommand_mode(config, subcommand)
    _check_kind_mode(config)
    _check_source(config, subcommand)


def _check_subcommand_mode(config: AppConfig, subcommand: Subcommand) -> None:
    mode = config.agent.mode
    if mode in SUBCOMMAND_MODES[subcommand]:
        return
    if subcommand == "run":
        reason = (
            "`podbot run` is for interactive sessions; this mode speaks a protocol, which this version does not host"
        )
        hint = "Use `podbot run --agent-mode podbot`."
    else:
        fitting = [m for m in AGENTS[config.agent.kind].commands if m in SUBCOMMAND_MODES["host"]]
        reason = "`podbot host` speaks a protocol over stdio, and this mode is interactive"
        hint = f"Use `podbot host --agent-mode {' or '.join(fitting)}`, or `podbot run`."
    raise IllegalCombination(
        field="agent.mode", value=mode, origin=str(config.origin("agent.mode")), reason=reason, hint=hint
    )


def _check_kind_mode(config: AppConfig) -> None:
    kind, mode = config.agent.kind, config.agent.mode
    modes = AGENTS[kind].commands
    if mode in modes:
        return
    kinds = [k for k, agent in AGENTS.items() if mode in agent.commands]
    raise IllegalCombination(
        field="agent.mode",
        value=mode,
        origin=str(config.origin("agent.mode")),
        reason=f"agent.kind = {kind} ({config.origin('agent.kind')}) has only: {', '.join(modes)}",
        hint=f"Choose one of these, or an agent that has {mode}: --agent {' or '.join(kinds)}.",
    )


def _check_source(config: AppConfig, subcommand: Subcommand) -> None:
    source, origin = config.workspace.source, config.origin("workspace.source")
    if source in SUBCOMMAND_SOURCES[subcommand]:
        return
    if config.workspace.host_path:
        raise IllegalCombination(
            field="workspace.source",
            value=source,
            origin=str(origin),
            reason=f"workspace.host_path ({config.origin('workspace.host_path')}) is only used with host_mount",
            hint='Set workspace.source = "host_mount".',
        )
    hint = f"Name the code to work on: `podbot {subcommand} --workspace PATH`."
    if origin.kind == "default":
        raise MissingRequired(field="workspace.host_path", hint=hint)
    raise IllegalCombination(
        field="workspace.source",
        value=source,
        origin=str(origin),
        reason="this version mounts a host directory and does not clone",
        hint=hint,
    )

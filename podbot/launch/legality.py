"""What goes together: (subcommand, agent.kind, agent.mode, workspace.source), in one place, as data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from podbot.config.models import AgentMode, AppConfig, WorkspaceSource
from podbot.errors import IllegalCombination
from podbot.launch.agents import AGENTS
from podbot.launch.types import Subcommand

SUBCOMMAND_MODES: Mapping[Subcommand, tuple[AgentMode, ...]] = {
    "run": ("podbot",),
    "host": ("codex_app_server", "acp"),
}
SUBCOMMAND_SOURCES: Mapping[Subcommand, tuple[WorkspaceSource, ...]] = {
    "run": ("host_mount", "github_clone"),
    "host": ("host_mount", "github_clone"),
}
# kind x mode stands in launch.agents.AGENTS: a kind has the modes that it has a command for.


def for_subcommand(config: AppConfig, subcommand: Subcommand) -> AppConfig:
    """``config`` with what nobody set as the subcommand has it: an editor's agent speaks ACP."""
    if subcommand == "host" and config.agent.mode == "podbot" and config.origin("agent.mode").kind == "default":
        return dataclasses.replace(config, agent=dataclasses.replace(config.agent, mode="acp"))
    return config


def check(config: AppConfig, subcommand: Subcommand) -> None:
    """Raise IllegalCombination unless all four go together. What a source needs beside it: where it is planned."""
    _check_subcommand_mode(config, subcommand)
    _check_kind_mode(config)
    _check_source(config, subcommand)


def _check_subcommand_mode(config: AppConfig, subcommand: Subcommand) -> None:
    mode = config.agent.mode
    if mode in SUBCOMMAND_MODES[subcommand]:
        return
    if subcommand == "run":
        reason = "`podbot run` is for interactive sessions, and this mode speaks a protocol over stdio"
        hint = "Use `podbot run --agent-mode podbot`, or let an editor start `podbot host`."
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
    source, sources = config.workspace.source, SUBCOMMAND_SOURCES[subcommand]
    if source not in sources:
        raise IllegalCombination(
            field="workspace.source",
            value=source,
            origin=str(config.origin("workspace.source")),
            reason=f"`podbot {subcommand}` has only: {', '.join(sources)}",
            hint="Choose one of these.",
        )

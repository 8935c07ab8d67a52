"""What goes together: (subcommand, agent.kind, agent.mode, workspace.source), in one place, as data.

And which keys have no effect with which choice: what a flag sets is never ignored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from podbot.agents.registry import CUSTOM, AgentMode, agent, agents, known
from podbot.config.models import AppConfig, WorkspaceSource
from podbot.config.schema import KEYS, value_of
from podbot.errors import IllegalCombination
from podbot.launch.security import effective_profile
from podbot.launch.types import Subcommand

SUBCOMMAND_MODES: Mapping[Subcommand, tuple[AgentMode, ...]] = {
    "run": ("podbot",),
    "host": ("codex_app_server", "acp"),
    "sandbox": (),  # it has no agent
}
SUBCOMMAND_SOURCES: Mapping[Subcommand, tuple[WorkspaceSource, ...]] = {
    "run": ("host_mount", "github_clone"),
    "host": ("host_mount", "github_clone"),
    "sandbox": ("host_mount", "github_clone"),
}
# A kind of agent has the modes that it has a command for (podbot.agents).


class Use(NamedTuple):
    """``keys`` have an effect with some values of ``choice`` only; ``hint`` is the remedy where they have none.

    ``told_for``: values of ``choice`` with which a file's value is reported; with others the file serves other
    sessions. ``chosen``: it is not reported when ``choice`` was made for this session, and refused when nobody made it.
    """

    keys: tuple[str, ...]
    choice: str
    used_with: tuple[str, ...]
    told_for: tuple[str, ...]
    hint: str
    chosen: bool = False


USES = (
    Use(
        ("agent.command", "agent.args"),
        "agent.kind",
        used_with=(CUSTOM,),
        told_for=known(),
        hint='Set agent.kind = "custom", or name the agent that you want: `--agent KIND`.',
        chosen=True,
    ),
    Use(
        ("agent.permissions",),
        "agent.kind",
        used_with=known(),
        told_for=(CUSTOM,),
        hint="Leave it out, and put the agent's own option into its command.",
    ),
    Use(
        ("agent.delegation",),
        "agent.mode",
        used_with=("acp",),
        told_for=("codex_app_server",),
        hint="Leave it out, or use `--agent-mode acp`.",
    ),
    Use(
        ("agent.frame_limit", "agent.extra_methods", "agent.mcp_servers"),
        "agent.mode",
        used_with=("acp", "codex_app_server"),
        told_for=(),
        hint="Leave it out, or use `podbot host`.",
    ),
    Use(
        ("workspace.base_dir", "workspace.depth", "workspace.submodules"),
        "workspace.source",
        used_with=("github_clone",),
        told_for=(),
        hint="Leave it out, or name a repository: `--repo owner/name`.",
    ),
    Use(
        ("workspace.host_path", "workspace.container_path", "workspace.guard"),
        "workspace.source",
        used_with=("host_mount",),
        told_for=(),
        hint="Leave it out: a clone lies inside the sandbox.",
    ),
    Use(
        ("workspace.read_only",),
        "workspace.source",
        used_with=("host_mount",),
        told_for=("github_clone",),
        hint="A clone can be written; limit github.permissions instead.",
    ),
    Use(
        ("sandbox.mount_dev_fuse", "sandbox.selinux_label_mode"),
        "sandbox.profile",
        used_with=("hardened", "minimal"),
        told_for=("privileged",),
        hint="Choose another profile: the engine decides both in a privileged container.",
    ),
)
_CALLS: Mapping[Subcommand, str] = {"run": "`podbot run`", "host": "`podbot host`", "sandbox": "`podbot.sandbox`"}
_FOR_THIS_SESSION = ("flag", "override")


def for_subcommand(config: AppConfig, subcommand: Subcommand) -> AppConfig:
    """``config`` with what nobody set as the subcommand has it: an editor's agent speaks ACP."""
    if subcommand == "host" and config.agent.mode == "podbot" and config.origin("agent.mode").kind == "default":
        return dataclasses.replace(config, agent=dataclasses.replace(config.agent, mode="acp"))
    return config


def check(config: AppConfig, subcommand: Subcommand) -> None:
    """Raise IllegalCombination unless all of it goes together. What a source needs beside it: where it is planned."""
    if subcommand != "sandbox":
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
        fitting = [m for m in agent(config.agent.kind).commands if m in SUBCOMMAND_MODES["host"]]
        reason = "`podbot host` speaks a protocol over stdio, and this mode is interactive"
        hint = f"Use `podbot host --agent-mode {' or '.join(fitting)}`, or `podbot run`."
    raise IllegalCombination(
        field="agent.mode", value=mode, origin=str(config.origin("agent.mode")), reason=reason, hint=hint
    )


def _check_kind_mode(config: AppConfig) -> None:
    kind, mode = config.agent.kind, config.agent.mode
    modes = agent(kind).commands
    if mode in modes:
        return
    kinds = [k for k, found in agents().items() if mode in found.commands]
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
            reason=f"{_CALLS[subcommand]} has only: {', '.join(sources)}",
            hint="Choose one of these.",
        )


def check_effects(config: AppConfig, subcommand: Subcommand) -> tuple[str, ...]:
    """Lines about settings that have no effect in this session.

    Raises IllegalCombination for one that was given for this session alone, or whose use nobody decided on. Without an
    agent nothing is said of the agent's settings: a program has one configuration for its sandboxes and its agents.
    """
    uses = (use for use in USES if subcommand != "sandbox" or not use.choice.startswith("agent."))
    return tuple(note for use in uses for key in use.keys for note in _without_effect(config, use, key))


def _without_effect(config: AppConfig, use: Use, key: str) -> Iterator[str]:
    origin, choice = config.origin(key), _chosen(config, use.choice)
    value = value_of(config, KEYS[key])
    if choice in use.used_with or value == KEYS[key].default or origin.kind == "default":
        return
    decided = config.origin(use.choice)
    reason = f"only {use.choice} = {' or '.join(use.used_with)} uses it, and here it is {choice} ({decided})"
    if origin.kind in _FOR_THIS_SESSION or (use.chosen and decided.kind == "default"):
        raise IllegalCombination(field=key, value=str(value)[:80], origin=str(origin), reason=reason, hint=use.hint)
    if choice in use.told_for and not (use.chosen and decided.kind in _FOR_THIS_SESSION):
        yield f"{key} ({origin}) has no effect: {reason}"


def _chosen(config: AppConfig, choice: str) -> str:
    return effective_profile(config) if choice == "sandbox.profile" else str(value_of(config, KEYS[choice]))

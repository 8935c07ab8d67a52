"""The allowed combinations of subcommand, agent.kind, agent.mode and workspace.source, as data.

Also lists which keys have no effect with which choice: a value that a flag sets is never ignored silently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podbot.agents.registry import CUSTOM, AgentMode, agent, agents, known
from podbot.config.models import AppConfig
from podbot.config.schema import KEYS, value_of
from podbot.errors import IllegalCombination, InvalidValue, MountRefused
from podbot.frozen import Frozen, replace
from podbot.launch.mount_paths import shown
from podbot.launch.security import effective_profile
from podbot.launch.types import HostFacts, LaunchRequest, Subcommand

SUBCOMMAND_MODES: Mapping[Subcommand, tuple[AgentMode, ...]] = {
    "run": ("podbot",),
    "host": ("codex_app_server", "acp"),
    "sandbox": (),  # it has no agent
}
# A kind of agent supports the modes for which it has a command (podbot.agents).


class Use(Frozen):
    """``keys`` have an effect only with the values ``used_with`` of ``choice``; ``hint`` is the remedy otherwise.

    ``noted_for``: values of ``choice`` for which an unused value from a file is reported; for others, the file is
    assumed to serve other sessions. ``chosen``: it is not reported if ``choice`` was set for this session, and refused
    if ``choice`` was not set at all.
    """

    keys: tuple[str, ...]
    choice: str
    used_with: tuple[str, ...]
    noted_for: tuple[str, ...]
    hint: str
    chosen: bool = False


USES = (
    Use(
        ("agent.command", "agent.args"),
        "agent.kind",
        used_with=(CUSTOM,),
        noted_for=known(),
        hint="Set agent.kind = custom, or to the agent that you want.",
        chosen=True,
    ),
    Use(
        ("agent.permissions",),
        "agent.kind",
        used_with=known(),
        noted_for=(CUSTOM,),
        hint="Leave it out, and put the agent's own option into its command.",
    ),
    Use(
        ("agent.delegation",),
        "agent.mode",
        used_with=("acp",),
        noted_for=("codex_app_server",),
        hint="Leave it out, or set agent.mode = acp.",
    ),
    Use(
        ("agent.frame_limit", "agent.extra_methods", "agent.mcp_servers"),
        "agent.mode",
        used_with=("acp", "codex_app_server"),
        noted_for=(),
        hint="Leave it out; it is for hosted agents.",
    ),
    Use(
        ("session.logs",),
        "agent.mode",
        used_with=("podbot",),
        noted_for=(),
        hint="Leave it out; the traffic of a hosted agent can be recorded as a transcript.",
    ),
    Use(
        ("workspace.base_dir", "workspace.depth", "workspace.submodules"),
        "workspace.source",
        used_with=("github_clone",),
        noted_for=(),
        hint="Leave it out, or name a repository to clone.",
    ),
    Use(
        ("workspace.host_path", "workspace.container_path", "workspace.guard"),
        "workspace.source",
        used_with=("host_mount",),
        noted_for=(),
        hint="Leave it out, or mount a directory of the host: workspace.source = host_mount.",
    ),
    Use(
        ("workspace.read_only",),
        "workspace.source",
        used_with=("host_mount",),
        noted_for=("github_clone",),
        hint="A clone can be written; limit github.permissions instead.",
    ),
    Use(
        ("sandbox.mount_dev_fuse",),
        "sandbox.profile",
        used_with=("hardened", "minimal"),
        noted_for=("privileged",),
        hint="Choose another profile: a privileged container has every device, a sealed one has none.",
    ),
    Use(
        ("sandbox.own_user_ids",),
        "sandbox.profile",
        used_with=("hardened", "minimal", "sealed"),
        noted_for=("privileged",),
        hint="Choose another profile: a privileged container has the host's user ids.",
    ),
    Use(
        ("sandbox.selinux_label_mode",),
        "sandbox.profile",
        used_with=("hardened", "minimal", "sealed"),
        noted_for=("privileged",),
        hint="Choose another profile: in a privileged container the engine controls labels.",
    ),
)
_FOR_THIS_SESSION = ("flag", "override")


def for_subcommand(config: AppConfig, subcommand: Subcommand) -> AppConfig:
    """``config`` with the subcommand's default mode if none was set: an editor's agent uses ACP."""
    if subcommand == "host" and config.agent.mode == "podbot" and config.origin("agent.mode").kind == "default":
        return replace(config, agent=replace(config.agent, mode="acp"))
    return config


def check(config: AppConfig, subcommand: Subcommand) -> None:
    """Raise IllegalCombination unless the combination is allowed. A source's other needs are checked in its plan."""
    if subcommand != "sandbox":
        _check_subcommand_mode(config, subcommand)
        _check_kind_mode(config)
        _check_profile(config)
        _check_has_workspace(config)


def _check_profile(config: AppConfig) -> None:
    if config.sandbox.profile == "sealed":
        raise IllegalCombination(
            field="sandbox.profile",
            value="sealed",
            origin=str(config.origin("sandbox.profile")),
            reason="agents install programs and write to their home, and a sealed sandbox has a read-only root",
            hint="Use hardened; sealed is for `podbot.sandbox`, whose commands use the workspace and /tmp.",
        )


def check_sealed(config: AppConfig, request: LaunchRequest) -> None:
    """Raise IllegalCombination for a sealed sandbox with a repository or a token, which it could not use."""
    if config.sandbox.profile != "sealed":
        return
    cloning = config.workspace.source == "github_clone"
    if cloning or request.github_access is not None:
        raise IllegalCombination(
            field="sandbox.profile",
            value="sealed",
            origin=str(config.origin("sandbox.profile")),
            reason=f"a sealed sandbox has no network to {'clone from' if cloning else 'use a token with'}",
            hint="Mount a directory instead (workspace.source = host_mount), or use the profile hardened.",
        )


def check_project(config: AppConfig, facts: HostFacts) -> None:
    """Check that the project's settings are those of the workspace that is mounted (ADR 0043).

    Raises InvalidValue for a table that would apply if a link in its path were followed, and MountRefused when the
    workspace's path has led elsewhere since the table was chosen.
    """
    choice, workspace = config.project, facts.workspace
    if choice is None or workspace is None:
        return
    name, leads_to = choice.linked
    if name:
        raise InvalidValue(
            field=f'project."{shown(name)}"',
            origin="config file",
            reason=f"its path leads through a link to {shown(leads_to)}, and tables are matched by real paths only",
            hint=f'If you mean that directory, write [project."{shown(leads_to)}"]; otherwise remove the link.',
        )
    if workspace.resolved != choice.workspace:
        raise MountRefused(
            path=shown(workspace.resolved),
            origin=str(config.origin("workspace.host_path")),
            reason=f"the project's settings were chosen for {shown(choice.workspace)}, where its path led a moment ago",
            hint="Check what changed there, then start again.",
        )


def _check_has_workspace(config: AppConfig) -> None:
    if config.workspace.source == "none":
        raise IllegalCombination(
            field="workspace.source",
            value="none",
            origin=str(config.origin("workspace.source")),
            reason="an agent needs something to work on; only `podbot.sandbox` opens a sandbox without a workspace",
            hint="Set workspace.host_path, or name a repository to clone.",
        )


def _check_subcommand_mode(config: AppConfig, subcommand: Subcommand) -> None:
    mode = config.agent.mode
    if mode in SUBCOMMAND_MODES[subcommand]:
        return
    if subcommand == "run":
        reason = "this session is interactive, and in that mode an editor controls the agent"
        hint = "Set agent.mode = podbot, or have the editor start host."
    else:
        fitting = [m for m in agent(config.agent.kind).commands if m in SUBCOMMAND_MODES["host"]]
        reason = "host speaks a protocol over stdio, and this mode is interactive"
        hint = f"Set agent.mode = {' or '.join(fitting)}, or use run."
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
        hint=f"Choose one of these, or an agent that has {mode}: agent.kind = {' or '.join(kinds)}.",
    )


def check_effects(config: AppConfig, subcommand: Subcommand) -> tuple[str, ...]:
    """Lines about settings that have no effect in this session.

    Raises IllegalCombination for a setting that was given for this session only, or whose ``choice`` was not set.
    Without an agent, agent settings are not reported: a program has one configuration for sandboxes and agents.
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
    if choice in use.noted_for and not (use.chosen and decided.kind in _FOR_THIS_SESSION):
        yield f"{key} ({origin}) has no effect: {reason}"


def _chosen(config: AppConfig, choice: str) -> str:
    return effective_profile(config) if choice == "sandbox.profile" else str(value_of(config, KEYS[choice]))

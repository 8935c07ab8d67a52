"""A configuration, a request and facts of the host become one plan. Pure; raises ConfigError only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from podbot._version import __version__
from podbot.config.checks import is_variable_name
from podbot.config.models import AppConfig
from podbot.errors import IllegalCombination, InvalidValue, MissingRequired
from podbot.launch.agent_plan import labels, plan_agent
from podbot.launch.labels import LABEL, keep_label
from podbot.launch.legality import check, check_effects, for_subcommand
from podbot.launch.names import is_name, session_name
from podbot.launch.own_file import files_directory, own_file_mount
from podbot.launch.resources.clone import plan_clone
from podbot.launch.resources.every import planned
from podbot.launch.resources.part import Context, Part
from podbot.launch.security import nested_env, plan_limits, plan_security
from podbot.launch.types import (
    AgentPlan,
    ContainerSpec,
    HostFacts,
    Keep,
    LaunchPlan,
    LaunchRequest,
    SandboxPlan,
)
from podbot.launch.workspace import WorkspacePlan, plan_workspace


def normalize(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> LaunchPlan:
    """Decide everything about a session with an agent, or raise the ConfigError that says what cannot be."""
    config = for_subcommand(config, request.subcommand)
    idle, workspace = _checked(config, request, facts)
    agent, part = plan_agent(config, request, facts, workspace)
    sandbox = _sandbox(config, request, facts, workspace, idle=idle, agent=agent, agent_part=part)
    return LaunchPlan(subcommand=request.subcommand, sandbox=sandbox, agent=agent)


def plan_sandbox(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> SandboxPlan:
    """The same of a sandbox without an agent."""
    if request.words or request.tty:
        raise IllegalCombination(
            field="words" if request.words else "tty",
            value=str(request.words or request.tty)[:80],
            origin="the caller",
            reason="a sandbox without an agent starts no command by itself",
            hint="Leave it out, and pass the command to `run` of the sandbox.",
        )
    idle, workspace = _checked(config, request, facts)
    part = Part(labels=labels("", "sandbox"))
    return _sandbox(config, request, facts, workspace, idle=idle, agent=None, agent_part=part)


def _checked(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> tuple[tuple[str, ...], WorkspacePlan]:
    """Notes of settings without an effect, and the workspace."""
    check(config, request.subcommand)
    if not (config.image or "").strip():
        raise MissingRequired(field="image", hint="Run `podbot setup`, which builds one and writes the key.")
    clone = plan_clone(config, request)
    idle = check_effects(config, request.subcommand)
    return idle, plan_workspace(config, request, facts, clone)


def _sandbox(
    config: AppConfig,
    request: LaunchRequest,
    facts: HostFacts,
    workspace: WorkspacePlan,
    *,
    idle: tuple[str, ...],
    agent: AgentPlan | None,
    agent_part: Part,
) -> SandboxPlan:
    session = session_name(request.name, workspace.code, facts.nonce)
    runtime_dir = os.path.join(facts.runtime_dir, session)
    keep = _keep(config, workspace)
    files_dir = files_directory(keep, session, runtime_dir, facts)
    command = agent.command if agent is not None else None
    security, security_notes = plan_security(config, facts)
    network = _network(config)
    resources = planned(Context(config, request, facts, runtime_dir, keep, workspace, command))
    parts = (*resources.values(), agent_part)
    files = tuple(file for part in parts for file in part.files)
    container = ContainerSpec(
        name=session,
        image=(config.image or "").strip(),
        image_origin=str(config.origin("image")),
        labels=_labels(config, facts, session, code=workspace.code, keep=keep) | _merged(part.labels for part in parts),
        mounts=workspace.mounts,
        security=security,
        files=(
            *(own_file_mount(files_dir, file.target) for file in files),
            *(mount for part in parts for mount in part.mounts),
            *workspace.empty,
        ),
        link=workspace.link,
        limits=plan_limits(config, facts),
        network=network,
        workdir=workspace.directory,
        make_workdir=workspace.clone is not None,
        env={
            **nested_env(security),
            **({"TZ": facts.time_zone} if facts.time_zone else {}),
            **_merged(part.env for part in parts),
            **_sandbox_env(config),
            **_merged(part.fixed_env for part in parts),
        },
        runtime=config.sandbox.runtime,
    )
    trust = ("network host: the agent reaches everything that listens on this host",) if network == "host" else ()
    return SandboxPlan(
        session=session,
        source=config.workspace.source,
        container=container,
        keep=keep,
        runtime_dir=runtime_dir,
        files_dir=files_dir,
        workspace=workspace.mount,
        linked_git=workspace.linked,
        image_agent=agent.kind if agent is not None and agent.kind != "custom" else None,
        files=files,
        resources={name: part.value for name, part in resources.items() if part.value is not None},
        notes=(
            *workspace.notes,
            *(note for part in parts for note in part.notes),
            *security_notes,
            *facts.exposed,
            *trust,
            *idle,
        ),
    )


def _merged(found: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {name: value for values in found for name, value in values.items()}


def _keep(config: AppConfig, workspace: WorkspacePlan) -> Keep:
    """Whoever set session.keep, anywhere, decided; otherwise nothing of a clone is to be lost."""
    if config.session.keep:
        return "always"
    chosen = config.origin("session.keep").kind != "default"
    return "never" if chosen or workspace.clone is None else "when_unsaved"


def _labels(config: AppConfig, facts: HostFacts, session: str, *, code: str, keep: Keep) -> dict[str, str]:
    """``code``: where it is, on the host when mounted, inside when cloned."""
    values = {
        "managed": "true",
        "session": session,
        "workspace": config.workspace.source,
        "path": code,
        "created": facts.created,
        "keep": keep_label(keep),
        "version": __version__,
    }
    return {f"{LABEL}.{name}": value for name, value in values.items()}


def _sandbox_env(config: AppConfig) -> dict[str, str]:
    for name, value in config.sandbox.env.items():
        if not is_variable_name(name) or "\0" in value:
            raise InvalidValue(
                field="sandbox.env", origin=str(config.origin("sandbox.env")), reason=f"{name!r} cannot be a variable"
            )
    return dict(config.sandbox.env)


def _network(config: AppConfig) -> str:
    network = config.sandbox.network
    if not is_name(network):
        raise InvalidValue(
            field="sandbox.network",
            origin=str(config.origin("sandbox.network")),
            reason=f"{network!r} is not a network",
            hint="default, none, host, or the name of an engine network; other namespaces cannot be joined.",
        )
    return network

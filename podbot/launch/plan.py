"""Turns a configuration, a request and facts of the host into one plan. Pure; raises ConfigError only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import get_args

from podbot._version import __version__
from podbot.config.checks import is_variable_name
from podbot.config.models import AppConfig
from podbot.config.public_values import secret_notices
from podbot.container_spec import ContainerSpec
from podbot.errors import IllegalCombination, InvalidValue, MissingRequired
from podbot.frozen import replace
from podbot.launch.agent_plan import labels, plan_agent
from podbot.launch.git_settings import config_variables
from podbot.launch.legality import check, check_effects, check_project, check_sealed, for_subcommand
from podbot.launch.names import LABEL, RESOURCES, keep_label, session_name
from podbot.launch.network_choice import engine_network, network_of
from podbot.launch.own_file import files_directory, own_file_mount
from podbot.launch.publish import plan_ports
from podbot.launch.resources.clone import plan_clone
from podbot.launch.resources.every import planned
from podbot.launch.resources.guest import TARGET as GUEST
from podbot.launch.resources.part import Context, Part
from podbot.launch.security import nested_env, plan_limits, plan_security, plan_shm
from podbot.launch.types import (
    AgentPlan,
    HostFacts,
    Keep,
    LaunchPlan,
    LaunchRequest,
    SandboxPlan,
    SessionSubcommand,
    Subcommand,
)
from podbot.launch.workspace import WorkspacePlan, plan_workspace


def plan_session(
    config: AppConfig, request: LaunchRequest, facts: HostFacts, subcommand: SessionSubcommand = "run"
) -> LaunchPlan:
    """Decide everything about a session with an agent. Raises a ConfigError that explains what is not possible."""
    if subcommand not in get_args(SessionSubcommand):
        reason, hint = "it is neither run nor host", "A sandbox without an agent has no such plan."
        raise IllegalCombination(field="subcommand", value=subcommand, origin="the caller", reason=reason, hint=hint)
    config = for_subcommand(config, subcommand)
    if subcommand == "host" and request.tty:  # the agent speaks a protocol over pipes
        request = replace(request, tty=False)
    idle, workspace = _checked(config, request, facts, subcommand)
    agent, part = plan_agent(config, request, facts, workspace)
    sandbox = _sandbox(config, request, facts, workspace, idle=idle, agent=agent, agent_part=part)
    return LaunchPlan(subcommand=subcommand, sandbox=sandbox, agent=agent)


def plan_sandbox(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> SandboxPlan:
    """Decide everything about a sandbox without an agent. Raises ConfigError subclasses."""
    for name, value in (("words", request.words), ("tty", request.tty), ("env", tuple(request.env))):
        if value:
            raise IllegalCombination(
                field=name,
                value=str(value)[:80],
                origin="the caller",
                reason="a sandbox without an agent starts no command by itself",
                hint="Leave it out, and pass it to `run` of the sandbox.",
            )
    idle, workspace = _checked(config, request, facts, "sandbox")
    part = Part(labels=labels("", "sandbox"))
    return _sandbox(config, request, facts, workspace, idle=idle, agent=None, agent_part=part)


def _checked(
    config: AppConfig, request: LaunchRequest, facts: HostFacts, subcommand: Subcommand
) -> tuple[tuple[str, ...], WorkspacePlan]:
    """Check the configuration; return notes on settings without effect, and the workspace's plan."""
    check(config, subcommand)
    check_sealed(config, request)
    check_project(config, facts)
    clone = plan_clone(config, request)
    idle = check_effects(config, subcommand)
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
    session = session_name(request.name, workspace.code, facts.nonce, str(request.origin("name")))
    runtime_dir = os.path.join(facts.runtime_dir, session)
    keep = _keep(config, workspace)
    files_dir = files_directory(keep, session, runtime_dir, facts)
    command = agent.command if agent is not None else None
    security, security_notes = plan_security(config, facts)
    network = network_of(config, request)
    ports, port_lines = plan_ports(config, request, network, with_agent=agent is not None)
    resources = planned(Context(config, request, facts, runtime_dir, keep, workspace, command))
    parts = (*resources.values(), agent_part)
    open_resources = {name: part.value for name, part in resources.items() if part.value is not None}
    files = tuple(file for part in parts for file in part.files)
    image = (config.image or "").strip()
    if not image:  # last, because setting up takes a minute, and what else is wrong costs nothing to say
        raise MissingRequired(
            field="image",
            hint="Name an image. Without one of yours, build podbot's own, which takes about a minute.",
        )
    container = ContainerSpec(
        name=session,
        image=image,
        image_origin=str(config.origin("image")),
        labels={
            **_labels(config, facts, session, code=workspace.code, keep=keep),
            RESOURCES: ",".join(open_resources),
            **_merged(part.labels for part in parts),
        },
        mounts=workspace.mounts,
        security=security,
        files=(
            *(own_file_mount(files_dir, file.target) for file in files),
            *(mount for part in parts for mount in part.mounts),
            *workspace.empty,
        ),
        link=workspace.link,
        guest=GUEST if "guest" in resources else None,
        auto_remove=keep == "never",
        limits=plan_limits(config, facts),
        shm=plan_shm(config),
        network=engine_network(network),
        ports=ports,
        workdir=workspace.directory or None,
        make_workdir=workspace.clone is not None,
        env={
            **nested_env(security),
            **({"HOME": security.tmpfs[0]} if security.tmpfs else {}),
            **({"TZ": facts.time_zone} if facts.time_zone else {}),
            **_merged(part.env for part in parts),
            **_sandbox_env(config),
            **_merged(part.fixed_env for part in parts),
            **config_variables(_merged(part.git_config for part in parts), config.sandbox.env),
        },
        runtime=config.sandbox.runtime,
        origins={key: str(config.origin(key)) for key in ("sandbox.network", "sandbox.runtime")},
    )
    trust = ("network host: the agent can reach everything that listens on this host",) if network == "host" else ()
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
        resources=open_resources,
        notes=(
            *workspace.notes,
            *(note for part in parts for note in part.notes),
            *security_notes,
            *facts.exposed,
            *trust,
            *port_lines,
            *idle,
            *(secret_notices(config) if config.sandbox.env else ()),
        ),
        limit_origins={name: f"{config.origin(f'sandbox.{name}')}" for name in ("memory", "pids")},
    )


def _merged(found: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {name: value for values in found for name, value in values.items()}


def _keep(config: AppConfig, workspace: WorkspacePlan) -> Keep:
    """The value of session.keep if it was set anywhere; otherwise a clone is kept when it has unsaved work."""
    if config.session.keep:
        return "always"
    chosen = config.origin("session.keep").kind != "default"
    return "never" if chosen or workspace.clone is None else "when_unsaved"


def _labels(config: AppConfig, facts: HostFacts, session: str, *, code: str, keep: Keep) -> dict[str, str]:
    """``code``: the workspace's path, on the host if it is mounted, inside if it is cloned; empty if there is none."""
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

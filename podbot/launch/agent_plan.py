"""The agent of a session: its command and variables, its protocol's settings, and what its sandbox needs for it."""

from __future__ import annotations

from podbot.config.checks import is_variable_name
from podbot.config.models import AppConfig
from podbot.errors import InvalidValue
from podbot.launch.agents import agent_env, agent_files, command_for
from podbot.launch.labels import LABEL
from podbot.launch.resources.credentials import settings_notes
from podbot.launch.resources.part import Part
from podbot.launch.security import frame_limit
from podbot.launch.types import AgentPlan, ExecSpec, HostFacts, LaunchRequest, OwnFile
from podbot.launch.workspace import WorkspacePlan

TERMINAL_VARIABLES = ("TERM", "COLORTERM")  # not LANG: which locales there are is the image's to say


def plan_agent(
    config: AppConfig, request: LaunchRequest, facts: HostFacts, workspace: WorkspacePlan
) -> tuple[AgentPlan, Part]:
    """The agent, and what it adds to the sandbox. Raises InvalidValue, and MissingRequired without a command."""
    words = command_for(config.agent, request.words, workspace.directory if workspace.trusted else None)
    env, secrets, notes = _variables(config, request, facts)
    tty = request.tty and request.subcommand == "run"
    agent = AgentPlan(
        kind=config.agent.kind,
        mode=config.agent.mode,
        command=ExecSpec(command=words, workdir=workspace.directory, env=env, secrets=secrets, tty=tty),
        delegation=config.agent.delegation,
        mcp_servers=config.agent.mcp_servers,
        extra_methods=config.agent.extra_methods,
        frame_limit=frame_limit(config),
    )
    files = agent_files(config.agent)
    part = Part(
        files=tuple(OwnFile(target, files[target]) for target in sorted(files)),
        fixed_env=agent_env(config.agent),  # for `podbot exec`: the agent can be started there, too
        labels=labels(agent.kind, agent.mode),
        notes=(*(settings_notes(config, facts) if workspace.clone is None else ()), *notes),
    )
    return agent, part


def labels(kind: str, mode: str) -> dict[str, str]:
    """What a container's labels say of its agent."""
    return {f"{LABEL}.agent": kind, f"{LABEL}.mode": mode}


def _variables(
    config: AppConfig, request: LaunchRequest, facts: HostFacts
) -> tuple[dict[str, str], frozenset[str], tuple[str, ...]]:
    """The agent's variables, which of them are secret, and a note for those that the host does not have."""
    env: dict[str, str] = {}
    if request.tty and request.subcommand == "run":
        env["TERM"] = "xterm-256color"
        env |= {name: facts.env[name] for name in TERMINAL_VARIABLES if facts.env.get(name)}
    origin = str(config.origin("agent.env_allowlist"))
    for name in config.agent.env_allowlist:
        if not is_variable_name(name):
            raise InvalidValue(
                field="agent.env_allowlist",
                origin=origin,
                # Somebody may have written NAME=secret here: the value is not repeated.
                reason=f"{name.partition('=')[0]!r} is not the name of a variable"
                if "=" not in name
                else f"{name.partition('=')[0]!r} comes with a value",
                hint="List names only; podbot takes the values from its own environment at launch.",
            )
    required = agent_env(config.agent)
    wanted = [name for name in config.agent.env_allowlist if name not in required]
    secrets = frozenset(name for name in wanted if name in facts.env)
    missing = ", ".join(name for name in wanted if name not in facts.env)
    env |= {name: facts.env[name] for name in secrets}
    notes: tuple[str, ...] = ()
    if missing:
        notes = (f"not set on this host, so not passed to the agent: {missing} (agent.env_allowlist)",)
    ignored = sorted(name for name in required if config.sandbox.env.get(name, required[name]) != required[name])
    if ignored:
        kind = config.agent.kind
        notes += (f"sandbox.env sets {', '.join(ignored)}, which podbot itself sets for {kind}: ignored",)
    return env | required, secrets, notes

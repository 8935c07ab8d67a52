"""Plans a session's agent: its command and variables, its protocol settings, and what it adds to its sandbox."""

from __future__ import annotations

from collections.abc import Mapping

from podbot.agents.definition import TRUSTED
from podbot.agents.registry import CUSTOM, agents
from podbot.agents.registry import agent as known
from podbot.config.checks import is_variable_name, shown
from podbot.config.models import AgentConfig, AppConfig
from podbot.errors import InvalidValue, MissingRequired
from podbot.exec_spec import ExecSpec
from podbot.launch.held_keys import led_to_gateway
from podbot.launch.judged_logins import inside
from podbot.launch.names import LABEL
from podbot.launch.resources.credentials import settings_notes
from podbot.launch.resources.part import Part
from podbot.launch.security import frame_limit
from podbot.launch.terminal_variables import USUAL, terminal_variables
from podbot.launch.types import AgentPlan, HostFacts, LaunchRequest, OwnFile
from podbot.launch.workspace import WorkspacePlan


def plan_agent(
    config: AppConfig, request: LaunchRequest, facts: HostFacts, workspace: WorkspacePlan
) -> tuple[AgentPlan, Part]:
    """The agent, and what it adds to the sandbox. Raises InvalidValue, and MissingRequired without a command."""
    words = command_for(config.agent, request.words, workspace.directory if workspace.trusted else None)
    env, secrets, notes = agent_variables(config, request, facts)
    command = ExecSpec(
        command=words, workdir=workspace.directory, env=env, secrets=secrets, tty=request.tty,
        term_choices=_term_choices(config, request, facts),
    )  # fmt: skip
    command, gateway_files, held = led_to_gateway(config, request, facts, command)
    login = inside(config, facts, command)  # of the whole command: the gateway's settings choose a login, too
    files = agent_files(config.agent)
    if login is not None and login.state == "key":
        files |= known(config.agent.kind).key_files.get(login.where, {})
    files |= gateway_files
    agent = AgentPlan(
        kind=config.agent.kind,
        mode=config.agent.mode,
        command=command,
        delegation=config.agent.delegation,
        mcp_servers=config.agent.mcp_servers,
        extra_methods=config.agent.extra_methods,
        frame_limit=frame_limit(config),
        logs=config.session.logs,
        login=login,
    )
    part = Part(
        files=tuple(OwnFile(target, files[target]) for target in sorted(files)),
        env=agent_defaults(config.agent),
        fixed_env=agent_env(config.agent),  # also set for `podbot exec`, which may start the agent
        labels=labels(agent.kind, agent.mode),
        notes=(*(settings_notes(config, facts) if workspace.clone is None else ()), *notes, *held),
    )
    return agent, part


def labels(kind: str, mode: str) -> dict[str, str]:
    """The labels that describe a container's agent."""
    return {f"{LABEL}.agent": kind, f"{LABEL}.mode": mode}


def agent_variables(
    config: AppConfig, request: LaunchRequest, facts: HostFacts
) -> tuple[dict[str, str], frozenset[str], tuple[str, ...]]:
    """The agent's variables, the names of the secret ones, and notes on variables that are unset or ignored."""
    env = terminal_variables(facts.env, USUAL)[0] if request.tty else {}
    notes: tuple[str, ...] = ()
    origin = str(config.origin("agent.env_allowlist"))
    for name in config.agent.env_allowlist:
        if not is_variable_name(name):
            raise InvalidValue(
                field="agent.env_allowlist",
                origin=origin,
                # The operator may have written NAME=secret here, so the value is not repeated.
                reason=f"{name.partition('=')[0]!r} is not the name of a variable"
                if "=" not in name
                else f"{name.partition('=')[0]!r} comes with a value",
                hint="List names only; podbot takes the values from its own environment at launch.",
            )
    required = agent_env(config.agent)
    _check_given(request, required, config.agent.kind)
    wanted = [name for name in config.agent.env_allowlist if name not in required and name not in request.env]
    listed = [name for name in wanted if name in facts.env]
    missing = ", ".join(name for name in wanted if name not in facts.env)
    env |= {**{name: facts.env[name] for name in listed}, **request.env}
    secrets = frozenset(listed) | request.env.keys()
    if missing:
        notes += (f"not set on this host, so not passed to the agent: {missing} (agent.env_allowlist)",)
    ignored = sorted(name for name in required if config.sandbox.env.get(name, required[name]) != required[name])
    if ignored:
        kind = config.agent.kind
        notes += (f"sandbox.env sets {', '.join(ignored)}, which podbot itself sets for {kind}: ignored",)
    return env | required, secrets - required.keys(), notes


def _term_choices(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> tuple[str, ...]:
    """See ExecSpec. A TERM that the operator passes stays."""
    if not request.tty or "TERM" in {*request.env, *config.agent.env_allowlist, *agent_env(config.agent)}:
        return ()
    return terminal_variables(facts.env, USUAL)[1]


def _check_given(request: LaunchRequest, required: Mapping[str, str], kind: str) -> None:
    """Raise InvalidValue, without a value, for a variable of this session that cannot be set."""
    for name, value in request.env.items():
        reason = ""
        if not is_variable_name(name):
            reason = f"{shown(name)} is not the name of a variable"
        elif "\0" in value:
            reason = f"the value of {name} contains a NUL character"
        elif required.get(name, value) != value:
            reason = f"podbot itself sets {name} for {kind}"
        if reason:
            raise InvalidValue(field="env", origin="flag -e", reason=reason, hint="Leave it out.")


def agent_env(agent: AgentConfig) -> dict[str, str]:
    """The variables that podbot sets for ``agent``; they override all others."""
    found = known(agent.kind)
    return {**found.env, **found.permission_env.get(agent.permissions, {})}


def agent_defaults(agent: AgentConfig) -> Mapping[str, str]:
    """The variables that podbot sets for ``agent`` unless the operator does, so that a file of a repository cannot."""
    return known(agent.kind).defaults


def agent_files(agent: AgentConfig) -> dict[str, str]:
    """Text of the files that podbot mounts for ``agent``, by their path inside."""
    found = known(agent.kind)
    files = dict(found.files.get(agent.permissions, {}))
    # A custom agent can be any of them: it gets their logins, too.
    for each in agents().values() if found.all_families else (found,):
        files |= each.login_files
        if not agent.account_connectors:
            files |= each.no_connectors
    return files


def command_for(agent: AgentConfig, words: tuple[str, ...] = (), directory: str | None = "/") -> tuple[str, ...]:
    """The command that starts ``agent``. ``words``: the arguments after ``--``. ``directory``: the one it should trust.

    The words are appended to a known kind's command; for a custom agent they are the whole command. The kind must
    support the mode (``legality.check`` ensures it). Raises MissingRequired for a custom agent without a command.
    """
    if agent.kind != CUSTOM:
        found = known(agent.kind)
        command = (found.asking if agent.permissions == "ask" else found.commands)[agent.mode]
        if found.trust is not None:
            trust = found.trust(directory)
            command = tuple(trust if word == TRUSTED else word for word in command)
        return (*command, *words)
    if words:
        return words
    if agent.command and agent.command.strip():
        return (agent.command, *agent.args)
    raise MissingRequired(field="agent.command", hint="Write the command's words after --, or set agent.command.")

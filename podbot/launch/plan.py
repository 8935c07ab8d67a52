"""``normalize``: configuration, a request and facts of the host become one plan. Pure; raises ConfigError only."""

from __future__ import annotations

import os
from collections.abc import Mapping

from podbot._version import __version__
from podbot.config.checks import is_variable_name
from podbot.config.models import AppConfig
from podbot.errors import InvalidValue, MissingRequired
from podbot.launch import askpass
from podbot.launch.agents import agent_env, agent_files, command_for
from podbot.launch.labels import HISTORY, LABEL, keep_label
from podbot.launch.legality import check, check_effects, for_subcommand
from podbot.launch.mounts import MountPlan, mount_notes, plan_clone_mounts, plan_mounts
from podbot.launch.names import is_name, session_name
from podbot.launch.own_file import files_directory, own_file_mount
from podbot.launch.pipes import TARGET as PIPES
from podbot.launch.pipes import has_pipes, pipes_directory
from podbot.launch.resources.clone import plan_clone
from podbot.launch.resources.credentials import login_notes, plan_credentials, settings_notes
from podbot.launch.resources.git_identity import ENV as GITCONFIG_ENV
from podbot.launch.resources.git_identity import TARGET as GITCONFIG
from podbot.launch.resources.git_identity import gitconfig, identity_note
from podbot.launch.resources.guard import plan_guard
from podbot.launch.resources.history import history_mounts, plan_history
from podbot.launch.resources.token import plan_token, repository, token_note
from podbot.launch.security import frame_limit, nested_env, plan_limits, plan_security
from podbot.launch.types import (
    AgentPlan,
    ClonePlan,
    ContainerSpec,
    CredentialSource,
    ExecSpec,
    HostFacts,
    Keep,
    LaunchPlan,
    LaunchRequest,
    Mount,
    SandboxPlan,
    TokenPlan,
)

TERMINAL_VARIABLES = ("TERM", "COLORTERM")  # not LANG: which locales there are is the image's to say


def normalize(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> LaunchPlan:
    """Decide everything about a session, or raise the ConfigError that says what cannot be."""
    config = for_subcommand(config, request.subcommand)
    check(config, request.subcommand)
    image = (config.image or "").strip()
    if not image:
        raise MissingRequired(field="image", hint="Run `podbot setup`, which builds one and writes the key.")
    clone = plan_clone(config, request)
    access = repository(request, clone)
    idle = check_effects(config)
    mounted: MountPlan | None = None
    if clone is None:
        mounted = plan_mounts(config, request, facts)
        mounts, places, told = mounted.mounts, mounted.places, mounted.notes
        directory, code = mounted.workspace.target, mounted.workspace.source
    else:
        mounts, places = plan_clone_mounts(config, facts, clone.directory), (clone.directory,)
        directory, code, told = clone.directory, clone.directory, mount_notes(mounts)
    trusting = clone is not None or not facts.settings
    words = command_for(config.agent, request.words, directory if trusting else None)
    session = session_name(request.name, code, facts.nonce)
    runtime_dir = os.path.join(facts.runtime_dir, session)
    token = plan_token(config, access, facts, runtime_dir) if access is not None else None
    security, security_notes = plan_security(config, facts)
    env, secrets, env_notes = _agent_env(config, request, facts)
    tty = request.tty and request.subcommand == "run"
    command = ExecSpec(command=words, workdir=directory, env=env, secrets=secrets, tty=tty)
    network = _network(config)
    identity = _git_identity(facts)
    text = gitconfig(identity, *places)
    helper = askpass.askpass(token.server) if token is not None else ""
    keep = _keep(config, clone)
    pipes_dir = pipes_directory(runtime_dir) if has_pipes(keep, config.sandbox.runtime) else None
    files_dir = files_directory(keep, session, runtime_dir, facts)
    history = plan_history(config, facts, code, clone, files_dir)
    credentials = plan_credentials(config, facts, command, trusting=trusting)
    files = agent_files(config.agent)
    container = ContainerSpec(
        name=session,
        image=image,
        image_origin=str(config.origin("image")),
        labels={
            **_labels(config, facts, session, access or "", code=code, keep=keep),
            HISTORY: history.key if history is not None else "",
        },
        mounts=mounts,
        security=security,
        files=(
            own_file_mount(files_dir, GITCONFIG),
            *((Mount(pipes_dir, PIPES, read_only=True),) if pipes_dir is not None else ()),
            *_token_files(token, files_dir),
            *(own_file_mount(files_dir, target) for target in sorted(files)),
            *history_mounts(history),
            *(mounted.empty if mounted is not None else ()),
        ),
        link=mounted.link if mounted is not None else None,
        limits=plan_limits(config, facts),
        network=network,
        workdir=directory,
        make_workdir=clone is not None,
        env={
            **GITCONFIG_ENV,
            **nested_env(security),
            **({"TZ": facts.time_zone} if facts.time_zone else {}),
            **(history.env if history is not None else {}),
            **_sandbox_env(config),
            **agent_env(config.agent),  # for `podbot exec`: the agent can be started there, too
            # Behind the operator's own: without these a credential helper keeps the token, or git asks somebody else.
            **(askpass.environment(token.server) if token is not None else {}),
        },
        runtime=config.sandbox.runtime,
    )
    trust = ("network host: the agent reaches everything that listens on this host",) if network == "host" else ()
    sandbox = SandboxPlan(
        session=session,
        source=config.workspace.source,
        container=container,
        keep=keep,
        runtime_dir=runtime_dir,
        files_dir=files_dir,
        workspace=mounted.workspace if mounted is not None else None,
        linked_git=mounted.linked if mounted is not None else None,
        image_agent=config.agent.kind if config.agent.kind != "custom" else None,
        git_identity=identity,
        gitconfig=text,
        askpass=helper,
        clone=clone,
        token=token,
        history=history,
        guard=plan_guard(config, mounted.workspace, mounted.linked) if mounted is not None else None,
        pipes_dir=pipes_dir,
        credentials=credentials,
        agent_files=files,
        notes=(
            *(_link_note(facts) if clone is None else ()),
            *_clone_notes(clone),
            *((token_note(token),) if token is not None else ()),
            *told,
            *map(_credential_note, credentials.sources),
            *login_notes(config, credentials.sources, secrets),
            *(settings_notes(config, facts) if clone is None else ()),
            *security_notes,
            *trust,
            *idle,
            *env_notes,
            *identity_note(identity, {*config.sandbox.env, *env}),
        ),
    )
    agent = AgentPlan(
        kind=config.agent.kind,
        mode=config.agent.mode,
        command=command,
        delegation=config.agent.delegation,
        mcp_servers=config.agent.mcp_servers,
        extra_methods=config.agent.extra_methods,
        frame_limit=frame_limit(config),
    )
    return LaunchPlan(subcommand=request.subcommand, sandbox=sandbox, agent=agent)


def _keep(config: AppConfig, clone: ClonePlan | None) -> Keep:
    """Whoever set session.keep, anywhere, decided; otherwise nothing of a clone is to be lost."""
    if config.session.keep:
        return "always"
    chosen = config.origin("session.keep").kind != "default"
    return "never" if chosen or clone is None else "when_unsaved"


def _token_files(token: TokenPlan | None, files_dir: str) -> tuple[Mount, ...]:
    """The token's directory, and not its file: a file mount would show the first token for ever (measured)."""
    if token is None:
        return ()
    secrets = Mount(token.secrets_dir, askpass.SECRETS, read_only=True)
    return (own_file_mount(files_dir, askpass.TARGET), secrets)


def _clone_notes(clone: ClonePlan | None) -> tuple[str, ...]:
    if clone is None:
        return ()
    branch = "its default branch" if clone.branch is None else f"branch {clone.branch}"
    return (f"cloning {clone.url}, {branch}, into {clone.directory}",)


def _labels(config: AppConfig, facts: HostFacts, session: str, access: str, *, code: str, keep: Keep) -> dict[str, str]:
    """``access``: the token's repository; ``code``: where it is, on the host when mounted, inside when cloned."""
    values = {
        "managed": "true",
        "session": session,
        "agent": config.agent.kind,
        "mode": config.agent.mode,
        "workspace": config.workspace.source,
        # Empty, not absent: a container inherits its image's labels, and an image must not name a repository.
        "repo": access if config.workspace.source == "github_clone" else "",
        "access": access,
        "path": code,
        "created": facts.created,
        "keep": keep_label(keep),
        "version": __version__,
    }
    return {f"{LABEL}.{name}": value for name, value in values.items()}


def _agent_env(
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


def _git_identity(facts: HostFacts) -> Mapping[str, str]:
    found = {"user.name": facts.git_name, "user.email": facts.git_email}
    return {key: value for key, value in found.items() if value}


def _link_note(facts: HostFacts) -> tuple[str, ...]:
    """An agent that ran there before can have planted the link: the operator is to see where it leads."""
    found = facts.workspace
    if found is None:
        return ()
    given = facts.home + found.given[1:] if found.given.startswith("~/") else found.given
    if os.path.normpath(os.path.join(facts.cwd, given)) == found.resolved:
        return ()
    return (f"{found.given} leads through a link to {found.resolved}",)


def _credential_note(found: CredentialSource) -> str:
    return f"copying {found.given} to {found.target}: the agent can use that login (creds.copy_{found.family})"

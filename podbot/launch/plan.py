"""``normalize``: configuration, a request and facts of the host become one plan. Pure; raises ConfigError only."""

from __future__ import annotations

import os
from collections.abc import Mapping

from podbot._version import __version__
from podbot.config.checks import is_variable_name
from podbot.config.models import AppConfig
from podbot.errors import InvalidValue, MissingRequired
from podbot.launch import askpass
from podbot.launch.agents import AGENTS, command_for
from podbot.launch.clone import plan_clone, plan_token
from podbot.launch.gitconfig import ENV as GITCONFIG_ENV
from podbot.launch.gitconfig import gitconfig, gitconfig_mount
from podbot.launch.labels import LABEL, keep_label
from podbot.launch.legality import check, for_subcommand
from podbot.launch.mounts import mount_notes, plan_clone_mounts, plan_mounts
from podbot.launch.names import is_name, session_name
from podbot.launch.pipes import TARGET as PIPES
from podbot.launch.pipes import has_pipes, pipes_directory
from podbot.launch.security import frame_limit, nested_env, plan_limits, plan_security
from podbot.launch.types import (
    ClonePlan,
    ContainerSpec,
    CredentialSource,
    ExecSpec,
    HostFacts,
    Keep,
    LaunchPlan,
    LaunchRequest,
    Mount,
    TokenPlan,
)

TERMINAL_VARIABLES = ("TERM", "COLORTERM", "LANG")
CLAUDE_LOGINS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")  # each logs claude in


def normalize(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> LaunchPlan:
    """Decide everything about a session, or raise the ConfigError that says what cannot be."""
    config = for_subcommand(config, request.subcommand)
    check(config, request.subcommand)
    image = (config.image or "").strip()
    if not image:
        raise MissingRequired(field="image", hint="Run `podbot setup`, which builds one and writes the key.")
    command = command_for(config.agent, request.words)
    clone = plan_clone(config, request)
    workspace: Mount | None = None
    if clone is None:
        workspace, mounts, places, left_out = plan_mounts(config, request, facts)
        directory, code = workspace.target, workspace.source
    else:
        mounts, places, left_out = plan_clone_mounts(config, facts, clone.directory), (clone.directory,), ()
        directory = code = clone.directory
    session = session_name(request.name, code, facts.nonce)
    runtime_dir = os.path.join(facts.runtime_dir, session)
    token = plan_token(config, clone, facts, runtime_dir) if clone is not None else None
    security, security_notes = plan_security(config, facts)
    env, secrets, env_notes = _agent_env(config, request, facts)
    network = _network(config)
    identity = _git_identity(facts)
    text = gitconfig(identity, *places)
    helper = askpass.askpass(clone.server) if clone is not None else ""
    keep = _keep(config, clone)
    pipes_dir = pipes_directory(runtime_dir) if has_pipes(keep, config.sandbox.runtime) else None
    credentials = tuple(found for found in facts.credentials if _selected(config, found.family))
    container = ContainerSpec(
        name=session,
        image=image,
        image_origin=str(config.origin("image")),
        labels=_labels(config, facts, session, clone.repo if clone is not None else "", code=code, keep=keep),
        mounts=mounts,
        security=security,
        files=(
            gitconfig_mount(text, facts.state_dir),
            *((Mount(pipes_dir, PIPES, read_only=True),) if pipes_dir is not None else ()),
            *_clone_files(helper, token, facts),
        ),
        limits=plan_limits(config),
        network=network,
        workdir=directory,
        make_workdir=clone is not None,
        env={
            **GITCONFIG_ENV,
            **nested_env(security),
            **_sandbox_env(config),
            # Behind the operator's own: without these a credential helper keeps the token, or git asks somebody else.
            **(askpass.environment(clone.server) if clone is not None else {}),
        },
        runtime=config.sandbox.runtime,
    )
    trust = ("network host: the agent reaches everything that listens on this host",) if network == "host" else ()
    return LaunchPlan(
        session=session,
        subcommand=request.subcommand,
        kind=config.agent.kind,
        mode=config.agent.mode,
        source=config.workspace.source,
        container=container,
        agent=ExecSpec(
            command=command,
            workdir=directory,
            env=env,
            secrets=secrets,
            tty=request.tty and request.subcommand == "run",
        ),
        keep=keep,
        runtime_dir=runtime_dir,
        workspace=workspace,
        git_identity=identity,
        gitconfig=text,
        askpass=helper,
        clone=clone,
        token=token,
        pipes_dir=pipes_dir,
        credentials=credentials,
        first_run=_first_run(config, facts, credentials, secrets),
        notes=(
            *(_link_note(facts) if clone is None else ()),
            *_clone_notes(clone, token),
            *mount_notes(mounts),
            *left_out,
            *map(_credential_note, credentials),
            *security_notes,
            *trust,
            *env_notes,
        ),
        delegation=config.agent.delegation,
        frame_limit=frame_limit(config),
    )


def _keep(config: AppConfig, clone: ClonePlan | None) -> Keep:
    """Whoever set session.keep, anywhere, decided; otherwise nothing of a clone is to be lost."""
    if config.session.keep:
        return "always"
    chosen = config.origin("session.keep").kind != "default"
    return "never" if chosen or clone is None else "when_unsaved"


def _clone_files(helper: str, token: TokenPlan | None, facts: HostFacts) -> tuple[Mount, ...]:
    """The token's directory, and not its file: a file mount would show the first token for ever (measured)."""
    if token is None:
        return ()
    secrets = Mount(token.secrets_dir, askpass.SECRETS, read_only=True)
    return (askpass.askpass_mount(helper, facts.state_dir), secrets)


def _clone_notes(clone: ClonePlan | None, token: TokenPlan | None) -> tuple[str, ...]:
    if clone is None or token is None:
        return ()
    branch = "its default branch" if clone.branch is None else f"branch {clone.branch}"
    levels = ", ".join(f"{name}: {level}" for name, level in sorted(token.permissions.items()))
    return (
        f"cloning {clone.url}, {branch}, into {clone.directory}",
        f"the agent gets a GitHub token for {clone.repo} ({levels or 'metadata: read'})",
    )


def _selected(config: AppConfig, family: str) -> bool:
    return {"claude": config.creds.copy_claude, "codex": config.creds.copy_codex}[family]


def _first_run(
    config: AppConfig, facts: HostFacts, credentials: tuple[CredentialSource, ...], secrets: frozenset[str]
) -> str | None:
    """Claude's file goes with its family, and with a login that the operator lets in by a variable."""
    logged_in = config.agent.kind == "claude" and not secrets.isdisjoint(CLAUDE_LOGINS)
    if _selected(config, "claude") and (logged_in or any(found.family == "claude" for found in credentials)):
        return os.path.join(facts.home, ".claude.json")
    return None


def _labels(config: AppConfig, facts: HostFacts, session: str, repo: str, *, code: str, keep: Keep) -> dict[str, str]:
    """``code``: where it is, on the host when mounted, inside the sandbox when cloned."""
    values = {
        "managed": "true",
        "session": session,
        "agent": config.agent.kind,
        "mode": config.agent.mode,
        "workspace": config.workspace.source,
        # Empty, not absent: a container inherits its image's labels, and an image must not name a repository.
        "repo": repo,
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
    required = AGENTS[config.agent.kind].env
    wanted = [name for name in config.agent.env_allowlist if name not in required]
    secrets = frozenset(name for name in wanted if name in facts.env)
    missing = ", ".join(name for name in wanted if name not in facts.env)
    env |= {name: facts.env[name] for name in secrets}
    notes = (f"not set on this host, so the agent goes without: {missing} (agent.env_allowlist)",) if missing else ()
    return env | dict(required), secrets, notes


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

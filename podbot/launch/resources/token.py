"""Plans the session's GitHub token: its repository, and how it is made. Pure; raises ConfigError only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from podbot.config.checks import shown
from podbot.config.models import AppConfig
from podbot.container_spec import Mount
from podbot.errors import IllegalCombination, InvalidValue, MissingRequired
from podbot.frozen import field
from podbot.launch import askpass
from podbot.launch.github_auth import APP, NONE, VARIABLE, WAYS, Source, owner_of, source_of
from podbot.launch.names import LABEL
from podbot.launch.resources.clone import ClonePlan, checked_repo, server_of
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import HostFacts, LaunchRequest, OwnFile, ResourcePlan, SandboxPlan

SECRETS_DIRECTORY = "secrets"  # in the session's own directory on the host
_ACCESS = f"{LABEL}.access"
_KEYS = ("app_id", "installation_id", "private_key_path")


class TokenPlan(ResourcePlan):
    """How the session's token is made, and its scope. Contains no secret.

    ``auth``: its source, see ``launch.github_auth``; what belongs to an App is 0, empty or {} for another one.
    """

    app_id: int
    installation_id: int
    private_key_path: str  # absolute
    server_url: str
    server: str  # its scheme, host and port; the token is for this server only
    api_url: str | None  # None: derived from server_url
    repo: str
    permissions: Mapping[str, str]
    secrets_dir: str  # on the host; mounted read-only
    auth: str = APP
    given: str | None = field(default=None, repr=False)  # the value of the variable that env:NAME names

    def described(self) -> dict[str, Any]:
        """The plan as plain values; it contains no token."""
        return {
            "auth": self.auth,
            "repo": self.repo,
            "permissions": dict(self.permissions),
            "app_id": self.app_id,
            "installation_id": self.installation_id,
            "private_key_path": self.private_key_path,
            "api_url": self.api_url,
        }

    def agrees_with(self, sandbox: SandboxPlan, facts: HostFacts) -> bool:
        """See ResourcePlan. The container's label names the repository that its token is for."""
        del facts
        own = os.path.join(sandbox.runtime_dir, SECRETS_DIRECTORY)
        return self.secrets_dir == own and sandbox.container.labels.get(_ACCESS) == self.repo


def plan(context: Context) -> Part:
    """The token, its directory and the askpass program. Raises ConfigError subclasses."""
    repo = repository(context.config, context.request, context.workspace.clone)
    if repo is None:
        _check_no_source(context.config)
        return Part(labels={_ACCESS: ""})
    source = source_of(context.config)
    if source.auth == NONE:
        return _without_token(context, repo, source)
    token = plan_token(context.config, repo, context.facts, context.runtime_dir)
    return Part(
        token,
        # The directory is mounted, not the file: a file mount would show the first token for ever (measured).
        mounts=(Mount(token.secrets_dir, askpass.SECRETS, read_only=True),),
        files=(OwnFile(askpass.TARGET, askpass.askpass(token.server), executable=True),),
        # Without these, a credential helper would store the token, or git would ask another program.
        fixed_env=askpass.ENVIRONMENT,
        git_config=askpass.configuration(token.server),
        labels={_ACCESS: repo},
        notes=(token_note(token), *_unused_permissions(context.config, token)),
    )


def _check_no_source(config: AppConfig) -> None:
    """Refuse a source of tokens that was given for a session without a token."""
    origin = config.origin("github.auth")
    if origin.kind == "flag":
        raise IllegalCombination(
            field="github.auth",
            value=str(config.github.auth)[:80],
            origin=str(origin),
            reason="this session has no GitHub token",
            hint="Leave it out, or name a repository: one to clone, or one that the token is for.",
        )


def _without_token(context: Context, repo: str, source: Source) -> Part:
    """A clone of a public repository needs no token; ``--github-access`` asks for one."""
    config, asks = context.config, context.request.origin("github_access").detail
    if context.request.github_access is None:
        note = f"{repo} is cloned without a token, which works if it is public; to push, {WAYS}"
        # git must not wait for a password that nobody types.
        return Part(labels={_ACCESS: ""}, env={"GIT_TERMINAL_PROMPT": "0"}, notes=(note,))
    if source.chosen:
        raise IllegalCombination(
            field="github.auth",
            value=NONE,
            origin=str(config.origin("github.auth")),
            reason=f"{asks} {repo} asks for a token",
            hint=f"Leave {asks} out, or choose a source of tokens: app, gh or env:NAME.",
        )
    raise MissingRequired(field="github.auth", hint=f"{asks} needs a token: {WAYS}.")


def _unused_permissions(config: AppConfig, token: TokenPlan) -> tuple[str, ...]:
    origin = config.origin("github.permissions")
    if token.auth == APP or origin.kind == "default":
        return ()
    return (f"github.permissions ({origin}) has no effect: only an App's token can be limited",)


def repository(config: AppConfig, request: LaunchRequest, clone: ClonePlan | None) -> str | None:
    """The one repository for which the session gets a token: its clone's, or the one that the operator named.

    A mounted workspace's git configuration is not read, because anyone may have written it.
    """
    asked = request.github_access
    if asked is None:
        return clone.repo if clone is not None else None
    origin = request.origin("github_access")
    checked_repo(asked, str(origin), config.github.server_url, clones=False)
    if clone is not None:
        raise IllegalCombination(
            field="repository",
            value=asked,
            origin=str(origin),
            reason=f"{origin.detail} is for a mounted workspace, and {clone.repo} is cloned",
            hint=f"Leave {origin.detail} out. github.auth chooses the source of a clone's token: app, gh or env:NAME.",
        )
    return asked


def plan_token(config: AppConfig, repo: str, facts: HostFacts, session_dir: str) -> TokenPlan:
    """The token's plan. Raises MissingRequired, which names every key that is not set, and InvalidValue."""
    github, source = config.github, source_of(config)
    if source.auth != APP:
        return _borrowed(config, source, repo, facts, session_dir)
    app, installation, key = github.app_id, github.installation_id, (github.private_key_path or "").strip()
    if app is None or installation is None or not key:
        missing = [f"github.{name}" for name, there in zip(_KEYS, (app, installation, key), strict=True) if not there]
        hint = "The token comes from a GitHub App: set them in the configuration, or as PODBOT_GITHUB_… variables"
        raise MissingRequired(field=_listed(missing), hint=f"{hint}.")
    path = facts.home + key[1:] if key.startswith("~/") else key
    if not path.startswith("/"):
        raise InvalidValue(
            field="github.private_key_path",
            origin=str(config.origin("github.private_key_path")),
            reason=f"{shown(key, 80)} is not an absolute path",
            hint="Write a path that begins with / or ~/.",
        )
    return TokenPlan(
        auth=APP,
        app_id=app,
        installation_id=installation,
        private_key_path=path,
        server_url=github.server_url,
        server=server_of(github.server_url).origin,
        api_url=github.api_url,
        repo=repo,
        permissions=dict(github.permissions),
        secrets_dir=os.path.join(session_dir, SECRETS_DIRECTORY),
    )


def _borrowed(config: AppConfig, source: Source, repo: str, facts: HostFacts, session_dir: str) -> TokenPlan:
    """The plan for a token that the operator already has. Its value is read when the session is opened."""
    if source.variable and not facts.env.get(source.variable):
        raise InvalidValue(
            field="github.auth",
            origin=str(config.origin("github.auth")),
            reason=f"the variable {source.variable}, from which the token is taken, is not set",
            hint="Set it to the token where podbot starts, or choose another source: app, gh or none.",
        )
    return TokenPlan(
        auth=source.auth,
        app_id=0,
        installation_id=0,
        private_key_path="",
        server_url=config.github.server_url,
        server=server_of(config.github.server_url).origin,
        api_url=config.github.api_url,
        repo=repo,
        permissions={},
        secrets_dir=os.path.join(session_dir, SECRETS_DIRECTORY),
        given=facts.env.get(source.variable),
    )


def token_note(token: TokenPlan) -> str:
    """The note for the operator about the token."""
    if token.auth != APP:
        whose = owner_of(token.auth)
        what = whose if token.auth.startswith(VARIABLE) else f"the token of {whose}"
        return f"the agent gets {what} for {token.server}: it can do there whatever that token may, in all repositories"
    levels = ", ".join(f"{name}: {level}" for name, level in sorted(token.permissions.items()))
    return f"the agent gets a GitHub token for {token.repo} ({levels or 'metadata: read'})"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))

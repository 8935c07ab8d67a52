"""The session's GitHub token: for which repository, and what it is made from. Pure; raises ConfigError only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podbot.config.models import AppConfig
from podbot.errors import IllegalCombination, InvalidValue, MissingRequired
from podbot.launch import askpass
from podbot.launch.labels import LABEL
from podbot.launch.resources.clone import ClonePlan, checked_repo, server_of
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import HostFacts, LaunchRequest, Mount, OwnFile

SECRETS_DIRECTORY = "secrets"  # in the session's own directory on the host
FLAG = "--github-access"
_ACCESS = f"{LABEL}.access"
_KEYS = ("app_id", "installation_id", "private_key_path")


@dataclass(frozen=True)
class TokenPlan:
    """What the session's token is made from, and limited to. No secret is in it."""

    app_id: int
    installation_id: int
    private_key_path: str  # absolute
    server_url: str
    server: str  # its scheme, host and port: the only place that the token is for
    api_url: str | None  # None: it follows server_url
    repo: str
    permissions: Mapping[str, str]
    secrets_dir: str  # on the host; mounted read-only

    def described(self) -> dict[str, Any]:
        """What it will be made from; a plan has no token."""
        return {
            "repo": self.repo,
            "permissions": dict(self.permissions),
            "app_id": self.app_id,
            "installation_id": self.installation_id,
            "private_key_path": self.private_key_path,
            "api_url": self.api_url,
        }


def plan(context: Context) -> Part:
    """The token, its directory and the program that answers git with it. Raises ConfigError subclasses."""
    repo = repository(context.request, context.workspace.clone)
    if repo is None:
        return Part(labels={_ACCESS: ""})
    token = plan_token(context.config, repo, context.facts, context.runtime_dir)
    return Part(
        token,
        # The directory, and not the file: a file mount would show the first token for ever (measured).
        mounts=(Mount(token.secrets_dir, askpass.SECRETS, read_only=True),),
        files=(OwnFile(askpass.TARGET, askpass.askpass(token.server), executable=True),),
        # Without these a credential helper keeps the token, or git asks somebody else.
        fixed_env=askpass.environment(token.server),
        labels={_ACCESS: repo},
        notes=(token_note(token),),
    )


def repository(request: LaunchRequest, clone: ClonePlan | None) -> str | None:
    """The one repository that the session gets a token for: its clone's, or the one that was asked for.

    Only the operator names it. A mounted workspace's git configuration may be anybody's, and is not read.
    """
    asked = request.github_access
    if asked is None:
        return clone.repo if clone is not None else None
    checked_repo(asked, FLAG)
    if clone is not None:
        raise IllegalCombination(
            field=FLAG,
            value=asked,
            origin="command line",
            reason=f"the clone of {clone.repo} has a token of its own, and a session has one",
            hint=f"Leave {FLAG} out; it is for a mounted workspace.",
        )
    return asked


def plan_token(config: AppConfig, repo: str, facts: HostFacts, session_dir: str) -> TokenPlan:
    """What the token is made from. Raises MissingRequired, which names every key that is not set, and InvalidValue."""
    github = config.github
    app, installation, key = github.app_id, github.installation_id, (github.private_key_path or "").strip()
    if app is None or installation is None or not key:
        missing = [f"github.{name}" for name, there in zip(_KEYS, (app, installation, key), strict=True) if not there]
        hint = "The token comes from a GitHub App: set them in the configuration, or as PODBOT_GITHUB_… variables"
        raise MissingRequired(field=_listed(missing), hint=f"{hint}; `podbot doctor` checks the App.")
    path = facts.home + key[1:] if key.startswith("~/") else key
    if not path.startswith("/"):
        raise InvalidValue(
            field="github.private_key_path",
            origin=str(config.origin("github.private_key_path")),
            reason=f"{key[:80]!r} is not an absolute path",
            hint="Write a path that begins with / or ~/.",
        )
    return TokenPlan(
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


def token_note(token: TokenPlan) -> str:
    """What the operator must know before the agent has it."""
    levels = ", ".join(f"{name}: {level}" for name, level in sorted(token.permissions.items()))
    return f"the agent gets a GitHub token for {token.repo} ({levels or 'metadata: read'})"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))

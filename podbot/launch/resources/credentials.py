"""Which of the operator's logins an agent gets, and what to say when it gets none."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from podbot.config.models import AppConfig
from podbot.launch.agents import AGENTS
from podbot.launch.command import ExecSpec
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import CredentialSource, HostFacts

API_KEY = "ANTHROPIC_API_KEY"

CLAUDE_LOGINS = (API_KEY, "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")  # each logs claude in


@dataclass(frozen=True)
class CredentialsPlan:
    """Which of the operator's logins are copied into the sandbox. ``sources``: families that are selected and there.

    ``first_run``: the host's ~/.claude.json, of which a reduced one is copied; it may be missing. ``trusted``: the
    directory that this file says the operator trusts. ``approved_key``: an API key that it calls approved.
    """

    sources: tuple[CredentialSource, ...] = ()
    first_run: str | None = None
    trusted: str | None = None
    approved_key: str | None = field(default=None, repr=False)

    def described(self) -> list[dict[str, Any]]:
        """Where from and where to; what is in them is not read for a plan."""
        rows = [
            {"family": found.family, "source": found.source, "target": found.target, "reduced": False}
            for found in self.sources
        ]
        if self.first_run is not None:
            target = "/root/.claude.json"
            rows.append({"family": "claude", "source": self.first_run, "target": target, "reduced": True})
        return rows


def plan(context: Context) -> Part | None:
    """The logins that the agent gets; None without an agent."""
    if context.command is None:
        return None
    found = plan_credentials(context.config, context.facts, context.command, trusting=context.workspace.trusted)
    notes = map(_copying, found.sources)
    return Part(found, notes=(*notes, *login_notes(context.config, found.sources, context.command.secrets)))


def _copying(found: CredentialSource) -> str:
    return f"copying {found.given} to {found.target}: the agent can use that login (creds.copy_{found.family})"


def selected_family(config: AppConfig, family: str) -> bool:
    """Whether the agent can use this family, and the configuration lets it."""
    wanted = {"claude": config.creds.copy_claude, "codex": config.creds.copy_codex}[family]
    return wanted and family in AGENTS[config.agent.kind].credentials


def plan_credentials(config: AppConfig, facts: HostFacts, command: ExecSpec, *, trusting: bool) -> CredentialsPlan:
    """What the agent that ``command`` starts gets. ``trusting``: podbot answers that its directory is trusted."""
    sources = tuple(found for found in facts.credentials if selected_family(config, found.family))
    # Asked about on its own screen alone: elsewhere no part of the key is to lie in a file (measured, 2.1.330).
    key = command.env.get(API_KEY) if API_KEY in command.secrets and command.tty else None
    return CredentialsPlan(
        sources,
        first_run=_first_run(config, facts, sources, command.secrets),
        trusted=command.workdir or "/" if trusting else None,
        approved_key=key,
    )


def _first_run(
    config: AppConfig, facts: HostFacts, credentials: tuple[CredentialSource, ...], secrets: frozenset[str]
) -> str | None:
    """Claude's file accompanies its family, and a login that the operator passes in by a variable."""
    if not selected_family(config, "claude"):
        return None
    logged_in = config.agent.kind == "claude" and not secrets.isdisjoint(CLAUDE_LOGINS)
    if logged_in or any(found.family == "claude" for found in credentials):
        return os.path.join(facts.home, ".claude.json")
    return None


def settings_notes(config: AppConfig, facts: HostFacts) -> tuple[str, ...]:
    """What of the workspace runs commands as soon as the agent starts: whoever wrote it last, perhaps an agent."""
    if not facts.settings:
        return ()
    kind = config.agent.kind
    asks = {
        "claude": "; on a terminal Claude asks about them first, with -p and in `podbot host` it does not",
        "codex": "; on a terminal Codex asks about them first, and `codex exec` takes none",
    }
    text = f"{kind} takes settings from the workspace that can run commands in the sandbox, beside your login"
    return (f"{text}: {', '.join(facts.settings)}{asks.get(kind, '')}",)


def login_notes(
    config: AppConfig, credentials: tuple[CredentialSource, ...], secrets: frozenset[str]
) -> tuple[str, ...]:
    """What the operator can do, when nothing was found that logs the agent in.

    Some other variable may: those of a provider are called SOMETHING_API_KEY.
    """
    kind = config.agent.kind
    login = AGENTS[kind].login
    if login is None or not login.needed or any(found.logged_in for found in credentials):
        return ()
    given = secrets | config.sandbox.env.keys()
    if not given.isdisjoint(login.variables) or any(name.endswith("_API_KEY") for name in given):
        return ()
    return (f"no login for {kind} was found; to give it one, {login.advice}",)

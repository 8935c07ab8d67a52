"""Claude Code, and its adapter for the Agent Client Protocol. Measured with 2.1.330 and 0.100.0."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from podbot.agents.types import (
    CACHE,
    HOST,
    PAST,
    SETTINGS_OF_OTHERS,
    Agent,
    Build,
    Conversations,
    Family,
    FirstRun,
    Login,
    Page,
    api_key_advice,
)

# The adapter takes neither words nor variables for this. A managed setting goes before the operator's own settings and
# the repository's.
_MANAGED = "/etc/claude-code/managed-settings.d/podbot.json"
_LOGINS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")  # each logs claude in
PROJECT_SETTINGS = (".claude/settings.json", ".claude/settings.local.json", ".mcp.json")  # named in its trust question
_KEPT = ("theme", "lastOnboardingVersion")
_SHOWN = 20  # claude remembers a key that was approved by its last characters


def _mode(mode: str) -> Mapping[str, str]:
    return {_MANAGED: json.dumps({"permissions": {"defaultMode": mode}}) + "\n"}


def reduced(document: bytes, workspace: str | None, api_key: str | None) -> bytes:
    """The reduced ``~/.claude.json`` from the host's ``document`` (empty, or not JSON: from nothing).

    What Claude needs so that its first screen is the prompt, measured with ``--dangerously-skip-permissions`` and no
    network. Without the file it ends at its onboarding ("Unable to connect"); with ``hasCompletedOnboarding`` it asks
    whether the directory is trusted, then whether skipping permissions is accepted, then whether a key from the
    environment may be used. Each answer below takes one of these screens away. The rest of the host's file (other
    projects, their histories, tool servers with keys, ids, fragments of other keys) stays.

    ``workspace`` is the only project in it; None: none is trusted, and Claude asks on its screen, where it names the
    hooks and tool servers of the workspace before any of them runs (measured). ``api_key``: the operator let it in
    by name, and thereby approved it.
    """
    host = _parsed(document)
    made: dict[str, Any] = {key: host[key] for key in _KEPT if isinstance(host.get(key), str)}
    account = host.get("oauthAccount")
    if isinstance(account, dict):  # whose login ~/.claude/.credentials.json is
        made["oauthAccount"] = {key: value for key, value in account.items() if isinstance(value, str | bool | int)}
    made["hasCompletedOnboarding"] = True
    made["bypassPermissionsModeAccepted"] = True
    made["projects"] = {workspace: {"hasTrustDialogAccepted": True}} if workspace is not None else {}
    if api_key:
        made["customApiKeyResponses"] = {"approved": [api_key[-_SHOWN:]], "rejected": []}
    return json.dumps(made, indent=2, sort_keys=True).encode()


def _parsed(document: bytes) -> dict[str, Any]:
    try:
        host = json.loads(document)
    except (ValueError, RecursionError):
        return {}
    return host if isinstance(host, dict) else {}


AGENT = Agent(
    commands={"podbot": ("claude", "--dangerously-skip-permissions"), "acp": ("claude-agent-acp",)},
    asking={"podbot": ("claude", "--permission-mode", "default"), "acp": ("claude-agent-acp",)},
    env={
        # It refuses to skip permissions as root unless this is exactly "1".
        "IS_SANDBOX": "1",
        # An image of the operator's own may not say it: the version is the image's.
        "DISABLE_AUTOUPDATER": "1",
    },
    files={"full": _mode("bypassPermissions"), "ask": _mode("default")},
    login=Login(
        variables=(*_LOGINS, "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
        methods=frozenset({"gateway", "gateway-bedrock"}),
        others=frozenset({"claude-ai-login", "console-login", "claude-login"}),
        advice=f"run `claude` on the host and log in there, or {api_key_advice('ANTHROPIC_API_KEY')}",
    ),
    family=Family(
        "claude",
        ".claude",
        ".credentials.json",
        {
            PAST: "projects sessions session-env history.jsonl file-history shell-snapshots todos tasks plans teams "
            "jobs agent-memory paste-cache image-cache uploads downloads traces shares debug dump-prompts feedback "
            "feedback-bundles usage-data",
            # .config.json is the older place of ~/.claude.json, and backups holds whole copies of it.
            SETTINGS_OF_OTHERS: "backups .config.json*",
            CACHE: "cache statsig telemetry startup-perf stats-cache.json *-discovery-cache gh-pr-status-cache.json",
            HOST: "ide chrome local daemon daemon.* remote-control *.lock .last-*",
        },
    ),
    # Asked about the key on its own screen alone: elsewhere no part of the key is to lie in a file.
    first_run=FirstRun(".claude.json", variables=_LOGINS, key="ANTHROPIC_API_KEY", reduce=reduced),
    settings=PROJECT_SETTINGS,
    settings_asked="on a terminal Claude asks about them first, with -p and in `podbot host` it does not",
    refused=(".claude", ".claude.json"),
    conversations=Conversations("/root/.claude/projects", ("--continue",)),
    build=Build(
        "@anthropic-ai/claude-code",
        "2.1.330",
        megabytes=442,
        adapter="@agentclientprotocol/claude-agent-acp@0.100.0",
        # The adapter brings an agent of its own (330 MB; --omit=optional is not heeded with -g). It uses the one
        # beside it, because CLAUDE_CODE_EXECUTABLE names that.
        remove=("@agentclientprotocol/*/node_modules/@anthropic-ai/claude-agent-sdk-linux-*",),
        env={"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_EXECUTABLE": "/usr/local/bin/claude"},
        node=("claude-agent-acp",),
    ),
    page=Page(
        permissions=(
            (
                "`run`",
                "`--dangerously-skip-permissions`",
                "`--permission-mode default`: asks before commands and changes",
            ),
            (
                "`acp`",
                "starts in the mode `bypassPermissions`",
                "starts in the mode `default`: asks before commands and changes",
            ),
        ),
        told=(
            ("`IS_SANDBOX=1`", "as root it refuses to skip permissions without it"),
            ("`DISABLE_AUTOUPDATER=1`", "its version is the image's; an update would go with the sandbox"),
        ),
        left_alone=(
            (
                "`CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1`",
                "`claude -p` ends after 0.69 s instead of 0.80 s",
            ),
        ),
        resume="`--continue`; `--resume` lets you choose",
        editor="list and load",
    ),
)
